"""The page on error messages has every class of errors, and quotes messages that exist."""

import ast
import inspect
import re
from pathlib import Path

import legged.errors

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")


def texts() -> str:
    """Return all texts of the code, with `...` in place of the values in formatted ones."""
    messages = []
    for package in ("legged", "controllers", "robots"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.JoinedStr):
                    messages += [
                        "".join(part.value if isinstance(part, ast.Constant) else "..." for part in node.values)
                    ]
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    messages.append(node.value)
    return "\n".join(messages)


def test_every_error_has_a_section():
    classes = [
        name
        for name, kind in vars(legged.errors).items()
        if inspect.isclass(kind) and issubclass(kind, BaseException) and kind.__module__ == "legged.errors"
    ]
    assert sorted(re.findall(r"^## (\w+)$", PAGE, re.MULTILINE)) == sorted(set(classes) - {"LeggedError"})


def test_every_quoted_message_exists():
    messages, code = re.findall(r"^\| `([^`]+)` \|", PAGE, re.MULTILINE), texts()
    assert len(messages) > 30
    for message in messages:
        pattern = r"[^\n]*?".join(re.escape(part) for part in message.split("..."))
        assert re.search(pattern, code), message
