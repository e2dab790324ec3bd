"""DNS: a client of recursive name servers that finds mail hosts.

Modules, each with what it is:

    name        domain names: text and wire form. Pure
    answer      result for one name and record type. Pure
    message     queries and responses as bytes. Pure
    cache       answers by question, until they expire. Pure
    servers     name servers and their order of use. Pure
    randomness  interface of a random source
    counters    counters of the client
    addresses   addresses that mail may be sent to. Pure
    choice      mail hosts from MX, A and AAAA records. Pure
    sockets     one UDP socket, and its TCP fallback
    attempt     one question to one server
    question    one question to several servers in turn
    client      the client: cache, questions under way, servers
    hosts       host names of relays to addresses
    mx          a recipient's domain to mail hosts
    system      /etc/resolv.conf, /etc/hosts, addresses of this host
"""
