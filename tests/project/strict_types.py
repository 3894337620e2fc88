"""Check the examples and a new user's script with pyright in strict mode, against `legged` as an installed package.

`make lint` runs it. The scripts are checked in a folder and a virtual environment of their own, in which pyright finds
the packages as installed libraries: names that they do not export and types that they leave unknown are errors.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXAMPLES = [path for path in sorted((ROOT / "examples").glob("*/*.py")) if path.parent.name != "studies"]
SCRIPTS = [*EXAMPLES, ROOT / "tests/project/data/newcomer.py"]
OPTIONS = {
    "typeCheckingMode": "strict",
    "pythonVersion": "3.11",
    "reportMissingTypeStubs": False,  # the studies, which two examples use, are no typed package
    "reportUnknownMemberType": False,  # the methods of Matplotlib's figures have untyped parameters
}


def check(scripts: list[Path], folder: Path) -> subprocess.CompletedProcess[str]:
    """Return the result of pyright for copies of some scripts in an empty folder."""
    environment = folder / "environment"
    venv.create(environment, with_pip=False, symlinks=sys.platform != "win32")
    python = environment / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    command = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = Path(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())
    installed = [ROOT, *(path for path in sys.path if path.endswith("site-packages"))]
    (packages / "installed.pth").write_text("".join(f"{path}\n" for path in installed))
    for script in scripts:
        shutil.copy(script, folder)
    (folder / "pyrightconfig.json").write_text(json.dumps(OPTIONS | {"include": ["*.py"]}))
    command = [sys.executable, "-m", "pyright", "--pythonpath", str(python), "--project", str(folder)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        result = check(SCRIPTS, Path(name))
    print(result.stdout, result.stderr, sep="")
    sys.exit(result.returncode)
