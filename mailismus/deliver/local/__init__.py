"""Deliveries into maildirs.

Modules, leaves first:

    deposit       one message into one maildir
    turns         which local delivery is next, by sender, message and user. Pure
    pace          how many local deliveries at a time the disk serves well. Pure
    hanging       local deliveries that hang. Pure
    file_systems  the file system of each maildir, by the mount table
    watch         finds hanging local deliveries and logs them
    deliveries    all local deliveries: their threads, turns and ends
"""
