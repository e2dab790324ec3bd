"""Messages, listings and shapes as text, JSON and pictures. Pure.

Modules, each with what it is:

    content     a stored message: unstuffed, harmless for a terminal
    listing     entries like `mailq`, or as JSON
    screen      a listing folded to the terminal's width
    attempts    attempts of an entry, as lines and rows
    picture     the shape of a queue as SVG
    why         why entries are still there, a line each
    servers     servers of a shared queue
    message     one message: envelope, recipients, attempts
"""
