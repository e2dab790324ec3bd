"""`IObjects` by HTTP: S3 (AWS Signature Version 4), and Swift's own API (version 1, with its token).

Modules, bottom first:

    sigv4       signatures of requests. Pure
    listing     pages of keys, as the stores write them. Pure
    fullness    which answers say that there is no room. Pure
    body        what is sent and what is read, at the pace of the other side
    agent       one request and its answer
    store       `HttpObjects`: the calls that both kinds share
    s3          requests of S3
    swift       requests of Swift
"""
