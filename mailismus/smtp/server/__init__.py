"""The server side of SMTP.

Modules, bottom first:

    receiver   interface: what the server engine asks and tells about mail
    state      states, events and transitions of a session
    limits     limits of a session, its kind of TLS
    commands   table: what each command means in each state
    framing    bytes to lines and content, one question at a time
    engine     the server engine: commands and content, from greeting to QUIT
"""
