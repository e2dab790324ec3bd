"""Authentication by SASL in SMTP, the client's side (RFC 4954, RFC 4422). Pure: secret, nonce and channel binding are
arguments.

Modules, bottom first:

    response      base64 of challenges and responses; bytes that hold a secret, overwritten after use
    mechanism     what each mechanism does, and its faults
    plain         PLAIN (RFC 4616)
    login         LOGIN
    xoauth2       XOAUTH2: a bearer token
    cram_md5      CRAM-MD5 (RFC 2195)
    scram         SCRAM-SHA-256 and SCRAM-SHA-256-PLUS (RFC 5802, RFC 7677)
    key_memory    keys that SCRAM derived from a password
    selection     which mechanism is used; the mechanisms by name
    exchange      the AUTH command, challenges, responses, and the verdict
"""
