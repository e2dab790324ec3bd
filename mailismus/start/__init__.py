"""Start-up: the code that `twistd`, `twist` and the command line call.

Modules, each with what it is:

    version           the version of the program
    exits             exit codes and error lines
    output            a descriptor for log lines, written without waiting
    logfile           mail log and program log in one stream
    allocator         one arena for all threads, and large pieces that go back
    privileges        user and group of the server
    notify            systemd's notification protocol
    common            what servers of a shared queue must have in common
    clock             the clock of a server
    server            interface of a complete server
    reload            SIGHUP: another configuration, all or nothing
    service           the server as a Twisted service; signals
    signals           SIGUSR1 and SIGHUP, kept from the beginning of a start
    certificate_ends  ends of certificates: a metric, and a line a day
    observation       audit logs and metrics of one server
    overview          the figures of one server at one moment
    maker             makes the service from options

Rooms:

    commands          commands about the configuration, the manual, and the help texts
"""
