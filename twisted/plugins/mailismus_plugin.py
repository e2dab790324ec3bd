"""The plugin that gives `twistd` and `twist` the command `mailismus`. The directories here have no __init__.py."""

from twisted.application.service import ServiceMaker

mailismus = ServiceMaker("Mailismus", "mailismus.start.maker", "A mail queue server.", "mailismus")
