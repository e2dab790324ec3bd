"""The view: how the projection is divided into slices and buckets, and the history of these settings.

Modules:

    change      which change is allowed, and how rows of all settings are found. Pure
    history     the record of all settings, which servers add to one after the other
    current     the settings in force, once a start has adopted them
"""
