"""What the page asks, and what it is answered: JSON in, JSON out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct

from ptxmm.analysis.result import Note, Status
from ptxmm.analysis.strength.dials import Dial, Turn
from ptxmm.errors import PtxmmError

MOST_BYTES = 1 << 16
"""A longer request is refused."""

Short = Annotated[str, Meta(max_length=400)]


class Program(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A test and the model to run it under.

    ``part``: which of the tests that ``text`` holds, as ``Checked.parts`` counts them; beyond the last, the last.
    ``readings`` and ``without``: changes of the model (docs/readings.md; names of checks). ``turns``: instructions at
    another strength than written, ``level``: threads at another placement (one of ``placements.LEVELS``).
    """

    text: str
    part: Annotated[int, Meta(ge=0, le=MOST_BYTES)] = 0
    model: Short = "ptx-8.5"
    readings: dict[Short, Short] = {}
    without: Annotated[tuple[Short, ...], Meta(max_length=40)] = ()
    turns: Annotated[tuple[Turn, ...], Meta(max_length=200)] = ()
    level: Short | None = None
    unroll: Annotated[int, Meta(ge=0, le=16)] = 3


class Check(Program, frozen=True, tag_field="ask", tag="check", kw_only=True):
    """The verdict and all final states; ``all_state``: of every register and location."""

    all_state: bool = False


class Explain(Program, frozen=True, tag_field="ask", tag="explain", kw_only=True):
    """Why the program may end in ``state`` (as ``ptxmm explain --state``), or why not; None: its condition."""

    state: Annotated[str, Meta(max_length=4000)] | None = None
    misses: bool = True


class Fences(Program, frozen=True, tag_field="ask", tag="fences", kw_only=True):
    """Which fences, orders and scopes are needed, and what is missing."""


Request = Check | Explain | Fences


class Problem(Struct, frozen=True):
    """What is wrong, and where in the text of the test: ``line`` and ``column`` are 1-based, ``width`` characters."""

    kind: str
    message: str
    line: int | None = None
    column: int | None = None
    width: int = 1
    hint: str | None = None


class Refused(Struct, frozen=True, tag_field="answer", tag="error"):
    """There is no answer but what is wrong. ``text``: the program that it is wrong with, where dials made another."""

    problems: tuple[Problem, ...]
    text: str | None = None


class Placing(Struct, frozen=True):
    """A placement: its ``level``, what that means, and why the threads can't be placed so, or None."""

    level: str
    words: str
    impossible: str | None


class Row(Struct, frozen=True):
    """A final state: its ``values`` by the columns, and whether the condition's proposition holds in it."""

    values: tuple[str, ...]
    satisfies: bool | None


class Checked(Struct, frozen=True, tag_field="answer", tag="check"):
    """The verdict on ``text``, which is the test with its dials turned (attributes as of ``analysis.result.Result``).

    ``format``: how it was written, as of ``formats.SUFFIXES``; ``parts``: the tests, or the claims about kernels, that
    are in the same text; ``claim``: the one that this is about, if it is no condition; ``litmus``: what is no litmus
    test as one, if it can be. ``columns`` are registers and locations, ``rows`` the final states; ``listed``: there are
    no others. ``dials`` and ``placings`` are those of the test as it came; only litmus tests have any.
    """

    text: str
    test: str
    description: str
    info: tuple[tuple[str, str], ...]
    model: str
    engine: str
    quantifier: str | None
    condition: str | None
    holds: bool | None
    observation: str | None
    status: Status
    flags: tuple[str, ...]
    expected: str | None
    conclusion: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    listed: bool
    notes: tuple[Note, ...]
    execution: object
    seconds: float
    format: str
    parts: tuple[str, ...]
    claim: str | None
    litmus: str | None
    dials: tuple[Dial, ...]
    placings: tuple[Placing, ...]


class Clause(Struct, frozen=True):
    """A ``text`` of the PTX ISA 8.5, which is (of) this section."""

    section: str
    text: str


class Stage(Struct, frozen=True):
    """A kind of relation: its ``name`` (``rf``, ``ms``, ...), what it is (``title``), what the PTX ISA says of it, and
    in ``lines`` what it relates in the execution."""

    name: str
    title: str
    clauses: tuple[Clause, ...]
    lines: tuple[str, ...]


class Analysed(Struct, frozen=True, tag_field="answer", tag="analysis"):
    """The result of another analysis, as its JSON document has it (docs/results.md).

    ``picture``: an execution as SVG, or None, and its ``stages``; ``changed``: for each repair the text of the changed
    program.
    """

    text: str
    result: Mapping[str, Any]
    picture: str | None = None
    stages: tuple[Stage, ...] = ()
    changed: tuple[str | None, ...] = ()


Answer = Checked | Analysed | Refused


def refused(error: PtxmmError, text: str | None = None) -> Refused:
    """``error`` and what else is wrong, as the page shows it."""
    found = (error, *error.more)
    return Refused(tuple(Problem(e.kind, e.message, e.line, e.column, e.width, e.hint) for e in found), text)
