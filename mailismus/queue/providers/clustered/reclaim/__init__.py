"""Removal of message bytes that no entry needs.

Modules, each with what it is:

    reference_scan  reads every line of the queue to learn which messages are referenced
    release         removes message files after their last entry
"""
