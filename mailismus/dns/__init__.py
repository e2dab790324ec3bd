"""Names to mail hosts: a client of recursive name servers.

Modules, each with what it is:

    name        domain names: text and wire form. Pure
    answer      what is known of one name and record type. Pure
    message     queries and responses as bytes. Pure
    cache       answers by question, until they expire. Pure
    servers     name servers and the order in which they are asked. Pure
    randomness  interface of a random source
    counters    counters of the client
    addresses   which addresses mail may go to. Pure
    choice      MX, A and AAAA records to hosts in order. Pure
    sockets     one UDP socket, and the TCP connection after it
    attempt     one server, one question
    question    one question, one server after the other
    client      the client: cache, questions under way, servers
    hosts       host names of relays to addresses
    mx          a recipient's domain to mail hosts
    system      /etc/resolv.conf, /etc/hosts, addresses of this host
"""
