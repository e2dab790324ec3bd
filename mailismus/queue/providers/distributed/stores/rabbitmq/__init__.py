"""`IBroker` by RabbitMQ 3.10 or later, with pika on the reactor.

Queues are quorum queues, without a limit of deliveries: RabbitMQ counts lost connections too, and would throw healthy mail
away. Modules, bottom first:

    guarding    why the broker refused a connection
    connection  the connection, made when it is needed
    confirming  publishes and their confirms
    consuming   consumers
    client      `RabbitBroker`
"""
