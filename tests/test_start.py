"""What a command loads: start-up is most of the time of a short one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ptxmm.cli.checking import Checking
from ptxmm.cli.options import Engine
from ptxmm.cli.settings import Settings

LOCK = Path(__file__).parents[1] / "litmus" / "locks" / "cas-spinlock.litmus"


def loaded(*arguments: str) -> set[str]:
    """The packages that a process loads."""
    command = [sys.executable, "-X", "importtime", *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode < 2, ran.stderr
    rows = [line.split("|") for line in ran.stderr.splitlines() if line.startswith("import time:")]
    return {name.strip().partition(".")[0] for *_, name in rows}


def test_the_version_is_told_before_anything_is_loaded() -> None:
    assert loaded("-m", "ptxmm", "--version").isdisjoint(("typer", "msgspec", "typing", "enum", "re"))


@pytest.mark.parametrize("command", ["check", "races", "fences", "lint"])
def test_commands_load_no_formatting_and_no_grammar(command: str) -> None:
    assert loaded("-m", "ptxmm", command, str(LOCK)).isdisjoint(("rich", "lark", "z3", "pydantic"))


def test_a_verdict_on_loops_loads_no_grammar_and_no_module_of_z3() -> None:
    code = f"import ptxmm; [test] = ptxmm.read({str(LOCK)!r}); ptxmm.check(test, ptxmm.load_model('ptx-8.5'))"
    packages = loaded("-c", code)
    assert "ctypes" in packages
    assert packages.isdisjoint(("rich", "lark", "networkx", "typer", "z3"))


def test_a_litmus_test_loads_no_reader_of_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ptxmm.cli.whole", None)  # to import it is an error now
    assert Checking(Engine.auto, False, "none").instead(LOCK, Settings()) is None
    with pytest.raises(ImportError):
        Checking(Engine.auto, False, "none").instead(LOCK.with_suffix(".ptx"), Settings())
