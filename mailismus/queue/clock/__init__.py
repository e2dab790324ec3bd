"""Time of day that may jump, and the ages of messages all the same.

Modules, each with what it is:

    ages        the age of a message, whatever the clock did. Pure
    clockwatch  time of day, and whether the clock jumped
    dating      messages with their age, for reports and listings
"""
