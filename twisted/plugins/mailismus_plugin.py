"""The plugin that gives `twistd` and `twist` the command `mailismus`. The directories here have no __init__.py."""

from twisted.application.service import ServiceMaker
from twisted.python import usage


class _Maker(ServiceMaker):
    """Every run of twistd imports this module, whatever it is to run: what is done for ours alone begins in `options`."""

    @property
    def options(self) -> type[usage.Options]:
        """Asked for once the command line says that it is ours: signals are remembered before anything is loaded."""
        from mailismus.start.signals import remember

        remember()
        options: type[usage.Options] = super().options
        return options


mailismus = _Maker("Mailismus", "mailismus.run", "A mail queue server.", "mailismus")
