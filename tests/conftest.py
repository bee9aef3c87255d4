"""What the test run counts, and the terminal summary that says it."""

from __future__ import annotations

import pytest

from tests.tally import TALLY, Tally


def pytest_configure(config: pytest.Config) -> None:
    """One count of corpus rows for each run."""
    config.stash[TALLY] = Tally()


@pytest.fixture
def tally(request: pytest.FixtureRequest) -> Tally:
    """The counts of this run."""
    return request.config.stash[TALLY]


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print what was counted: random programs, and last the corpus rows."""
    counts = config.stash[TALLY]
    for note in counts.notes:
        terminalreporter.write_line(note)
    terminalreporter.write_line(f"corpus rows: {counts.rows_run} ran, {counts.rows_skipped} skipped")
