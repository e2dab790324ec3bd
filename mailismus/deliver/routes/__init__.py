"""Where a recipient's mail goes: its route, and the hosts of that.

Modules, leaves first:

    route     a recipient's route: local, LMTP, relay, MX, or none. Pure
    locator   the hosts of a next hop, by preference
    assembly  the locator of a configuration, with the resolvers that it asks
"""
