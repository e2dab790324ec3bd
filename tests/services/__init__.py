"""Real services on loopback for tests of the distributed queue: RabbitMQ, Cassandra, and Swift with its S3 interface.

    python -m tests.services fetch                    # Cassandra, by Maven, once
    python -m tests.services up                       # all three; `up rabbitmq swift`: these
    python -m tests.services up --replicated          # three nodes of RabbitMQ and Cassandra: cassandra-1 ...
    python -m tests.services status
    python -m tests.services slow cassandra 2
    python -m tests.services down

One process, the keeper, owns the services. It ends with the process that called `up` (or that of `--for PID`): then the
services are killed and their directory is removed. If the keeper itself is killed, the kernel kills the services, and the
next command removes the directory.

The modules, bottom first:

    places      the directory of the services, who owns it, and what an earlier keeper has left
    missing     what a service needs of the machine and is not there, in a sentence
    jars        Cassandra's jars: fetched by Maven, pinned, compared with their checksums
    seat        which node of a service it is, and what its nodes have in common
    node        one process of a service: started, signalled, killed with the keeper
    front       a TCP port before a service, where its answers can be slowed down
    asking      one question to what listens at a port
    service     what every service can do: start, stop, kill, freeze, thaw, slow, fill, wipe, restart
    rabbitmq    a node of RabbitMQ
    role        a user of Cassandra who is no superuser
    cassandra   a node of Cassandra
    swift       Swift's four servers and memcached
    kinds       the services by name
    control     requests to the keeper, and its answers
    keeper      the process that owns the services
"""
