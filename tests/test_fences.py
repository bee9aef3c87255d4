"""``ptxmm fences``: what users see, and the parts that it is made of."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import ptxmm
from ptxmm.analysis.fences import fences
from ptxmm.analysis.strength.changes import Costs, costs
from ptxmm.analysis.strength.forms import forms_of, scopes_of
from ptxmm.analysis.strength.joint import all_changes, combined
from ptxmm.analysis.strength.sufficient import minimal_sets
from ptxmm.analysis.strength.superposition import superposition
from ptxmm.analysis.words import Property
from ptxmm.cli.app import run
from ptxmm.errors import PtxmmError
from ptxmm.formats.litmus import same
from ptxmm.formats.patch import Rewrite, patched
from ptxmm.program.identity import Switch
from tests.support import model_named, parse_one

MODEL = "ptx-8.5"

MP = """PTX MP
{{
  .global .u32 data = 0;
  .global .u32 flag = 0;
}}
 P0 @ {0} | P1 @ {1} ;
 st.global.u32 [data], 1 | {3} ;
 {2} | ld.global.u32 r1, [data] ;
exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""
RELEASE, ACQUIRE = "st.release.gpu.global.u32 [flag], 1", "ld.acquire.gpu.global.u32 r0, [flag]"
PLAIN, READ = "st.global.u32 [flag], 1", "ld.global.u32 r0, [flag]"


def _mp(store: str, load: str, first: str = "cta 0", second: str = "cta 1") -> str:
    return MP.format(first, second, store, load)


def _lines(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, int]:
    with pytest.raises(SystemExit) as ended:
        run(["fences", *arguments])
    out = capsys.readouterr().out
    shown = [f"Time {line.split()[1]}" if line.startswith("Time ") else line for line in out.splitlines()]
    return "\n".join(shown) + "\n", int(str(ended.value.code or 0))


