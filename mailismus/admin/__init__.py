"""Administration of the queue: commands, the admin socket, the shell.

Rooms, bottom first; a room imports itself and the rooms above it in this list:

    model       counts and shapes of search results. Pure
    protocol    lines of JSON over the admin socket, and the socket's file
    render      entries and messages as text and JSON. Pure
    server      the admin task of the running server: sessions, answers
    client      sources of a queue for commands: the running server, or files
    commands    the commands, the shell, their help texts
"""
