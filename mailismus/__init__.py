"""Mailismus: a mail queue server.

Mail flows from `submit` through `queue` to `deliver`; what fails for good comes back through `report`. The packages, bottom
first; a package imports only packages above it in this list (`docs/architecture.md`, `tests/project/rules.py`):

    errors      every exception of our own
    mail        values: address, envelope, reply, outcome, ids
    regular_file  regular files, read without waiting for another process
    secret_file  files with a password or token, and secrets in memory
    smtp        the SMTP protocol without I/O: server engine, client engine
    disk        the file system and threads for blocking calls, each behind one interface
    config      the configuration file: table of settings, reading, checking, advice
    observe     mail log, audit logs, metrics
    dns         names to mail hosts
    net         sockets: accept, listen, send, close, TLS
    journal     write-ahead log of the queue: batches, segments, group commit, replay
    spool       message files in 32 silo directories, and when each may be removed
    chunks      many writers, a new file for each write: unique names, write handlers, access points
    maildir     delivery into a maildir
    queue       entries and messages: the provider interface, the manager, the providers
    submit      SMTP reception: from a client into the queue
    deliver     from the queue to a mail host or a maildir
    report      non-delivery reports
    admin       commands about the queue, the admin socket, the shell
    inject      a program of this machine puts a message into the queue: the command `inject`
    sendmail    the commands `sendmail` and `mailq`, and the server's side of them
    surgery     acts on a stopped queue, under its lock
    probe       what other servers show of TLS: the command `mailismus tls`
    plan        the forecast: the command `mailismus plan`
    top         the live screen: the command `mailismus top`
    web         a page of the running server for browsers
    start       what `twistd` and `twist` call: options, privileges, signals, log, reload
    providers   the table of queue providers, each imported when it is asked for
    demo        the playground: the command `mailismus demo`
    app         composition: the one module that names every class but those of providers
    run         `start` and `app` put together, for `twistd` and `twist`
    __main__    the command line `mailismus`
    programs    entry points of the commands `mailismus`, `sendmail` and `mailq`
"""
