"""The packages of the clients: named with the command that installs them, and loaded by nobody else."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from mailismus.errors import StartError
from mailismus.queue.providers.distributed.stores import libraries


def test_without_the_packages_the_exit_names_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "PACKAGES", {"no_such_module": "no-such-package", "also_none": "another"})
    with pytest.raises(StartError) as refused:
        libraries.require_packages()
    error = refused.value
    assert (error.status, error.setting) == (os.EX_CONFIG, "mta/queue/@provider")
    needs, _, command = error.text.partition(": ")
    assert needs == "provider distributed needs no-such-package and another, not installed here"
    assert command == "pip install 'mailismus[distributed]'"


def test_a_server_of_another_provider_loads_nothing_of_it() -> None:
    code = "import sys, mailismus.app, mailismus.__main__; print([m for m in sys.modules if m.split('.')[0] in "
    code += "('pika', 'cassandra') or 'distributed' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
