"""What a host must show before it gets mail, and what follows where it does not. Pure.

Modules, leaves first:

    profile     what mail demands of a host: the requirement, and the credentials
    policy      the profile of a next hop: by relay, destination and `<client>`
    names       whether a certificate is for a name that counts
    failure     how TLS can fail, and what is said of it
    fallback    hosts whose TLS does not work
    warnings    each failure is told once an hour
"""
