"""Pictures that open replays: the directive `replay`, and the files that the programs of a page write for it.

A Python block of `gallery.md` whose first line is `# NAME.py` is a program that writes the picture NAME.gif and the
page NAME.html. The programs run one after the other beside the build, in the folder `gallery` of the site, and again
only after a change of their text.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from html import escape
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

PAGE = "gallery"
PROGRAM = re.compile(r"^```python\n(# (\w+)\.py\n.*?)^```$", flags=re.MULTILINE | re.DOTALL)
ROOT = Path(__file__).parents[2]
running: list[Future[None]] = []


class Replay(Directive):
    """A picture that opens a replay: the name of its program, and the text that stands for the picture.

    The option `picture` names another picture than the one that the program writes.
    """

    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar = {"picture": str}

    def run(self) -> list[nodes.Node]:
        name, _, words = self.arguments[0].partition(" ")
        if "picture" in self.options:
            link = nodes.reference("", "", refuri=f"{PAGE}/{name}.html")
            link += nodes.image(uri=self.options["picture"], alt=words)
            return [nodes.paragraph("", "", link)]
        picture = f'<img src="{PAGE}/{name}.gif" alt="{escape(words)}" title="open the replay">'
        return [nodes.raw("", f'<p><a href="{PAGE}/{name}.html">{picture}</a></p>', format="html")]


def start(app: Sphinx) -> None:
    """Run the programs of the page in a thread."""
    if app.builder.format != "html":
        return
    text = (Path(app.srcdir) / f"{PAGE}.md").read_text(encoding="utf-8")
    folder = Path(app.outdir) / PAGE
    folder.mkdir(parents=True, exist_ok=True)
    pool = ThreadPoolExecutor(1)
    running.extend(pool.submit(run, code, name, folder) for code, name in PROGRAM.findall(text))
    pool.shutdown(wait=False)  # `finish` waits for the programs


def run(code: str, name: str, folder: Path) -> None:
    """Run a program in a folder unless its files are there.

    Raises:
        ExtensionError: The program fails or does not write its files.
    """
    program, files = folder / f"{name}.py", [folder / f"{name}.gif", folder / f"{name}.html"]
    if program.exists() and program.read_text(encoding="utf-8") == code and all(file.exists() for file in files):
        return
    program.write_text(code, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, program.name], cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode or not all(file.exists() for file in files):
        program.unlink()
        raise ExtensionError(f"the program {name}.py of {PAGE}.md fails:\n{done.stdout}{done.stderr}")


def finish(app: Sphinx, error: Exception | None) -> None:
    """Wait for the programs, and raise their errors."""
    for future in running:
        future.result()


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the parts of this extension to Sphinx."""
    app.add_directive("replay", Replay)
    app.connect("builder-inited", start)
    app.connect("build-finished", finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
