"""DNS: a client of recursive name servers that finds mail hosts.

Modules, each with what it is:

    name        domain names as text. Pure
    answer      result for one name and record type. Pure
    servers     name servers, who of them is believed, and their order of use. Pure
    guard       limits of a message, before it is read. Pure
    message     queries and responses: what is asked, what is believed. Pure
    cache       answers by question, until they expire. Pure
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

dnspython writes and reads messages. Its package is `dns`, ours is `mailismus.dns`.
"""
