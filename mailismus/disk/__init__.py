"""The file system and worker threads.

Modules, each with what it is:

    interface   `IDisk`, `IFile`: every file operation of queue and spool, and what is durable after it
    posix       `IDisk` over system calls
    presence    whether what was opened still has its name
    worker      `IWorker`: blocking calls run in threads, their results come back in the reactor's thread
"""
