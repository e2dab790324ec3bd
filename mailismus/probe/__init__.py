"""The probe: what other servers show of TLS when the deliverer connects with them. The command `mailismus tls`.

Modules, leaves first:

    certificate   a certificate as people read it. Pure
    report        what one host showed, and what follows. Pure
    render        reports as text and JSON. Pure
    target        the next hop that a host, relay or domain means
    transcript    which command had which reply. Pure
    assess        from the connections with a host to its report. Pure
    session       one connection: the deliverer's own, without mail
    search        all hosts of a next hop, some at a time
    run           from the words of the command line to what is printed
    wording       help texts. Pure
    command       the command line
"""
