"""How a message gets into the shared queue: content, rows, then a trigger or a due row; durable before it is answered.

Modules:

    plan        what is written and published for a submission. Pure
    steps       the steps, each repeated until it is answered, in their order
"""
