"""The three stores in memory, for several clients, with a fate for each call.

fates       done, not done, done and not answered, done late, never done
broker      `BrokerModel`
rows        `RowsModel`
objects     `ObjectsModel`
"""
