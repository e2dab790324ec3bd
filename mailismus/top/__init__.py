"""The live screen `mailismus top`: rates, areas, next hops, what holds mail back, and the last failures.

    overview, earlier overview -> observe.figures -> (state <- keys) -> layout -> terminal

Modules, leaves first:

    cells     texts of others as cells of a terminal. Pure
    wording   help texts. Pure
    plot      rates as blocks of a terminal. Pure
    state     what is shown, and what a key changes. Pure
    table     rows of next hops, failures and holds, sorted and filtered. Pure
    head      the lines above the table. Pure
    detail    one next hop or failure in full. Pure
    layout    the whole screen as styled lines. Pure
    feed      asks the server, in threads
    terminal  keys and lines at a terminal, by urwid
    run       the screen from its begin to its end
    command   the command
"""
