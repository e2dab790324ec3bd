"""The table of settings: each setting once, with its kind, default and description. Pure.

Modules, each with what it is:

    kinds           kinds of values: parsing, printing, schema pattern
    words           `Setting` and `Block`: what a table consists of
    application     `<application>`, `<directory>`, `<message_store>`, `<admin>`
    services        the services of the shared queue, in `<queue>`
    queue           `<queue>`
    sendmail        `<sendmail>`
    submit          `<submit>`
    tls             `<tls>`
    auth            `<auth>`
    deliver         `<deliver>`
    report          `<report>`
    root            the whole file
"""
