"""The fixture that runs a command line."""

import shlex
import sys

import pytest

from legged.app.cli import main


@pytest.fixture
def cli(monkeypatch, capsys):
    """Return a function that runs a command line and gives (exit status, stdout, stderr)."""

    def run(line: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["legged", *shlex.split(line)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return run
