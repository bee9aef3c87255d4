"""The course: its notebooks are made of its pages and print what they say; its exercises fail until they are solved."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from docs.website.notebook import notebook, outputs, with_outputs
from tests.commands import Run, steady
from tests.support import ROOT

COURSE = ROOT / "docs" / "course"
UNITS = sorted(COURSE.glob("[0-9]*.md"))
EXERCISES = sorted(COURSE.glob("*.litmus"))
HOLE = "(* ? *)"


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_the_notebook_prints_what_the_page_says(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, update: bool
) -> None:
    """All cells, in a kernel of their own; ``--update-golden`` writes what they print now, and the notebooks."""
    page, file = path.read_text(encoding="utf-8"), path.with_suffix(".ipynb")
    book = notebook(page)
    if update:
        nbformat.write(book, file)  # type: ignore[no-untyped-call]
    committed = nbformat.read(file, as_version=4)  # type: ignore[no-untyped-call]
    assert committed == book, "run pytest tests/test_course.py --update-golden"

    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("COLUMNS", "120")
    for name in ("IPYTHONDIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    NotebookClient(book, timeout=60, resources={"metadata": {"path": str(COURSE)}}).execute()
    printed = []
    for cell in book.cells:
        if cell.cell_type == "code":
            assert {output.output_type for output in cell.outputs} == {"stream"}, cell.source
            text = "".join(output.text for output in cell.outputs)
            printed.append(re.sub(r"\x1b\[[0-9;]*m|\r", "", text).rstrip("\n") + "\n")
    said = outputs(page)
    kept = [old if steady(old) == steady(new) else new for old, new in zip(said, printed, strict=True)]
    if update:
        path.write_text(with_outputs(page, kept), encoding="utf-8")
    assert kept == said or update


def test_a_cell_without_its_output_is_told() -> None:
    with pytest.raises(ValueError, match="followed by what it prints"):
        notebook("# T\n\n```python\nprint(1)\n```\n\nText.\n")


@pytest.mark.parametrize("path", EXERCISES, ids=lambda path: path.stem)
def test_an_exercise_fails_until_it_is_solved(path: Path, run_command: Run) -> None:
    """``ptxmm check`` is the grader. The solution changes nothing but the lines with the hole."""
    solution = ROOT / "tests" / "course" / path.name
    asked, solved = (file.read_text(encoding="utf-8").splitlines() for file in (path, solution))
    changed = [(old, new) for old, new in zip(asked, solved, strict=True) if old != new]
    assert changed and all(HOLE in old and HOLE not in new for old, new in changed)
    assert len(changed) == sum(HOLE in line for line in asked)
    failed, passed = run_command("check", str(path)), run_command("check", str(solution))
    assert failed.code == 1 and failed.out.startswith("FAIL"), failed
    assert passed.code == 0 and passed.out.startswith("ok"), passed


def test_ten_units_each_with_exercises() -> None:
    assert len(UNITS) == 10
    files = [name for unit in UNITS for name in re.findall(r"^!ptxmm check (\S+)$", unit.read_text(), re.MULTILINE)]
    assert sorted(files) == [path.name for path in EXERCISES]
    assert {name[:2] for name in files} == {unit.name[:2] for unit in UNITS}
    index = (COURSE / "index.md").read_text(encoding="utf-8")
    assert all(f"({path.name})" in index and f"({path.stem}.ipynb)" in index for path in UNITS)
