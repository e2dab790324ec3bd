"""Changing one element of a configuration file, and nothing else in it.

Modules, each with what it is:

    path            paths as `config show` prints them, resolved against the table. Pure
    escape          values as XML writes them. Pure
    layout          where a new element goes, and how it looks there. Pure
    change          setting and removing an element of a text. Pure
    replacement     the file: locked, read, replaced whole
"""
