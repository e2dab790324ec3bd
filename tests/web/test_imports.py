"""The libraries of the page are imported where it is written, and nowhere else."""

from __future__ import annotations

import subprocess
import sys

CODE = """\
import sys
import mailismus.app, mailismus.run, mailismus.__main__
from mailismus.config.read.load import default_settings
from mailismus.web.assembly import bind_web
assert bind_web(default_settings(sys.argv[1])) is None
print(sorted(name for name in ("jinja2", "twisted.web.http", "mailismus.web.site") if name in sys.modules))
"""


def test_a_server_without_the_page_imports_nothing_of_it() -> None:
    done = subprocess.run([sys.executable, "-c", CODE, "/tmp"], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
