"""A Markdown page with figures and tables, built up piece by piece."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from legged.app.style import save
from legged.table import Table


class Page:
    """A page in a folder, its figures beside it under `figures/`."""

    def __init__(self, folder: Path, title: str):
        self.folder = folder
        self.parts = [f"# {title}"]
        self.figures: list[Path] = []

    def heading(self, words: str) -> None:
        """Add a heading."""
        self.parts.append(f"## {words}")

    def text(self, words: str) -> None:
        """Add a paragraph."""
        self.parts.append(words)

    def table(self, table: Table) -> None:
        """Add a table."""
        self.parts.append(table.markdown())

    def figure(self, figure: Figure, name: str, words: str) -> None:
        """Save a figure as `figures/<name>.png` and show it with a caption."""
        path = save(figure, self.folder / "figures" / f"{name}.png")
        self.figures.append(path)
        self.parts.append(f"![{words}]({path.relative_to(self.folder).as_posix()})\n\n*{words}*")

    def write(self, name: str = "report.md") -> Path:
        """Write the page and return its path."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / name
        path.write_text("\n\n".join(self.parts) + "\n", encoding="utf-8")
        return path
