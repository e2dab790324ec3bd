"""The web page `<web>`: the figures of `top`, the history of the last day, a search over the queue, and one message.
It reads only; acts are for the command line.

    request -> wire.guard -> site -> (search, overviews, history) -> pages -> wire.answer

Rooms and modules, bottom first; a room is imported by itself and by those behind it:

    wire        HTTP: connections and their limits, who may ask, the header fields of answers
    history     samples of the last day, in memory and in a state file
    pages       what is shown, as values, and its templates
    pictures    the latest overviews, shared by all who look
    search      entries by a filter, within bounds; the header of a message
    site        a path to its page
    task        the whole of it, from the start to the end
    assembly    the same, where the configuration asks for it
"""