def _file(folder: Path, text: str) -> str:
    path = folder / "test.litmus"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("repair-columns", _mp(PLAIN, READ), 1),
        ("needed", _mp(RELEASE, ACQUIRE), 0),
        ("too-strong", _mp(RELEASE.replace("gpu", "sys"), ACQUIRE, "cta 0", "cta 0"), 0),
        (
            "repair-blocks",
            "PTX SB\n{ .global .u32 x = 0; .global .u32 y = 0; }\n"
            "P0 @ cta 0 {\n  st.global.u32 [x], 1;\n  ld.global.u32 r0, [y];\n}\n"
            "P1 @ cta 1 { st.global.u32 [y], 1; ld.global.u32 r0, [x]; }\n"
            "exists (P0:r0 == 0 /\\ P1:r0 == 0)\n",
            1,
        ),
        (
            "repair-dialect",
            "PTX MP\n{ x = 0; y = 0; }\n P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;\n st.weak x, 1 | ld.weak r0, y ;\n"
            " st.relaxed.gpu y, 1 | ld.weak r1, x ;\nexists (P1:r0 == 1 /\\ P1:r1 == 0)\n",
            1,
        ),
        (
            "no-repair",
            "PTX one\n{ .global .u32 x = 0; }\nP0 @ cta 0 { st.global.u32 [x], 1; }\nexists (x == 1)\n",
            1,
        ),
        (
            "barrier",
            "PTX bar\n{ .shared .u32 s = 0; }\n P0 @ cta 0 | P1 @ cta 0 ;\n st.shared.u32 [s], 1 | bar.sync 0 ;\n"
            " bar.sync 0 | fence.acq_rel.cta ;\n  | ld.shared.u32 r0, [s] ;\nexists (P1:r0 == 0)\n",
            0,
        ),
    ],
)
def test_text(
    name: str,
    text: str,
    code: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    golden: Callable[[str, str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    _file(tmp_path, text)
    shown, ended = _lines(capsys, "test.litmus", "--model", "ptx-7.5" if "dialect" in name else MODEL)
    golden(f"fences-{name}.txt", shown)
    assert ended == code


def test_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Callable[[str, str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    _file(tmp_path, _mp(RELEASE, READ))
    shown, _ = _lines(capsys, "test.litmus", "--model", MODEL, "--json", "--most", "1")
    document = json.loads(shown)
    (entry,) = document["results"]
    entry["seconds"] = 0
    golden("fences.json", json.dumps(document, indent=2) + "\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--cost", "fence"], "--cost fence: expected NAME=N"),
        (["--cost", "fence=0"], "--cost fence=0: expected NAME=N"),
        (["--cost", "fences=1"], "--cost fences=1: expected NAME=N"),
    ],
)
def test_wrong_costs(arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run(["fences", _file(tmp_path, _mp(PLAIN, READ)), *arguments])
    assert ended.value.code == 2 and message in capsys.readouterr().err


def test_no_condition() -> None:
    test = parse_one(_mp(PLAIN, READ).rpartition("exists")[0])
    with pytest.raises(PtxmmError, match="the test has no condition"):
        fences(test, model_named(MODEL))


def test_races() -> None:
    model = model_named(MODEL)
    racy = fences(parse_one(_mp(RELEASE, READ)), model, wanted=Property.races)
    assert racy.holds is False and all(variant.engines for variant in racy.repairs)
    with pytest.raises(PtxmmError, match="says nothing about data races"):
        fences(parse_one(_mp(RELEASE, READ)), model_named("sc"), wanted=Property.races)


def test_robust() -> None:
    model = model_named(MODEL)
    assert fences(parse_one(_mp(RELEASE, ACQUIRE)), model, wanted=Property.robust).holds
    broken = fences(parse_one(_mp(RELEASE, READ)), model, wanted=Property.robust)
    assert broken.holds is False and broken.repairs
    assert broken.bad is not None and broken.bad.registers == {"P1:r0": 1, "P1:r1": 0}


def test_a_cost_decides_the_order() -> None:
    test, model = parse_one(_mp(PLAIN, READ)), model_named(MODEL)
    first = fences(test, model, costs=Costs(acquire=50, release=50)).repairs[0]
    assert any(change.new and change.new.startswith("fence") for change in first.changes)


def test_costs_are_read() -> None:
    assert costs(["sc=20", "gpu=3"]) == Costs(sc=20, gpu=3)


def test_a_program_without_an_end_is_not_judged() -> None:
    text = (
        "PTX hang\n{ .global .u32 x = 0; }\n P0 @ cta 0 | P1 @ cta 0 ;\n bar.sync 0, 64 | st.global.u32 [x], 1 ;\n"
        "exists (x == 2)\n"
    )
    result = fences(parse_one(text), model_named(MODEL))
    assert result.holds is None and not result.items and result.finding is None


@pytest.mark.parametrize(
    ("placements", "scopes"),
    [
        (("cta 0", "cta 0"), ("cta",)),
        (("cta 0", "cta 1"), ("gpu",)),
        (("cta 0, gpu 0", "cta 0, gpu 1"), ("sys",)),
        (("cta 0", "cta 0", "cta 1"), ("cta", "gpu")),
        (("cta 0, cluster 0", "cta 1, cluster 0", "cta 2, cluster 1"), ("cluster", "gpu")),
        (("cta 0", "host"), ("sys",)),
    ],
)
def test_scopes_that_tell_threads_apart(placements: tuple[str, ...], scopes: tuple[str, ...]) -> None:
    threads = "".join(f"P{i} @ {place} {{ st.global.u32 [x], 1; }}\n" for i, place in enumerate(placements))
    test = parse_one("PTX t\n{ .global .u32 x = 0; }\n" + threads + "exists (x == 1)\n")
    assert scopes_of(test, (0,), model_named(MODEL).coverage) == scopes


@pytest.mark.parametrize(
    ("instruction", "forms"),
    [
        (
            "ld.acquire.sys.global.u32 r0, [x]",
            ["weak", "relaxed gpu", "relaxed sys", "acquire gpu", "acquire sys"],
        ),
        ("st.volatile.global.u32 [x], 1", ["weak", "relaxed gpu", "volatile"]),
        ("atom.acq_rel.gpu.global.add.u32 r0, [x], 1", ["relaxed gpu", "acquire gpu", "release gpu", "acq_rel gpu"]),
        ("red.release.gpu.global.add.u32 [x], 1", ["relaxed gpu", "release gpu"]),
        ("fence.sc.gpu", [None, "acq_rel gpu", "sc gpu"]),
        ("fence.proxy.alias", [None, "fence.proxy.alias"]),
        ("st.mmio.relaxed.sys.global.u32 [x], 1", []),
        ("ld.global.v2.u32 {r0, r1}, [x]", []),
        ("ld.acquire.gpu.global.v2.u32 {r0, r1}, [x]", ["relaxed gpu", "acquire gpu"]),
        ("ld.global.nc.u32 r0, [x]", []),
    ],
)
def test_weaker_forms(instruction: str, forms: list[str | None]) -> None:
    test = parse_one(
        "PTX t\n{ .global .align 8 .u32 x[2] = {0, 0}; }\nP0 @ cta 0 {\n  " + instruction + ";\n}\n"
        "P1 @ cta 1 { ld.global.u32 r0, [x]; }\nexists (x[0] == 1)\n"
    )
    found = forms_of(test, (0,), test.threads[0].body[0], model_named(MODEL).coverage, False)

    def name(op: object) -> str | None:
        if op is None:
            return None
        if getattr(op, "volatile", False):
            return "volatile"
        sem, scope = getattr(op, "sem", None), getattr(op, "scope", None)
        return " ".join(filter(None, (sem, scope))) or "fence.proxy.alias"

    assert sorted(str(name(op)) for op, _ in found.forms) == sorted(map(str, forms)) if found else not forms


def test_the_given_switches_make_the_program_as_written() -> None:
    test = parse_one(_mp(RELEASE, ACQUIRE))
    for stronger in (True, False):
        everything = superposition(test, model_named(MODEL).coverage, stronger=stronger)
        assert same(everything.program(everything.given), test)


@pytest.mark.parametrize(
    ("wanted", "smallest"),
    [
        (lambda on: True, [set()]),
        (lambda on: False, []),
        (lambda on: {1, 2} <= on or {3} <= on, [{3}, {1, 2}]),
        (lambda on: len(on) >= 2, [{1, 2}, {1, 3}, {2, 3}, {1, 4}, {2, 4}, {3, 4}]),
    ],
)
def test_minimal_sets(wanted: Callable[[set[int]], bool], smallest: list[set[int]]) -> None:
    weights = {Switch(0, 0, number): number for number in (1, 2, 3, 4)}
    found = [
        {switch.number for switch in chosen}
        for chosen in minimal_sets(weights, lambda on: wanted({switch.number for switch in on}), lambda: None)
    ]
    assert sorted(map(sorted, found)) == sorted(map(sorted, smallest))
    assert [sum(chosen) for chosen in found] == sorted(sum(chosen) for chosen in found)


@pytest.mark.parametrize("block", [True, False])
def test_patched_text_reads_back(block: bool) -> None:
    body = "L: ld.relaxed.gpu.global.u32 r0, [x]; setp.eq.u32 p, r0, 0; @p bra L; ld.global.u32 r1, [x];"
    if block:
        threads = f"P0 @ cta 0 {{ {body} }} // |;\n"
    else:
        rows = "".join(f" {row.strip()} | /* a;b|c */ ;\n" for row in body.split(";") if row.strip())
        threads = f" P0 @ cta 0 | P1 @ cta 1 ;\n{rows}"
    test = parse_one("PTX t\n{ .global .u32 x = 0; }\n" + threads + "exists (x == 1)\n")
    model = model_named(MODEL)
    everything = superposition(test, model.coverage, stronger=True)
    (unchanged,) = combined(test, (), ())
    for on in (everything.switches, everything.given):
        program = everything.program(on)
        found = all_changes(test, unchanged, everything, on)
        rewrites = [Rewrite(c.number, c.index, c.kind == "insert", c.op) for c in found]
        assert patched(test, rewrites, program) is not None


TWICE = """PTX twice
{ .shared .u32 s = 0; }
 P0 @ cta 0 | P1 @ cta 0 ;
 st.shared.u32 [s], 1 | ld.shared.u32 r0, [s] ;
 st.shared.u32 [s], 2 | ;
forall (P1:r0 == 1)
"""
"""The load must come between the stores: one barrier before it and one after it, whatever the strengths."""


def test_two_barriers_together() -> None:
    result = fences(parse_one(TWICE), model_named(MODEL))
    assert result.holds is False and result.listed
    (repair,) = result.repairs
    assert (repair.cost, repair.engines) == (2 * Costs().barrier_cta, ("z3", "enumerate"))
    assert [(c.kind, c.number, c.index) for c in repair.changes] == [
        ("insert", 0, 1), ("insert", 0, 1), ("insert", 1, 0), ("insert", 1, 1)
    ]  # fmt: skip
    rewrites = [Rewrite(c.number, c.index, c.kind == "insert", c.op) for c in repair.changes]
    assert patched(parse_one(TWICE), rewrites, repair.program) is not None


CHAIN = """PTX chain
{ .global .u32 x = 0; .global .u32 f = 0; }
 P0 @ cta 0 | P1 @ cta 0 | P2 @ cta 1 ;
 st.mmio.relaxed.sys.global.u32 [x], 1 | st.relaxed.gpu.global.u32 [f], 1 | ld.acquire.gpu.global.u32 r0, [f] ;
 | | ld.mmio.relaxed.sys.global.u32 r1, [x] ;
exists (P2:r0 == 1 /\\ P2:r1 == 0)
"""
"""Nothing orders the stores but a barrier between the threads of the CTA, and that alone reaches no other CTA."""


def test_a_barrier_together_with_a_stronger_order() -> None:
    result = fences(parse_one(CHAIN), model_named(MODEL))
    assert result.holds is False and result.listed
    first = result.repairs[0]
    assert first.cost == Costs().barrier_cta + Costs().release and first.engines == ("z3", "enumerate")
    assert [(c.kind, c.new) for c in first.changes] == [
        ("insert", "barrier.cta.sync 0"),
        ("insert", "barrier.cta.sync 0"),
        ("replace", "st.release.gpu.global.u32 [f], 1"),
    ]


def test_the_bound_of_the_search_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptxmm.analysis.fences.SETS", 0)
    monkeypatch.setattr("ptxmm.analysis.strength.repairs._TOGETHER", 1)
    result = fences(parse_one(TWICE), model_named(MODEL))
    assert not result.repairs and not result.listed and not result.more
    (note,) = result.notes
    assert note.kind == "bound" and f"of cost {2 * Costs().barrier_cta} or more" in note.text


@pytest.mark.parametrize("order", ["relaxed", "acquire", "release", "acq_rel"])
def test_a_reduction_of_the_dialect_takes_any_order(order: str) -> None:
    text = f"PTX t\n{{ x = 2; }}\n P0 @ cta 0 | P1 @ cta 1 ;\n red.{order}.gpu.sub x, 1 | red.{order}.gpu.sub x, 1 ;\n"
    (test,) = ptxmm.parse(text + "~exists (x != 0)\n")
    assert ptxmm.fences(test, ptxmm.load_model("ptx-8.5")).finding is False


WARP = """PTX warp
ISA=8.6
{{ .shared .b64 b @ cta 0, cluster 0; .tmem .b32 t[64] @ cta 0 = {{0}}; }}
P0 @ cta 0, cluster 0, warp 0 {{
{0}
}}
P1 @ cta 0, cluster 0, warp 0 {{
{1}
}}
P2 @ cta 1, cluster 0 {{
barrier.cluster.arrive.relaxed.aligned;
barrier.cluster.wait.aligned;
mbarrier.arrive.release.cluster.shared::cluster.b64 _, [b];
}}
exists ({2})
"""


def test_a_lane_arrives_as_the_others_of_its_warp() -> None:
    one = "barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;"
    text = WARP.format("mbarrier.init.shared::cta.b64 [b], 1;\n" + one, one.replace("relaxed", "release"), "b == 5")
    found = fences(parse_one(text), model_named("ptx-8.5"), wanted=Property.never, most=1).repairs
    assert [(c.thread, c.new) for c in found[0].changes] == [("P0", "barrier.cluster.arrive.release.aligned")]


def test_a_wait_is_added_in_all_lanes_of_a_warp() -> None:
    one = "tcgen05.st.sync.aligned.32x32b.x1.b32 [t], {3};\ntcgen05.ld.sync.aligned.32x32b.x1.b32 {r1}, [t];"
    one += "\ntcgen05.wait::ld.sync.aligned;"
    text = re.sub(r"P2[^}]*}\n", "", WARP.format(one, one, "P0:r1 == 0"))
    found = fences(parse_one(text), model_named("ptx-8.5"), wanted=Property.never, most=1).repairs
    assert [(c.thread, c.new) for c in found[0].changes] == [(f"P{t}", "tcgen05.wait::st.sync.aligned") for t in (0, 1)]
