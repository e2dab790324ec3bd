"""A queue that several servers share: RabbitMQ, Cassandra, and S3 or Swift. Not complete: no configuration can name it yet.

Rooms, bottom first:

    stores      what the queue asks of a broker, a database and an object store: interfaces and clients
    format      tables, slices and triggers. Pure
    view        the settings of slices and buckets, and the record of what they were
    setup       makes what a queue needs in its stores, and tells what is missing
    identity    epochs, and the ids of messages
    enqueue     how a message gets in
"""
