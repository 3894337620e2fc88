"""Compute numbers of the documentation and compare them with the pages: `python -m benchmarks.pages [--write] [NAME]`.

Without names all parts are computed, which takes some minutes; `--write` writes what differs into the pages.
"""

from __future__ import annotations

import argparse
import sys

from benchmarks.pages import PARTS
from benchmarks.pages.parts import DOCS, differences, replaced, written


def main() -> None:
    """Compare, or write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pages", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--write", action="store_true", help="write the parts that differ into the pages")
    options = parser.parse_args()
    if unknown := set(options.names) - set(PARTS):
        parser.error(f"unknown parts: {', '.join(sorted(unknown))}")
    stale = False
    for name in options.names or PARTS:
        part = PARTS[name]
        path = DOCS / part.page
        text = path.read_text(encoding="utf-8")
        computed = part.compute()
        differing = differences(written(text).get(name, ""), computed, part.relative, part.absolute)
        print(f"{name}: {'; '.join(differing[:5]) if differing else 'as stated'}", flush=True)
        if differing and options.write:
            path.write_text(replaced(text, name, computed), encoding="utf-8")
        stale |= bool(differing)
    sys.exit(int(stale and not options.write))


if __name__ == "__main__":
    main()
