"""The shared queue over the real services: for the contract of a queue, for damages, and for servers that are processes.

All tests of a module use the same tables, queues and bucket. Each test has its own names in them, so that nothing is made,
and nothing has to be emptied, for one test alone. Servers that are processes have a site of their own.

    wire        the calls of one server, which can be counted, and cut off
    own         stores in which a test sees what is its own, and nothing else
    place       what the tests share: the tables, the queues, the bucket
    harness     a server over the services, which stops, crashes, and loses the services
    commands    commands over the services, in the world of a test
    plain       the services by clients that are not ours
    damaged     a stopped queue whose stores are damaged
    site        a queue for servers that are processes, and for commands that make their own clients
"""
