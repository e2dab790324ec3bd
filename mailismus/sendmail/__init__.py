"""Messages of programs: the commands `sendmail` and `mailq`, and the server's side of them.

    program -> sendmail -> socket of the server        (it tells who speaks) -> queue
                        -> drop directory -> pickup    (no server, or it takes nothing now)

Modules, leaves first:

    wording       the help text. Pure
    options       the command line. Pure
    addresses     address lists of header fields. Pure
    header        recipients in a header, and what is missing there. Pure
    drop_format   the format of a dropped file. Pure
    users         who may
    places        the directories, and which modes are safe
    message       the message on standard input
    drop          a message into the drop directory
    sending       to the server, or into the drop directory
    line_ends     line ends of `sendmail -bs`. Pure
    smtp_session  `sendmail -bs`
    command       the commands
    shelf         the drop directory as the server sees it
    pickup        dropped messages into the queue
    service       the server's side
"""
