"""Settings as values, and how people write them. Pure.

Modules, each with what it is:

    effective     one setting in force, as it is shown
    tls           levels of TLS towards other servers, and what each `<tls>` demands
    auth          credentials for relays
    services      the services of a shared queue
    settings      the whole configuration as frozen values
    certificates  certificates that the configuration names, and when they end
    units         numbers, times, sizes, booleans, lists
    names         domains, users, hosts with ports, paths with tokens
    networks      CIDR blocks
    open_files    how the open-file limit is shared by connections
"""
