"""Shipped models are read once: what their texts come to is kept beside the bytecode of modules."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support import ROOT

NAMES = "Coherence Atomicity Sequential-Consistency"
CODE = """
import sys
from ptxmm import cat
print(*(axiom.name for axiom in cat.load("sc").axioms))
print("ptxmm.cat.texts" in sys.modules)
"""


def loaded(folder: Path, **environment: str) -> tuple[str, bool]:
    """The checks of the model sc of the package in ``folder``, and whether a process had to read its text."""
    around = {k: v for k, v in os.environ.items() if k not in ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")}
    ran = subprocess.run(
        [sys.executable, "-c", CODE],
        cwd=folder,
        env=around | {"PYTHONPATH": str(folder)} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    names, read = ran.stdout.splitlines()
    return names, read == "True"


def test_a_model_is_kept_until_its_text_changes(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "ptxmm", tmp_path / "ptxmm", ignore=shutil.ignore_patterns("__pycache__"))
    models = tmp_path / "ptxmm" / "models"
    assert loaded(tmp_path, PYTHONDONTWRITEBYTECODE="1") == (NAMES, True)
    assert loaded(tmp_path) == (NAMES, True)
    assert loaded(tmp_path) == (NAMES, False)
    for kept in (models / "__pycache__").glob("sc.*"):
        kept.write_bytes(kept.read_bytes()[:100])
    assert loaded(tmp_path) == (NAMES, True)
    with (models / "sc.cat").open("a") as text:
        text.write("empty rf & co as Extra\n")
    assert loaded(tmp_path) == (f"{NAMES} Extra", True)
    assert loaded(tmp_path) == (f"{NAMES} Extra", False)
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    shutil.move(tmp_path / "ptxmm", moved)
    assert loaded(moved)[1]  # a model knows its path
