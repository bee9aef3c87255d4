"""The session that README.md shows is a real one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ptxmm.cli.app import run

ROOT = Path(__file__).parents[1]


def test_the_session_in_the_readme(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    block = re.search(r"^```\n(\$ .*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert block is not None
    commands = re.split(r"^\$ (.*)\n", block[1], flags=re.MULTILINE)[1:]
    assert len(commands) == 4
    for line, shown in zip(commands[::2], commands[1::2], strict=True):
        program, *arguments = line.split()
        if program == "cat":
            printed = (ROOT / arguments[0]).read_text() + "\n"
        else:
            assert program == "ptxmm"
            with pytest.raises(SystemExit):
                run(arguments)
            printed = capsys.readouterr().out
        assert _steady(printed) == _steady(shown)


def _steady(text: str) -> str:
    return re.sub(r"^(Time .*) [0-9.]+$", r"\1", text, flags=re.MULTILINE)
