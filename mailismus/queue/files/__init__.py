"""Common parts of queue providers on local files.

Modules, each with what it is:

    recipient_line  one entry as a line of text. Pure
    journal_item    what items of a journal or a log have alike
    ended_commits   listeners are told of the ends of commits
    unsynced        files that are replaced whole, and may be lost
    state_file      what is remembered from one run to the next
    small_file      files that are read whole, and replaced whole
    mark            the file that names the provider of a queue's directory
    conversion      how far a conversion is; refuses a queue whose directories are changing places
    ownership       refuses the directory of another provider
    directories     made, checked and locked by a start
    writers         the lock of writers beside the server
    newer_formats   refuses segments and message files that a newer program wrote
    missing_journal  refuses to start without any trace of a journal
    journal_damage  bytes of a journal that do not check go to quarantine
    refusals        errors of an opening as what an administrator must do
    free_space      refuses mail below `minfree`
    admission       refuses mail that could not be committed
    locations       directories and locks that were opened
    dump            prints segments, message files, files of `corrupt/`
    presence        refuses mail while one of them lost its name
"""
