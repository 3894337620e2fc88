"""Computed part of `docs/explanation/architecture.md`: lines of code of each capability, here and in other projects."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from benchmarks.pages.parts import Part, table

ROOT = Path(__file__).parents[2]
PEERS = ("mjlab", "JaxSim", "RigidBodyDynamics.jl")
CAPABILITIES: dict[str, tuple[tuple[str, ...], tuple[int, int, int]]] = {
    "robot and state": (("robot", "conversions"), (1333, 6813, 4907)),
    "algebra and dynamics": (
        ("dynamics", "denoc", "algorithms", "spatial.py", "rotations.py", "taylor.py", "moving_coordinates.py"),
        (0, 2958, 2486),
    ),
    "closed loops": (("loops",), (0, 345, 0)),
    "contact and ground": (("contact", "ground"), (1865, 2844, 251)),
    "robot files": (("files",), (0, 2501, 442)),
    "compiler, numbers of other types": (("compiler", "elements"), (0, 0, 0)),
    "simulation and its results": (("simulation", "sensors"), (492, 497, 318)),
    "derivatives by states of contact": (("differentiation",), (0, 0, 0)),
    "optimal control": (("optimization",), (0, 0, 0)),
    "identification": (("identification",), (0, 0, 0)),
    "estimation and deployment": (("estimation", "deployment"), (0, 0, 0)),
    "controllers and gaits": (("../controllers",), (0, 0, 124)),
    "environments and learning": (("environments", "learning"), (7045, 0, 0)),
    "studies of many trials": (("sweeps",), (0, 0, 0)),
    "pictures and pages": (("viewer",), (3162, 2001, 0)),
    "ready-made robots": (("../robots",), (466, 0, 0)),
}
"""Capability -> files and folders of `legged` that have it, and lines in the peers, counted as the page says."""
TOTALS = (18907, 18891, 8916)
"""Lines of all files of the peers' packages."""


def lines(paths: Iterable[Path]) -> int:
    """Return the number of lines of Python in files and folders, of those that exist."""
    files = {file for path in paths for file in ([path] if path.is_file() else path.rglob("*.py"))}
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)


def sizes() -> str:
    """Return the table of lines for each capability; the last rows have the rest and the sum."""
    package, rows = ROOT / "legged", []
    used, peers_used = 0, [0, 0, 0]
    for name, (places, peers) in CAPABILITIES.items():
        own = lines(package / place for place in places)
        used, peers_used = used + own, [a + b for a, b in zip(peers_used, peers, strict=True)]
        if own:
            rows.append((name, own, *peers))
    whole = lines(ROOT / name for name in ("legged", "controllers", "robots"))
    rows.append(("other", whole - used, *(a - b for a, b in zip(TOTALS, peers_used, strict=True))))
    rows.append(("all", whole, *TOTALS))
    texts = [(name, *(str(round(n, -1)) if n else "-" for n in numbers)) for name, *numbers in rows]
    return table(("capability", "legged", *PEERS), texts)


PARTS = {"sizes": Part("explanation/architecture.md", sizes, relative=0.25)}
