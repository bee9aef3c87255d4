"""Notebooks of the course, made of its pages: a block ``python`` is a cell, its output is left out."""

from __future__ import annotations

import re
from typing import Any

import nbformat

_OUTPUT = re.compile(
    r"(?P<before>^```python\n(?:(?!^```$).*\n)*^```\n\n"
    r'(?:<details markdown="1">\n<summary>.*</summary>\n\n)?^```text\n)'
    r"(?P<text>(?:(?!^```$).*\n)*)"
    r"(?P<behind>^```\n(?:\n</details>\n)?)",
    re.MULTILINE,
)
_CELL = re.compile(r"^```python\n((?:(?!^```$).*\n)*)^```\n", re.MULTILINE)


def outputs(page: str) -> list[str]:
    """What a page says that its cells print, one after the other."""
    return [shown["text"] for shown in _OUTPUT.finditer(page)]


def with_outputs(page: str, texts: list[str]) -> str:
    """The page with these texts as what its cells print."""
    left = iter(texts)
    return _OUTPUT.sub(lambda shown: shown["before"] + next(left) + shown["behind"], page)


def notebook(page: str) -> nbformat.NotebookNode:
    """The cells of a page. Every one is to have its output on the page; a ``ValueError`` says that one has not."""
    if len(outputs(page)) != len(_CELL.findall(page)):
        raise ValueError("a block `python` is followed by what it prints: a block `text`, folded or not")
    bare = _OUTPUT.sub(lambda shown: _CELL.match(shown["before"])[0] + "\n", page)  # type: ignore[index]
    v4: Any = nbformat.v4
    cells = [
        (v4.new_code_cell if n % 2 else v4.new_markdown_cell)(part.strip("\n"), id=f"cell-{n}")
        for n, part in enumerate(_CELL.split(bare))
        if part.strip()
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    book: nbformat.NotebookNode = v4.new_notebook(
        cells=cells, metadata={"kernelspec": kernel, "language_info": {"name": "python"}}
    )
    return book
