"""Dump: prints readably what lies in the stores, and a server's own files.

Modules:

    cells   a row as it is, and a share in words. Pure
    stored  a message, a share or a partition, from the stores
    files   the files of a server's own directory
"""
