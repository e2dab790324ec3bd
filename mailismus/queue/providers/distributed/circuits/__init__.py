"""Circuits: a store that fails is left alone, and asked now and then whether it is well again.

Modules, bottom first:

    circuit     what is known of one store, and whether it is asked. Pure
    guarded     the stores behind their circuits
    probing     asks a store that is left alone
"""
