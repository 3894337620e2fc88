"""The snippets of docs/howto/recipes.md run and print what their comments state."""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs/howto/recipes.md").read_text(encoding="utf-8")
START, *SNIPPETS = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("code", SNIPPETS)
def test_snippet_runs_and_prints_its_comments(code, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert code.count("\n") <= 30
    exec(compile(START + code, "docs/howto/recipes.md", "exec"), {"__name__": "__main__"})
    wanted = re.findall(r"^ *print\(.*\)  # (.*)$", code, flags=re.MULTILINE)
    assert capsys.readouterr().out.split("\n")[:-1] == wanted
