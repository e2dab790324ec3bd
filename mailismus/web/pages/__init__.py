"""Pages: values to HTML.

Modules, each with what it is:

    templates   templates, style, script and icon, read once; everything printed in a template is escaped
    plot        a plot of values over a day as paths of SVG. Pure
    front       the figures of the server. Pure
    day         the history of the last day. Pure
    listing     entries that were searched for. Pure
    message     one message with its entries. Pure
"""
