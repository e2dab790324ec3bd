"""Texts generated from the table. Pure.

Modules, each with what it is:

    sample      `config/mailismus.xml`
    schema      `config/mailismus.rng`, RELAX NG
    manual      the page of settings
    roff        text as man pages
"""
