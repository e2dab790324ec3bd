"""What fsck changes.

Modules, each with what it is:

    quarantine  copies of what is changed, in `queue/corrupt/`
    executor    carries out actions, each safe to be interrupted
    actions     what a finding asks of the executor
    clean_stop  a start and a clean stop of the queue after a repair
"""
