"""The configuration: one table of settings, and everything made from it.

Rooms, bottom first; a room imports itself and the rooms above it in this list:

    values      settings as frozen values, and how people write times, sizes, names and networks. Pure
    table       every setting once: kind, default, sentence, example. Pure
    read        from the XML file to `Settings`: document, check, assembly, files that the configuration names
    advice      combinations of valid values that make no sense, or do not fit this host
    generate    the sample, the RELAX NG schema and the manual pages. Pure
    edit        changing one element of the file

Everyone may import `values`; `read` is for the top alone.
"""
