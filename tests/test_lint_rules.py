"""What ``lint`` finds: every planted fault at its place and nothing else, and nothing in right code."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ptxmm.analysis.lint import RULES, Options, lint, lint_text
from tests.support import ROOT

FOLDER = ROOT / "tests" / "lint"
WRONG = sorted(FOLDER.glob("wrong_*.cu"))
RIGHT = sorted(FOLDER.glob("right_*.cu"))
_EXPECTED = re.compile(r"(PTX\d+)@(\S+)")
_COMMENT = re.compile(r"//(?: PTX\d+@\S+)+|/\* PTX\d+@\S+ \*/")


def expected(text: str) -> list[tuple[str, int, int]]:
    """The findings that the comments of a source announce: rule, line, column."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        comment = _COMMENT.search(line)
        if comment is None:
            continue
        for rule, where in _EXPECTED.findall(comment[0]):
            found.append((rule, number, line.index(where.replace("·", " ")) + 1))
    return sorted(found)


def options(text: str) -> Options:
    """The options that the first line of a source gives."""
    first = dict(re.findall(r"(\w+)=(\S+)", text.split("\n", 1)[0]))
    isa = tuple(int(part) for part in first["isa"].split(".")) if "isa" in first else None
    arch = int(first["arch"].removeprefix("sm_")) if "arch" in first else None
    return Options(enable=tuple(filter(None, [first.get("enable")])), isa=isa, arch=arch)  # type: ignore[arg-type]


@pytest.mark.parametrize("path", WRONG, ids=lambda path: path.stem)
def test_planted_faults(path: Path) -> None:
    text = path.read_text()
    found = lint_text(text, path.name, options(text)).findings
    assert sorted((r.rule.id, r.line, r.column) for r in found) == expected(text)


def test_enough_faults_of_every_rule() -> None:
    planted = [rule for path in WRONG for rule, _, _ in expected(path.read_text())]
    assert len(planted) >= 100
    assert {rule.id for rule in RULES} == set(planted)


@pytest.mark.parametrize("path", RIGHT, ids=lambda path: path.stem)
def test_right_code(path: Path) -> None:
    result = lint(path)
    assert [(r.rule.id, r.line, r.message) for r in result.findings] == []
    assert result.statements >= 45


@pytest.mark.slow
@pytest.mark.parametrize("path", RIGHT, ids=lambda path: path.stem)
def test_right_code_is_assembled(path: Path, tmp_path: Path) -> None:
    if shutil.which("nvcc") is None:
        pytest.skip("nvcc is not installed")
    source = tmp_path / path.name
    # Functions that nobody calls are compiled too once they are not inline.
    source.write_text(re.sub(r"\b(?:__forceinline__|static inline|inline)\b", "", path.read_text()))
    command = ["nvcc", "-std=c++17", "-rdc=true", "-cubin", "-arch=sm_90a", source.name, "-o", "out.cubin"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
