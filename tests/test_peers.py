"""The benchmark beside other tools: its programs, what it reads of answers, and its report. Time is never asserted."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import ptxmm
from tests.benchmarks import peers, programs, report, tools
from tests.benchmarks.measures import Limit, Measure, differences, judged, process
from tests.benchmarks.programs import Program
from tests.benchmarks.tools import Answer, Sample


def result(program: Program, model: str | None = None) -> ptxmm.Result:
    (test,) = ptxmm.parse(program.ptx())
    return ptxmm.check(test, ptxmm.load_model(model or test.default_model))


@pytest.mark.parametrize(
    ("program", "holds"), [(f[2], f[3]) for f in peers.FAMILIES], ids=[f[0] for f in peers.FAMILIES]
)
@pytest.mark.parametrize("size", [2, 3])
def test_families(program: Callable[[int], Program], holds: bool, size: int) -> None:
    found = result(program(size))
    assert (found.holds, found.status) == (holds, "complete")


def test_lists_have_the_states_that_are_claimed() -> None:
    assert len(result(programs.ring(4)).outcomes) == 2**4 - 1
    assert len(result(programs.states(2)).outcomes) == 4**2
    assert result(programs.arrivals(2, 2)).holds


SHAPES = programs.shapes()


def test_shapes() -> None:
    assert len(SHAPES) == len({p.name for p in SHAPES}) == 192
    assert {p.name.partition("+")[0] for p in SHAPES} == {s.partition("+")[0] for s in programs.SHAPES}
    for program in SHAPES:
        (test,) = ptxmm.parse(program.ptx())
        assert test.name == program.name
        assert program.aarch64().startswith(f"AArch64 {program.name}\n")


@pytest.mark.parametrize(
    "program", [p for p in SHAPES if "po" not in p.name and "acq" not in p.name], ids=lambda p: p.name
)
def test_shapes_with_every_fence_are_sequentially_consistent(program: Program) -> None:
    assert states(result(program)) == states(result(program, "sc"))


def states(found: ptxmm.Result) -> set[frozenset[tuple[object, object]]]:
    return {frozenset({**o.registers, **o.memory}.items()) for o in found.outcomes}


def test_twin() -> None:
    assert programs.shapes()[4].aarch64() == MP_TWIN


MP_TWIN = """AArch64 MP+po+fence
{
0:X10=x; 0:X11=y;
1:X10=y; 1:X11=x;
}
 P0 | P1 ;
 MOV W9,#1 | LDR W0,[X10] ;
 STR W9,[X10] | DMB SY ;
 MOV W9,#1 | LDR W1,[X11] ;
 STR W9,[X11] |  ;
locations [1:X0; 1:X1; x; y;]
"""


def test_answers_of_the_peers(tmp_path: Path) -> None:
    first, second = Sample(tmp_path / "a.litmus", (True,)), Sample(tmp_path / "b.litmus", (False,))
    said = (
        f"Test: {second.file}\nResult: UNKNOWN\nTime: 1:53 mins\n\nTest: {first.file}\nResult: PASS\nTime: 0.2 secs\n"
    )
    assert tools.dartagnan(tmp_path, "lazy").answers(said, [first, second]) == [
        [Answer(True, None, 0.2)],
        [Answer(None, None, 113.0)],
    ]
    said = "r1: UNSAT, assertion confirmed, matches expectation\nr2: SAT, assertion violated, breaks expectation\n"
    said += "sanity_r3: UNSAT, outcome not permitted, breaks expectation\n"
    assert tools.nvlitmus(tmp_path).answers(said, [first]) == [[Answer(True), Answer(False)]]
    said = "Test a Allowed\nStates 2\n1:X0=0; [x]=1;\n1:X0=1; [x]=1;\nNo\nWitnesses\n"
    (answers,) = tools.herd_answers(said, [first])
    assert answers == [
        Answer(False, frozenset(frozenset({("P1:r0", value), ("x", 1)}) for value in (0, 1))),
    ]


def test_what_is_right() -> None:
    one, two = frozenset({("x", 1)}), frozenset({("x", 2)})
    many, few = Answer(True, frozenset({one, two})), Answer(False, frozenset({one}))
    asked = [Sample(Path("a"), (True, True)), Sample(Path("b"), states=2), Sample(Path("c"))]
    assert judged(asked, [[many], [few], [few]]) == (2, 1, 1)
    assert judged(asked, [[few, Answer()], [many], []]) == (1, 1, 2)
    same, part = Sample(Path("a")), Sample(Path("a"), same=False)
    assert differences([same], [[many]], [[few]]) == ["a: 2 final states, and 1"]
    assert differences([part], [[many]], [[few]]) == differences([same], [[many]], [[many]]) == []
    assert differences([part], [[few]], [[many]]) == ["a: 1 final states, and 2"]


def test_process() -> None:
    done = process([sys.executable, "-c", "print('said', end='')"], Limit(60, "seconds"), 1, {})
    assert (done.output, done.over) == ("said", False)
    assert done.mebibytes > 1
    for clock, code in (("seconds", "import time; time.sleep(60)"), ("cpu", "while True: pass")):
        assert process([sys.executable, "-c", code], Limit(1, clock), None, {}).over  # type: ignore[arg-type]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.MARKS[0]}\nold\n{report.MARKS[1]}\nafter\n")
    wanted = ["--only", "counter-4", "--only", "list-8", "--json", str(tmp_path / "kept.json"), "--write", str(page)]
    assert peers.main(wanted) == 0
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("\nafter\n") and "old" not in text
    assert "| 4 atomic adds on one location | " in text
    assert "| 256 states of three threads | " in text
    assert "wrong" not in text and "unknown" not in text
    assert peers.main([*wanted, "--kept"]) == 0
    assert page.read_text() == text
    assert peers.main(["--only", "nothing"]) == 2
    assert "counter-4" in capsys.readouterr().err


def test_table_and_curves() -> None:
    rows = [row for row in peers.rows(None, None) if row.family == "ring"]
    ours = [Measure(row.name, "ptxmm", row.size / 64, row.size / 99, 2.0 * row.size, right=1) for row in rows]
    peer = [replace(m, tool="Dartagnan lazy", seconds=4 * m.seconds) for m in ours]
    peer[-2] = replace(peer[-2], right=0, unknown=1)
    peer[-1] = replace(peer[-1], right=0, unknown=1, over=True, seconds=60.0)
    head, *lines = report.table(rows, [*ours, *peer], "seconds")
    assert head == ["work", "ptxmm", "Dartagnan lazy", "theirs / ours"]
    assert lines[0][1:] == ["0.12 s, 16 MiB", "0.5 s, 16 MiB", "4"]
    assert [line[3] for line in lines[1:]] == ["4", "4", "4", "", "over 30"]
    assert lines[-2][2].endswith("1 of 1 unknown")
    picture = ElementTree.fromstring(report.curves(rows, [*ours, *peer], "seconds"))
    lines_drawn = picture.findall(".//{http://www.w3.org/2000/svg}polyline")
    assert [len(line.attrib["points"].split()) for line in lines_drawn] == [6, 4, 6, 4]
    axis = report.Axis([1, 100], 0, 200, 10)
    assert [axis(tick) for tick in axis.ticks()] == pytest.approx([0, 100, 200])
