"""Every public function gives the shape, unit and frame of every array that it takes or returns."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from docstrings import ROOT, findings, lacks

FILES = [path for package in ("legged", "controllers", "robots") for path in sorted((ROOT / package).rglob("*.py"))]


@pytest.mark.parametrize("package", sorted({path.relative_to(ROOT).parent for path in FILES}))
def test_arrays_of_public_functions_are_described(package):
    files = [path for path in FILES if path.relative_to(ROOT).parent == package]
    defects = [
        f"{path.name}: {name}: {'; '.join(defects_of)}"
        for path in files
        for name, defects_of in findings(path)
        if defects_of
    ]
    assert not defects


def test_the_check_notices_what_is_missing():
    assert lacks("Points, (n, 3), [m], world axes.", "points") == ""
    assert lacks("Points, [m], world axes.", "points") == "points: no shape"
    assert lacks("Points, (n, 3), world axes.", "points") == "points: no unit"
    assert lacks("Points, (n, 3), [m].", "points") == "points: no frame"
    assert lacks("Configuration, (nq,).", "q") == ""


def test_a_file_with_an_undescribed_array_is_found(tmp_path):
    file = tmp_path / "example.py"
    file.write_text('def f(r: Array) -> Array:\n    """Return twice r."""\n\n\ndef _g(r: Array) -> Array: ...\n')
    assert dict(findings(file)) == {"f": ["r: not described", "return: no shape"]}
