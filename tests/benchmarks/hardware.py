"""What tests did on a GPU: the rows of ``hardware_h200.jsonl``, and the tables that ``docs/hardware.md`` makes of them.

python -m tests.benchmarks.hardware rows FOLDER... --results FILE... > tests/benchmarks/hardware_h200.jsonl
python -m tests.benchmarks.hardware tables
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from ptxmm.cat import load
from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError
from ptxmm.formats.litmus import parse
from ptxmm.hardware.campaign import Evidence, judge, prepare
from ptxmm.hardware.compare import RunResult
from ptxmm.hardware.measured import read
from tests.benchmarks.hardware_family import ORDERS, SCOPES, SHAPES

REORDERED = ("source-written-after-wait", "st.async-prior-data", "relaxed-wait")
"""The machine code of all tests was looked at: that of these has accesses in another order."""
BESIDE = ("waits", "bare", "own", "asked", "more")
"""The sources of rows that are not of the campaign: forms of a wait, the same in ``hardware_wait.cu``, tests in
programs of their own, tests that ran longer, and those that have run since."""
ROWS = Path(__file__).with_name("hardware_h200.jsonl")


class Row(Struct, frozen=True, omit_defaults=True):
    """A test: where it is from (a folder of ``litmus/``, ``family`` or one of ``BESIDE``), the verdict, in how many
    instances the condition held, and of how many; the same of its relaxed sibling; states that the model forbids."""

    name: str
    source: str
    verdict: str
    placement: str
    weak: int | None
    instances: int
    seconds: float
    sibling: int | None = None
    sibling_instances: int = 0
    forbidden: int = 0


def rows(folders: Sequence[str], results: Sequence[str]) -> Iterator[Row]:
    """A row for each test in ``folders`` that ran."""
    evidence, model = Evidence(), load("ptx-8.5")
    for name in results:
        evidence.add(*read(Path(name).read_text(encoding="utf-8").splitlines(), name))
    for folder in folders:
        for path in sorted(Path(folder).rglob("*.litmus")):
            source = path.parent.name if Path(folder).name == "litmus" else Path(folder).name
            try:
                for test in parse(path.read_text(encoding="utf-8"), str(path)):
                    limits = Limits(deadline=time.monotonic() + 60)
                    ready = prepare(test, model, "ptx-8.5", limits)
                    evidence.code[ready.made.id] = ["another order"] if test.name in REORDERED else []
                    yield row(judge(ready, evidence), source)
            except PtxmmError as error:
                if error.kind not in ("unsupported", "io"):
                    raise


def row(found: RunResult, source: str) -> Row:
    """What is kept of a result."""
    forbidden = sum(state.count for state in found.states if state.allowed is False)
    return Row(
        found.test, source, found.verdict, found.placement, found.weak, found.instances - found.incomplete,
        round(found.took, 2), found.sibling, found.sibling_instances, forbidden,
    )  # fmt: skip


def kept() -> list[Row]:
    """The rows that are kept."""
    return [msgspec.json.decode(line, type=Row) for line in ROWS.read_bytes().splitlines()]


def tables(found: Sequence[Row]) -> dict[str, str]:
    """The tables of the page by their names."""
    family = {one.name: one for one in found if one.source == "family"}
    own = {one.name: one for one in found if one.source == "own"}
    return {
        "summary": _summary(found),
        **{f"family-{place}": _family(family, place) for place in ("grid", "cluster")},
        "waits": _table(
            ("test", "the access passed the wait", "instances", "model"),
            [
                (one.name, _count(one.weak or 0), _count(one.instances), _model(one))
                for one in found
                if one.source == "waits"
            ],
        ),
        "violations": _table(
            ("test", "forbidden state seen", "instances", "in a program of its own", "instances"),
            [
                (f"`{one.source}/{one.name}`", *_forbidden(one), *_forbidden(own[f"{one.source}/{one.name}"]))
                for one in found
                if one.verdict == "violation" and one.source not in BESIDE
            ],
        ),
        "bare": _table(
            ("form", "the wait returned true", "the access passed it"),
            [(one.name, _count(one.instances), _count(one.weak or 0)) for one in found if one.source == "bare"],
        ),
        "asked": _table(
            ("test", "outcome seen", "instances", "model"),
            [(one.name, _seen(one), _count(one.instances), _model(one)) for one in found if one.source == "asked"],
        ),
        "more": _table(
            ("test", "placement", "outcome seen", "instances", "model"),
            [
                (one.name, one.placement, _count(one.weak or 0), _count(one.instances), _model(one))
                for one in found
                if one.source == "more"
            ],
        ),
        "bugs": _table(
            ("test", "outcome seen", "instances", "model"),
            [
                (f"`{one.name}`", _count(one.weak or 0), _count(one.instances), _model(one))
                for one in found
                if one.source == "bugs" and one.weak is not None
            ],
        ),
        "unseen": _table(
            ("test", "placement", "rate at most", "relaxed sibling"),
            [
                (f"`{one.source}/{one.name}`", one.placement, f"{3 / one.instances:.0e}", _sibling(one))
                for one in found
                if one.verdict == "unseen" and one.source not in ("family", *BESIDE)
            ],
        ),
    }


def _summary(found: Sequence[Row]) -> str:
    words = {
        "forbidden": "forbidden by the model, never seen",
        "seen": "allowed, seen",
        "unseen": "allowed, never seen",
        "violation": "forbidden, seen (all of one kind: below)",
        "listed": "without a condition, only allowed states seen",
        "open": "nothing to conclude: the program has no meaning, gives its loops up, or became another",
    }
    rows = []
    for verdict, text in words.items():
        own = [one for one in found if one.verdict == verdict and one.source not in BESIDE]
        made = [one for one in own if one.source == "family"]
        rows.append((text, str(len(own) - len(made)), str(len(made))))
    return _table(("", "tests of `litmus/`", "tests of the family"), rows)


def _family(family: dict[str, Row], place: str) -> str:
    """The rates of the shapes by order and scope, in one placement."""
    lines = []
    for shape in SHAPES:
        weak = family[f"{shape}+weak+{place}"]
        lines.append((shape, "weak", _rate(weak), *("" for _ in SCOPES)))
        for order in ORDERS:
            cells = [_rate(family[f"{shape}+{order}.{scope}+{place}"]) for scope in SCOPES]
            lines.append((shape, order, "", *cells))
    return _table(("shape", "order", "", *(f".{scope}" for scope in SCOPES)), lines)


def _rate(one: Row) -> str:
    if one.weak:
        return f"{one.weak / one.instances:.1e}"
    return "0" if one.verdict == "unseen" else "0 (forbidden)"


def _model(one: Row) -> str:
    return "forbidden" if one.verdict in ("forbidden", "violation", "suspected") else "allowed"


def _forbidden(one: Row) -> tuple[str, str]:
    return _count(one.forbidden), _count(one.instances)


def _seen(one: Row) -> str:
    return _count(one.weak) if one.weak else f"never: at most {3 / one.instances:.0e}"


def _sibling(one: Row) -> str:
    if one.sibling is None:
        return "none"
    return f"{one.sibling / one.sibling_instances:.1e}" if one.sibling else "not seen either"


def _count(number: int) -> str:
    return f"{number:,}" if number < 10**7 else f"{number:.1e}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


if __name__ == "__main__":
    if sys.argv[1] == "tables":
        for name, text in tables(kept()).items():
            print(f"<!-- {name} -->\n{text}\n<!-- end -->\n")
    else:
        at = sys.argv.index("--results")
        for one in rows(sys.argv[2:at], sys.argv[at + 1 :]):
            sys.stdout.buffer.write(msgspec.json.encode(one) + b"\n")
