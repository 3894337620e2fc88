"""The fixture that runs a command line."""

import shlex
import sys

import pytest
import typer.main

from legged.app import cli as command_line


@pytest.fixture(scope="session")
def parser():
    """Return the parser of the command line, which typer makes anew at each call, in a tenth of a second."""
    return typer.main.get_command(command_line.app)


@pytest.fixture
def cli(monkeypatch, capsys, parser):
    """Return a function that runs a command line and gives (exit status, stdout, stderr)."""
    monkeypatch.setattr(command_line, "app", parser)

    def run(line: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["legged", *shlex.split(line)])
        with pytest.raises(SystemExit) as ended:
            command_line.main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return run
