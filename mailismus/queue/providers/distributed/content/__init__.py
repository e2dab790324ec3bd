"""Contents of messages: while they arrive, in memory, and in the object store.

Modules:

    draft       a message while it arrives
    kept        contents in memory, within a budget
    ahead       small contents are fetched before they are asked for
    absent      contents that are not where they should be. Pure
    looking     looks for them while mail is stopped
    stored      contents from the object store, checked
    whole       a content in memory, as an object store takes it
"""
