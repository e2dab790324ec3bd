"""The three stores in memory, for several clients, with a fate for each call.

host        the clock of a process that may be frozen or killed
fates       done, not done, done and not answered, done late, never done
broker      `BrokerModel`
rows        `RowsModel`
objects     `ObjectsModel`
"""
