"""What all tests share: golden files (``pytest --update-golden`` writes them anew), and what the run counts."""

from __future__ import annotations

import compileall
import gc
import sys
from collections import Counter
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from ptxmm.cli import ALLOCATIONS
from tests.commands import Ran, Run
from tests.tally import TALLY, Tally

GOLDEN = Path(__file__).parent / "golden"
PACKAGE = Path(__file__).parent.parent / "ptxmm"


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--update-golden`` writes the golden files instead of comparing with them; ``--shift`` takes other random
    programs than the last slow run did."""
    parser.addoption("--update-golden", action="store_true", default=False, help="write the golden files anew")
    parser.addoption("--shift", type=int, default=0, help="the slow shares of random programs begin this much later")


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    """Whether what is compared is to be written anew."""
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture
def shift(request: pytest.FixtureRequest) -> int:
    """How much later the slow shares of random programs begin; the summary says it."""
    return int(request.config.getoption("--shift"))


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """``golden(name, text)``: the text is that of the file ``tests/golden/name``."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.write_text(text, encoding="utf-8")
        assert path.is_file(), f"{path} is missing: run pytest --update-golden"
        assert text == path.read_text(encoding="utf-8")

    return compare


@pytest.fixture
def run_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command line in an empty folder, in this process."""
    from ptxmm.cli.app import run

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "argv", ["ptxmm"])

    def go(*arguments: str) -> Ran:
        with pytest.raises(SystemExit) as ended:
            run(list(arguments))
        captured = capsys.readouterr()
        return Ran(ended.value.code if isinstance(ended.value.code, int) else 0, captured.out, captured.err)

    return go


@pytest.fixture
def lazy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small programs are treated as those with many events: no order is written out, and no value in full; two threads
    as many, and so is one final state; all clauses are Z3's."""
    from ptxmm.engines.symbolic import demand, numbering, orders, sat, solve, unread
    from ptxmm.relations import checks

    monkeypatch.setattr(orders, "FEW", 1)
    monkeypatch.setattr(checks, "FEW", 1)
    monkeypatch.setattr(demand, "MANY", 0)
    monkeypatch.setattr(numbering, "FEW", 1)
    monkeypatch.setattr(unread, "FEW", 0)
    monkeypatch.setattr(sat, "FEW", 0)
    monkeypatch.setattr(solve, "FEW", 1)


def pytest_configure(config: pytest.Config) -> None:
    """One count of corpus rows for each run; cycles are looked for ten times more seldom than in ptxmm's own processes:
    a worker has the memory, and the time is that of a twentieth of the tests.

    Tests start hundreds of processes, which find ptxmm compiled even where Python is told not to write bytecode.
    """
    config.stash[TALLY] = Tally()
    gc.set_threshold(10 * ALLOCATIONS)
    if not hasattr(config, "workerinput"):
        compileall.compile_dir(PACKAGE, quiet=2)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of the cases of a test marked ``share(n)`` every n-th is in the short run; the others are ``slow``."""
    seen: Counter[str] = Counter()
    for item in items:
        mark = item.get_closest_marker("share")
        if mark is None or item.get_closest_marker("slow") is not None:
            continue
        name = item.nodeid.partition("[")[0]
        if seen[name] % mark.args[0]:
            item.add_marker(pytest.mark.slow)
        seen[name] += 1


def pytest_collection_finish() -> None:
    """The tests stay to the end: no search for cycles goes through them."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def tally(request: pytest.FixtureRequest) -> Tally:
    """The counts of this run."""
    return request.config.stash[TALLY]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of pytest-xdist sends its counts to the process that started it."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        counts = session.config.stash[TALLY]
        output["tally"] = (counts.rows_run, counts.rows_skipped, counts.notes, dict(counts.counts))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Add the counts of a worker, if it lived to send them."""
    counts = node.config.stash[TALLY]
    rows_run, rows_skipped, notes, added = getattr(node, "workeroutput", {}).get("tally", (0, 0, [], {}))
    counts.rows_run += rows_run
    counts.rows_skipped += rows_skipped
    counts.notes += notes
    counts.counts.update(added)


@pytest.hookimpl(optionalhook=True, wrapper=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """One worker more than cores: some tests wait for a browser, a limit of time or a process that is stopped, and a
    core is free meanwhile."""
    return (yield) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Each worker begins with a part of its own, so that what a module makes once is made by one of them, and takes
    what others have left when it is done."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log) if config.getoption("dist") == "load" else None


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print what was counted: random programs, and last the corpus rows."""
    counts = config.stash[TALLY]
    if config.getoption("--shift"):
        terminalreporter.write_line(f"slow shares begin later: --shift {config.getoption('--shift')}")
    for note in (*counts.notes, *(f"{what}: {number}" for what, number in counts.counts.items())):
        terminalreporter.write_line(note)
    terminalreporter.write_line(f"corpus rows: {counts.rows_run} ran, {counts.rows_skipped} skipped")
