"""The file system and worker threads.

Modules, each with what it is:

    interface   `IDisk`, `IFile`: file operations of queue and spool, with the durability of each
    file_system a barrier over a whole file system, where its answer can be trusted
    posix       `IDisk` over system calls
    presence    whether open objects still have their names
    trigger     a named pipe that tells a server to look
    several     several blocking calls at a time, waited for together
    worker      `IWorker`: blocking calls run in threads, their results come back in the reactor's thread
"""
