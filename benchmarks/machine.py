"""On what is measured: the computer, the programs, the source."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.record import Record
from legged.compiler.codegen import llvm
from legged.compiler.runtime.threads import default_threads
from legged.version import __version__

PROGRAMS = ("numpy", "llvmlite", "pin", "mujoco", "example-robot-data")


def begin() -> Record:
    """Return an empty record of a run on this computer, now."""
    date = datetime.now(UTC).isoformat(timespec="seconds")
    return Record(describe(), versions(), date, commit())


def describe() -> dict[str, Any]:
    """Return processor, cores, width of its vectors, and system."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count() or 1,
        "threads": default_threads(),
        "numbers in a vector": llvm.vector_width(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def versions() -> dict[str, str]:
    """Return the versions of Python, of this package and of what it is compared with, as far as they are installed."""
    found = {"python": platform.python_version(), "legged": __version__}
    for name in PROGRAMS:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def commit() -> str:
    """Return the commit of the source, with "+" if files have changed since; nothing outside of a repository."""
    here = Path(__file__).parents[1]

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(here), *words], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        return git("rev-parse", "--short", "HEAD") + "+" * bool(git("status", "--porcelain", "--untracked-files=no"))
    except (OSError, subprocess.CalledProcessError):
        return ""


def _processor() -> str:
    """Return the processor's name as the system tells it, beside what LLVM takes it for."""
    name = platform.processor()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), name)
    except OSError:
        pass
    return f"{name} ({llvm.target_description().split()[1]})"
