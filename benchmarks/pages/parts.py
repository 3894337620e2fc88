"""Parts of the documentation that are computed: their marks in the pages, and the comparison of their numbers.

A page marks a part, a table or sentences, by its name:

    <!-- computed: NAME -->

    | friction | flight [ms] |
    | --- | ---: |
    | 0.8 | 225 |

    <!-- end -->

The function of the same name, in `PARTS`, returns the Markdown between the marks.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

DOCS, EXAMPLES = (Path(__file__).parents[2] / name for name in ("docs", "examples"))
_MARKED = re.compile(r"<!-- computed: ([\w-]+) -->\n\n(.*?)\n\n<!-- end -->", flags=re.DOTALL)
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?!\w)")


class Part(NamedTuple):
    """A part of a page.

    Attributes:
        page: Name of the page, relative to `docs`.
        compute: Function that returns its Markdown.
        relative: Largest relative difference of a number, beside one unit of its last digit: 0 for counts and for
            simulations without chaos, 0.9 for rounding errors, of which the order of magnitude is stated.
        absolute: Differences of numbers up to this are none, such as 1e-15 of rounding errors.
        slow: Whether it takes more than some seconds.
    """

    page: str
    compute: Callable[[], str]
    relative: float = 0.0
    absolute: float = 0.0
    slow: bool = False


def written(text: str) -> dict[str, str]:
    """Return the parts of the text of a page: name -> Markdown."""
    return dict(_MARKED.findall(text))


def replaced(text: str, name: str, markdown: str) -> str:
    """Return the text of a page with other Markdown in a part."""
    return _MARKED.sub(
        lambda match: f"<!-- computed: {name} -->\n\n{markdown}\n\n<!-- end -->" if match[1] == name else match[0], text
    )


def differences(old: str, new: str, relative: float = 0.0, absolute: float = 0.0) -> list[str]:
    """Return the differences of two texts, apart from line breaks and numbers that are nearly equal.

    Numbers are nearly equal if they differ by at most the absolute difference, the relative one and one unit of the
    last digit that both state.
    """
    (words, numbers), (other_words, others) = _split(old), _split(new)
    if words != other_words:
        return [f"words: {a!r} is {b!r}" for a, b in zip_longest(words, other_words, fillvalue="") if a != b]
    return [f"{a} is {b}" for a, b in zip(numbers, others, strict=True) if not _nearly_equal(a, b, relative, absolute)]


def _split(text: str) -> tuple[list[str], list[str]]:
    plain = " ".join(re.sub(r"\|[ :|-]+\|(?=\n)", "", text).split())
    return [part.strip() for part in _NUMBER.split(plain)], _NUMBER.findall(plain)


def _nearly_equal(a: str, b: str, relative: float, absolute: float) -> bool:
    x, y = float(a), float(b)
    unit = max(_unit(a), _unit(b)) if relative or "." in a or "e" in a else 0.0
    return abs(x - y) <= absolute + relative * max(abs(x), abs(y)) + 1.0001 * unit


def _unit(number: str) -> float:
    """Return the value of one unit of the last digit of a number."""
    mantissa, _, exponent = number.partition("e")
    return 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


def table(header: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """Return a table in Markdown, whose first columns are aligned left."""
    marks = ["---" if k < left else "---:" for k in range(len(header))]
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, marks, *rows))


def sentences(text: str) -> str:
    """Return sentences on lines of at most 120 characters."""
    return textwrap.fill(" ".join(text.split()), width=120, break_long_words=False, break_on_hyphens=False)


def spaced(number: int) -> str:
    """Return an integer with spaces between thousands."""
    return f"{number:,}".replace(",", " ")
