"""What importing costs: every script pays it, however warm its start."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import legged

SLOW = ("importlib.metadata", "matplotlib", "mujoco", "networkx", "rich", "scipy", "typer", "yourdfpy")
"""Libraries that take long to load and that only some uses need."""


def test_importing_loads_no_library_before_it_is_needed():
    program = f"import legged, controllers, robots, sys; print([m for m in {SLOW} if m in sys.modules])"
    environment = {**os.environ, "PYTHONPATH": str(Path(legged.__file__).parents[1])}
    command = [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {program}"]
    assert subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout == "[]\n"
