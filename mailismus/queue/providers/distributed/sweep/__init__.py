"""Contents, and rows of the index, that nothing names any more, are found and removed.

Modules:

    naming      whether anything may name the content of a message
    sweeping    passes over all contents, a bounded part at a time
"""
