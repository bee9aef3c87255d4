"""What several test modules share: reading a test from text, asking an engine for all final states, the corpora."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import TypeVar

from msgspec import Struct

import ptxmm.formats
from ptxmm.cat import Model, load
from ptxmm.engines.explicit import enumerate as enumerate_
from ptxmm.engines.result import Limits, Observed, Search
from ptxmm.engines.symbolic import solve
from ptxmm.program.condition import Proposition
from ptxmm.program.test import Test
from ptxmm.program.unspecified.elected import with_leaders
from tests.reference import Final, everything, restrict

ROOT = Path(__file__).resolve().parent.parent
CORPORA = Path(os.environ.get("PTXMM_CORPORA", ROOT.parent / "shared" / "corpora"))
ENGINES = ("solve", "enumerate")

T = TypeVar("T")


@cache
def model_named(name: str) -> Model:
    """A shipped model, loaded once."""
    return load(name)


SEARCHES = {"solve": solve.search, "enumerate": enumerate_.search}


def run(
    engine: str, test: Test, model: Model, observed: Observed, limits: Limits, proposition: Proposition | None = None
) -> Search:
    """``search`` of the engine module with this name."""
    return SEARCHES[engine](test, model, observed, limits, proposition)


def finished(parts: Generator[object, None, T]) -> T:
    """What a generator returns in the end."""
    while True:
        try:
            next(parts)
        except StopIteration as end:
            value: T = end.value
            return value


def parse_one(text: str) -> Test:
    """The only test of a litmus file given as text."""
    (test,) = ptxmm.formats.parse(text, "random.litmus")
    return test


class Answer(Struct, frozen=True):
    """What an engine says: distinct final states, and the flags that belong to them; no states unless ``complete``."""

    states: frozenset[Final]
    deadlock: bool
    bounded: bool
    undefined: bool
    complete: bool
    flags: frozenset[str]

    def comparable(self) -> tuple[object, ...]:
        """All that two engines must agree on."""
        return self.states, self.deadlock, self.bounded, self.undefined, self.flags


def ask(
    engine: str,
    test: Test,
    model: Model,
    *,
    unroll: int = 3,
    seconds: float = 20,
    observed: Observed | None = None,
    most: int = 10**9,
) -> Answer:
    """All final states of ``test`` from ``engine``, each confirmed by executing its witness again.

    None are confirmed if the search is not complete in ``seconds``, or there are more than ``most``: then they are not
    asked for either.
    """
    observed = observed or everything(test)
    from ptxmm.engines.explicit.witness import Confirmer

    limits = Limits(unroll=unroll, deadline=time.monotonic() + seconds)
    states = set()
    chosen = list(with_leaders(test, every=True))
    searches = [run(engine, each, model, observed, limits) for each in chosen]
    complete = not any(search.timeout or len(search.found) > most for search in searches)
    for each, search in zip(chosen, searches, strict=True) if complete else ():
        confirmer = Confirmer(each, model)
        here = set()
        for found in search.found:
            confirmed = confirmer.confirm(observed, found.witness)
            state = restrict(found.state, observed)
            assert restrict(confirmed, observed) == state, f"{engine}: a witness of {state} ends in another state"
            assert state not in here, f"{engine}: {state} twice"
            here.add(state)
        states |= here
    return Answer(
        frozenset(states),
        any(search.deadlock for search in searches),
        any(search.bounded for search in searches),
        any(search.undefined is not None for search in searches),
        complete,
        frozenset[str]().union(*(search.flags for search in searches)),
    )


def corpus_rows() -> Iterator[tuple[Path, str, bool]]:
    """The ``safety`` rows of the Dartagnan corpus: file, model, and whether the quantified condition holds."""
    folder = CORPORA / "dartagnan"
    if folder.is_dir():
        for line in (folder / "expected.csv").read_text().splitlines()[1:]:
            file, model, kind, holds = line.strip().split(",")
            if kind == "safety":
                yield folder / file, model, holds == "1"


def straight(test: Test) -> bool:
    """Whether no thread jumps backwards."""
    return all(
        getattr(op, "target", len(thread.body)) > pc for thread in test.threads for pc, op in enumerate(thread.body)
    )


@contextmanager
def watched(seconds: int = 120) -> Iterator[None]:
    """What is done in it has an end: a test that hangs fails, and the others go on. This is no measure of speed."""

    def late(*_: object) -> None:
        raise AssertionError(f"no end in {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def calls(action: Callable[[], object]) -> int:
    """How many functions of Python ``action`` calls: its work, the same on every machine."""
    count = 0

    def enter(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(enter)
    try:
        action()
    finally:
        sys.setprofile(before)
    return count
