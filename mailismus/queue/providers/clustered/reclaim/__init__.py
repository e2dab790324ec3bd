"""What refers to message files, for their release (`spool.release`).

The module:

    lines       reads every line of the queue for a reference scan
"""
