"""Administration of the queue: commands, the admin socket, the shell.

Rooms, bottom first; a room imports itself and the rooms above it in this list:

    model       counts and shapes of what a search finds. Pure
    protocol    lines of JSON over the admin socket, and the socket's place
    render      how entries and messages are printed. Pure
    server      the admin task of the running server: sessions, answers
    client      where a command gets the queue from: the running server, or files
    commands    the commands, the shell, their help texts
"""
