"""From the XML file to `Settings`.

Modules, each with what it is:

    encoding        the bytes of an XML file as text
    source          where tags, attributes and values stand in that text
    files           every file that is read, once a load
    document        the XML file as a tree of elements with line numbers
    lists           domains and users, in the file or in files that it names
    certificates    certificates and private keys of listeners, and towards other servers
    tls             TLS towards other servers
    auth            files with secrets, and credentials for relays
    hostname        the full name of this host
    check           the document against the table: a value for each setting
    providers       settings of other queue providers, refused
    effective       every setting in force, with its origin
    relays          relay rules, checked against each other
    destinations    limits of some domains, checked against each other
    listeners       listeners, checked against each other
    sendmail        what the server and the command `sendmail` need of `<sendmail>`
    web             `<web>` of `<admin>`
    services        the services of a shared queue
    assemble        checked values to `Settings`
    changes         the difference between two configurations
    load            all of the above, for one file
"""
