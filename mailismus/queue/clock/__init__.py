"""Time of day that may jump, and ages of messages that do not.

Modules, each with what it is:

    ages        the age of a message, corrected for jumps of the clock. Pure
    clockwatch  time of day, and whether the clock jumped
    elapsed     the time that passed
    dating      messages with their corrected arrival, for reports and listings
"""
