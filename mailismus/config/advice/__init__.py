"""Advice on a configuration whose values are each valid.

Modules, each with what it is:

    sentence      one sentence of advice. Pure
    delivery      limits of delivery that limit nothing, destinations that never match. Pure
    values        rules that never match, networks that overlap, times that contradict each other. Pure
    certificates  certificates that end soon, have ended or have not begun. Pure
    host_probe    what this host says of paths, users, ports and addresses
    places        directories, files, ports and addresses on this host. Pure: the host is a parameter
"""
