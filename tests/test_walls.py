"""Which part of the program may import which: the contracts of pyproject.toml hold, and notice what breaks them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ROOT

SIDES = "the explicit and the symbolic side share no code"
LAUNCHES = "whole launches: what is ordered, what is executed, what is answered"
ANALYSES = "analyses know nothing of events but what the engines say of them"


CIRCLE = """
import graphlib, grimp
graph = grimp.build_graph("ptxmm", cache_dir=None)
try:
    graphlib.TopologicalSorter({m: graph.find_modules_directly_imported_by(m) for m in graph.modules}).prepare()
except graphlib.CycleError as error:
    print(" <- ".join(error.args[1]))
"""
"""Prints a circle of imports, if there is one; those in functions and those for types alone count too."""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A run of Python in which the package is the one in ``folder``."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1"}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def contracts(folder: Path) -> subprocess.CompletedProcess[str]:
    """What lint-imports says of the package in ``folder``."""
    return run(folder, "-c", "from importlinter.cli import lint_imports_command as run; run()", "--no-cache")


def circle(folder: Path) -> list[str]:
    """Modules of the package in ``folder`` that import each other in turn."""
    done = run(folder, "-c", CIRCLE)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def broken(output: str) -> list[str]:
    """The names of the contracts that do not hold."""
    return [line.split(" BROKEN")[0] for line in output.splitlines() if " BROKEN" in line]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package and its contracts."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "ptxmm", folder / "ptxmm", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


@pytest.mark.parametrize(
    ("file", "statement", "contract"),
    [
        ("events/explicit/trace.py", "from ptxmm.events.symbolic.values import floats", SIDES),
        ("events/symbolic/event.py", "import ptxmm.events.explicit.values.floats", SIDES),
        ("events/symbolic/values/domain.py", "def f():\n    from ptxmm.events.explicit.values import bits", SIDES),
        ("engines/symbolic/problem.py", "from ptxmm.engines.explicit import final", SIDES),
        ("engines/explicit/witness.py", "from ptxmm.events.symbolic.variants import NONE", SIDES),
        ("analysis/races.py", "import ptxmm.events.symbolic.event", ANALYSES),
        ("analysis/races.py", "from ptxmm.events.explicit.relations.tags import scope_of", ANALYSES),
        ("ptx/ops/memory.py", "import ptxmm.program.test", "ptx knows nothing above it"),
        ("formats/litmus.py", "import ptxmm.engines.result", "formats know no analysis, engine, event or model"),
        ("program/shared/windows.py", "import ptxmm.events.explicit.trace", "program knows only ptx"),
        ("engines/result.py", "import ptxmm.analysis.result", "Imports run one way"),
        ("whole/order/clocks.py", "import ptxmm.whole.execution.state", LAUNCHES),
        ("errors.py", "import ptxmm.ptx.ops", "errors, files, tokens and words know nothing of the rest"),
    ],
)
def test_an_import_through_a_wall_is_noticed(copy: Path, file: str, statement: str, contract: str) -> None:
    path = copy / "ptxmm" / file
    text = path.read_text("utf-8")
    path.write_text(f"{text}\n{statement}\n", "utf-8")
    try:
        done = contracts(copy)
    finally:
        path.write_text(text, "utf-8")
    assert done.returncode == 1, done.stdout + done.stderr
    assert contract in broken(done.stdout)


def test_every_contract_holds(copy: Path) -> None:
    done = contracts(copy)
    assert (done.returncode, broken(done.stdout)) == (0, []), done.stdout + done.stderr


def test_there_is_no_circle_of_imports(copy: Path) -> None:
    assert circle(copy) == []


@pytest.mark.parametrize(
    ("file", "statement"),
    [
        ("files.py", "import ptxmm.cli.app"),
        ("events/explicit/values/node.py", "def f():\n    from ptxmm.events.explicit.values import circuits"),
        ("events/symbolic/machine.py", "if TYPE_CHECKING:\n    from ptxmm.events.symbolic.executor import Executor"),
    ],
)
def test_a_circle_of_imports_is_noticed(copy: Path, file: str, statement: str) -> None:
    path = copy / "ptxmm" / file
    text = path.read_text("utf-8")
    path.write_text(f"{text}\n{statement}\n", "utf-8")
    try:
        found = circle(copy)
    finally:
        path.write_text(text, "utf-8")
    assert f"ptxmm.{file.removesuffix('.py').replace('/', '.')}" in found
