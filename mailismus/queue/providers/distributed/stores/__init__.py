"""The three stores of a shared queue: what each promises, and the clients of real services.

Each interface says what is durable after a call, in what order things happen, and what a failure tells. The models of
`tests/distributed/models` and the clients pass one suite, `tests/distributed/conformance`.

Modules, bottom first:

    failure     how a call of a store may fail: not done, or unanswered
    together    calls that are under way at the same time
    in_time     a call that is given up at a time
    quiet       connections without a line in the log
    broker      `IBroker`: queues of triggers
    rows        `IRows`: partitions of rows, by key
    objects     `IObjects`: contents, by key
    stores      the three of one queue
    libraries   the packages that the clients need, or the exit that names them
    rabbitmq    `IBroker` by RabbitMQ
    cassandra   `IRows` by Cassandra
    http        `IObjects` by S3 and by Swift
"""
