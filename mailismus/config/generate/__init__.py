"""Texts generated from the table. Pure.

Modules, each with what it is:

    sample      `config/mailismus.xml`
    schema      `config/mailismus.rng`, RELAX NG
    validation  the schema applied to a file
    manual      the page of settings
    roff        text as man pages
"""
