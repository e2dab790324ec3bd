"""A queue that several servers share: RabbitMQ, Cassandra, and S3 or Swift. Not complete: no configuration can name it yet.

Rooms, bottom first:

    stores      what the queue asks of a broker, a database and an object store: interfaces and clients
"""
