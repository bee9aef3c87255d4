"""Tests on GPUs, without one: what is emitted, where instances lie, what is concluded, and the errors."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from itertools import product
from math import gcd
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from msgspec.structs import replace

from ptxmm.analysis.words import Exit
from ptxmm.cli.inputs import failure
from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError
from ptxmm.formats import parse
from ptxmm.hardware import campaign
from ptxmm.hardware.build import Built, build, disassembler
from ptxmm.hardware.campaign import Evidence, judge, prepare, relaxed
from ptxmm.hardware.compare import RunResult, state_of
from ptxmm.hardware.emit import Emitted, emit, source
from ptxmm.hardware.launch import Campaign, launch, script
from ptxmm.hardware.looked_at import looked_at
from ptxmm.hardware.machine_code import missing, threads_of
from ptxmm.hardware.measured import Measured, read, together
from ptxmm.program.condition import evaluate
from ptxmm.program.test import Test
from ptxmm.render import Entry, Page, renderer, schema
from tests.benchmarks.hardware import BESIDE, kept, tables
from tests.benchmarks.hardware_family import family
from tests.benchmarks.hardware_waits import family as waits
from tests.commands import Run
from tests.ptxas_assembler import assembler
from tests.support import ROOT, model_named

SKELETON = (ROOT / "ptxmm" / "hardware" / "skeleton.cuh").read_text(encoding="utf-8")
SB = ROOT / "litmus" / "sb" / "SB+fence.sc.litmus"


def one(path: str | Path) -> Test:
    text = (ROOT / path).read_text(encoding="utf-8")
    return parse(text, str(path), "litmus")[0]


def measured(made: Emitted, histogram: dict[tuple[int, ...], int], incomplete: int = 0) -> Measured:
    """A run that ended so, of as many instances as there are."""
    count = sum(histogram.values()) + incomplete
    roles = (count,) * len(made.seats.seats)
    ends = tuple((number, values) for values, number in histogram.items())
    return Measured(made.id, 1, count, 1, 1.0, teams=count, roles=roles, histogram=ends, incomplete=incomplete)


def judged(
    path: Path, histogram: dict[tuple[int, ...], int], code: list[str] | None = None, incomplete: int = 0
) -> RunResult:
    test = prepare(one(path), model_named("ptx-8.5"), "ptx-8.5", Limits())
    evidence = Evidence()
    evidence.add(None, [measured(test.made, histogram, incomplete)])
    if code is not None:
        evidence.code[test.made.id] = code
    return judge(test, evidence)


# -- what is emitted ---------------------------------------------------------------------------------------------------


def test_every_bundled_test_runs_or_says_where_it_does_not() -> None:
    made = 0
    for path in sorted((ROOT / "litmus").rglob("*.litmus")):
        test = one(path)
        try:
            emitted = emit(test)
            made += 1
            assert emitted.text.count("TEST_ID role") == len(test.threads)
        except PtxmmError as error:
            assert error.kind == "unsupported" and error.line is not None and error.source, (path, error.message)
    assert made > 600


def test_the_instructions_are_those_of_the_test() -> None:
    text = emit(one("litmus/mp/MP+fence+acq.litmus")).text
    block = re.findall(r'asm volatile\((.*?)"\}" /\* TEST_ID role (\d)', text, re.DOTALL)
    lines = [
        [line for line in re.findall(r'"(\w[^"]*;)\\n', body) if re.match("ld|st|fence", line)] for body, _ in block
    ]
    assert lines == [
        ["st.global.u32 [%1], 1;", "fence.acq_rel.gpu;", "st.relaxed.gpu.global.u32 [%2], 1;"],
        ["ld.acquire.gpu.global.u32 v_r0, [%3];", "ld.global.u32 v_r1, [%4];"],
    ]


def test_a_test_is_written_once_and_known_by_what_it_does() -> None:
    made = emit(one(SB))
    text = source([("one", made), ("two\\", made)])
    assert text.count(f"struct {made.id} ") == 1 and "// one\n// two?\n" in text
    assert emit(one("litmus/sb/SB+fence.acq_rel.litmus")).id != made.id


@pytest.mark.parametrize(("name", "text"), [item for item in family() if "+grid" in item[0]][:12])
def test_the_family_can_run(name: str, text: str) -> None:
    assert emit(parse(text, name, "litmus")[0]).seats.units > 1


@pytest.mark.parametrize(("name", "text"), list(waits()))
def test_the_forms_of_a_wait_can_run(name: str, text: str) -> None:
    """Those with a relaxed wait are allowed, and a copy after a read without a proxy fence; the others not."""
    known = prepare(parse(text, name, "litmus")[0], model_named("ptx-8.5"), "ptx-8.5", Limits())
    condition = known.test.condition
    assert condition is not None and known.known.whole
    states = [state_of(looked_at(known.test), values) for values in known.known.states]
    assert any(evaluate(condition.proposition, state) for state in states) == (
        "relaxed-wait" in name or name == "refill-straight"
    )


def test_the_sibling_has_no_fence_and_no_order() -> None:
    found = relaxed(one("litmus/mp/MP+fence+acq.litmus"))
    assert found is not None
    assert [len(thread.body) for thread in found.threads] == [2, 2]
    assert "acquire" not in emit(found).text and relaxed(one("litmus/sb/SB+relaxed.litmus")) is None


def test_seats() -> None:
    seats = emit(one("litmus/cluster/BARC-two-clusters.litmus")).seats
    assert (seats.devices, seats.units, seats.ranks, seats.width) == (1, 2, 1, 1)
    seats = emit(one("litmus/async/st.async.litmus")).seats
    assert (seats.units, seats.ranks, [seat.rank for seat in seats.seats]) == (1, 2, [1, 0])
    assert emit(one("litmus/scopes/MP+rel.sys+acq.sys-two-gpus.litmus")).seats.devices == 2


def test_threads_of_a_named_warp_share_it() -> None:
    text = "P0 @ cta 0, warp 7 { st.global.u32 [x], 1; } P1 @ cta 0 { st.global.u32 [x], 2; } "
    text += "P2 @ cta 0, warp 7 { st.global.u32 [x], 3; } P3 @ cta 1, warp 7 { st.global.u32 [x], 4; }"
    made = emit(parse(f"PTX t\n\n{{ .global .u32 x = 0; }}\n{text}\nexists (x == 1)\n", "t", "litmus")[0])
    places = [(seat.unit, seat.seat, seat.lane) for seat in made.seats.seats]
    assert places == [(0, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 0)]
    assert (made.seats.width, made.seats.lanes) == (2, 2) and "constexpr unsigned LANES = 2;" in made.text
    assert re.findall(r"case (\d+): return (\d);", made.text) == [("0", "0"), ("2", "1"), ("1", "2"), ("4", "3")]
    assert campaign.placement_text(made.seats) == "2 CTAs, 3 warps"


def test_grids_are_launched_in_order() -> None:
    made = emit(one("litmus/grids/order-three-grids.litmus"))
    assert [seat.device for seat in made.seats.seats] == [0, 1, 2] and made.seats.grids
    assert campaign.placement_text(made.seats) == "3 grids, 3 CTAs"
    assert not emit(one("litmus/scopes/MP+rel.sys+acq.sys-two-gpus.litmus")).seats.grids


def test_a_variable_that_several_ctas_have_lies_at_one_place() -> None:
    """A multicast writes at the same offset in each; there is one initialization of the mbarrier in each."""
    text = emit(one("litmus/async/TMA-multicast.litmus")).text
    assert text.count("mbarrier.init") == text.count("mbarrier.expect_tx") == 1
    assert {int(at) for at in re.findall(r"c\.shared\((\d+),", text)} == {0, 16}
    assert ", false, true, true, false, 32, {" in text  # ranks that are fixed


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("litmus/barriers/BAR-named-warp.litmus", "a barrier is not run where threads share a warp"),
        ("litmus/grids/overlap-no-wait.litmus", "grids that may overlap are not run yet"),
        ("litmus/thin-air/grid-read.litmus", "several grids of one GPU beside another GPU"),
        ("litmus/tensormap/tensor-load.litmus", "a copy of a tensor is not run on a GPU yet"),
        ("litmus/async/bulk-masked-bytes.litmus", "a copy with a byte mask is not run on a GPU yet"),
        ("litmus/host/ping-pong.litmus", "a thread of the host is not run on a GPU"),
    ],
)
def test_what_is_not_run_is_said(path: str, said: str) -> None:
    with pytest.raises(PtxmmError, match=said) as caught:
        emit(one(path))
    assert caught.value.kind == "unsupported" and caught.value.line


def test_multicast_is_run_where_ranks_are_numbers() -> None:
    text = (ROOT / "litmus/async/A32-multicast.litmus").read_text(encoding="utf-8").replace("cta 1,", "cta 2,")
    with pytest.raises(PtxmmError, match="multicast is run where"):
        emit(parse(text, "t", "litmus")[0])


# -- indices -----------------------------------------------------------------------------------------------------------


def slot(instance: int, multiplier: int, addend: int, instances: int) -> int:
    return (instance * multiplier + addend) % instances


def turned(number: int, round_: int, turn: int, count: int) -> int:
    return (number + round_ * (turn >> 16) + (turn & 0xFFFF)) % count


def test_the_formulas_are_those_of_the_skeleton() -> None:
    for line in (
        "return (uint32_t)(((uint64_t)instance * multiplier + addend) % instances);",
        "return p.base[place] + ((uint64_t)round * p.instances + slot) * p.pitch[place];",
        "uint32_t spot = (uint32_t)(((uint64_t)cluster * p.cluster_multiplier + p.cluster_addend) % p.clusters);",
        "group = spot / units; unit = spot % units;",
        "return (number + (uint64_t)round * (turn >> 16) + (turn & 0xffff)) % count;",
        "uint32_t team = warp / T::SEATS, seat = warp % T::SEATS;",
        "uint32_t lane = threadIdx.x % 32 / T::LANES, sub = threadIdx.x % T::LANES;",
        "(group * p.teams + team) * (32 / T::LANES) + lane",
        "p.instances = p.groups * p.teams * (32 / meta.lanes);",
        "T::run(c, T::role(p.device, u, k, s, sub));",
        "return (wanted + T::RANKS - turn) % T::RANKS;",
    ):
        assert line in SKELETON, line


@given(st.data())
def test_every_role_of_every_instance_is_played_once(data: st.DataObject) -> None:
    """On one GPU or several: each plays the threads of one, in the same instances as the others, and of every launch
    those of another."""
    devices, units, ranks, width = (data.draw(st.integers(1, most)) for most in (3, 4, 4, 4))
    lanes = data.draw(st.sampled_from([1, 2, 4, 32]))
    groups, teams, rounds = (data.draw(st.integers(1, most)) for most in (4, 4, 3))
    clusters = groups * units + data.draw(st.integers(0, 3))
    multiplier = data.draw(st.integers(1, 50).filter(lambda m: gcd(m, clusters) == 1))
    addend = data.draw(st.integers(0, 50))
    turns = [data.draw(st.integers(0, (1 << 32) - 1)) for _ in range(3)]
    launch_number = data.draw(st.integers(0, 7))
    played: dict[tuple[int, ...], int] = {}
    count = 0
    for gpu, cluster, rank, warp in product(range(devices), range(clusters), range(ranks), range(teams * width)):
        spot = (cluster * multiplier + addend) % clusters
        group, unit = divmod(spot, units)
        team, seat = divmod(warp, width)
        for round_ in range(rounds if group < groups else 0):
            numbers = zip((unit, rank, seat), turns, (units, ranks, width), strict=True)
            role = ((gpu + launch_number) % devices, *(turned(n, round_, t, c) for n, t, c in numbers))
            for thread in (0, 13, 31):
                lane, sub = thread // lanes, thread % lanes
                instance = (group * teams + team) * (32 // lanes) + lane
                assert instance < groups * teams * (32 // lanes)
                played[round_, instance, *role, sub] = gpu
                count += 1
    assert count == len(played) == rounds * groups * teams * devices * units * ranks * width * 3
    where = {(key[2], gpu) for key, gpu in played.items()}
    assert len(where) == devices == len({gpu for _, gpu in where})


def test_where_a_role_ran_is_read_as_it_was_written() -> None:
    written = re.search(r"return sm \| (.*);", SKELETON)
    assert written is not None
    starts = [0, *(int(at) for at in re.findall(r"<< (\d+)", written[1]))]
    note = re.search(r"// Where a role ran: (.*)\.", SKELETON)
    assert note is not None
    widths = [int(bits) for bits in re.findall(r"\((\d+)", note[1])]
    assert starts == [sum(widths[:n]) for n in range(len(widths))] and sum(widths) <= 64
    fields = set(zip(starts, widths, strict=True))
    assert {(int(at), int(bits)) for at, bits in re.findall(r"same\((\d+), (\d+)\)", SKELETON)} == fields


def test_gpus_wait_for_each_other_only_where_all_are_resident_and_never_for_ever() -> None:
    for line in (
        "p.ctas = gpus > 1 ? p.clusters * meta.ranks * gpus : 0;",
        "least = std::min(least, resident(kernel, meta, warps, shared, b.device[d]));",
        "} while (seen < p.ctas && clock64() - start < LATEST);",
        "p.device = meta.grids ? d : (int)((d + launches) % meta.devices);",
        "wrong |= gpu != (want_device || meta.grids) || device != want_device",
    ):
        assert line in SKELETON, line
    calls = re.findall(r"(.*)\b(cuda[A-Z]\w*)\(", SKELETON)
    free = {"cudaGetErrorString", "cudaStreamQuery"}  # whose results are looked at otherwise
    assert len(calls) > 30 and all("CHECKED(" in before for before, name in calls if name not in free)


@given(st.integers(1, 4), st.integers(0, 3), st.integers(0, (1 << 32) - 1))
def test_the_rank_that_plays_a_rank(ranks: int, round_: int, turn: int) -> None:
    for wanted in range(ranks):
        hardware = (wanted + ranks - turned(0, round_, turn, ranks)) % ranks
        assert turned(hardware, round_, turn, ranks) == wanted


@given(st.data())
def test_no_two_instances_share_memory(data: st.DataObject) -> None:
    instances, rounds = data.draw(st.integers(1, 24)), data.draw(st.integers(1, 4))
    cells = data.draw(st.lists(st.sampled_from([4, 8, 16, 32]), min_size=1, max_size=3))
    factors = [data.draw(st.integers(1, 60).filter(lambda m: gcd(m, instances) == 1)) for _ in cells]
    addends = [data.draw(st.integers(0, 60)) for _ in cells]
    at, base, pitch = 0, [], []
    neighbours = data.draw(st.booleans())
    for cell in cells:
        base.append(at)
        pitch.append(sum(cells) if neighbours else cell)
        at += cell if neighbours else cell * instances * rounds
    taken: set[int] = set()
    for place, cell in enumerate(cells):
        for round_ in range(rounds):
            for instance in range(instances):
                start = (
                    base[place]
                    + (round_ * instances + slot(instance, factors[place], addends[place], instances)) * pitch[place]
                )
                own = set(range(start, start + cell))
                assert not own & taken
                taken |= own


# -- what is concluded -------------------------------------------------------------------------------------------------


def test_verdicts() -> None:
    seen: dict[tuple[int, ...], int] = {(1, 1): 50, (0, 1): 30, (1, 0): 20}
    assert judged(SB, seen, []).verdict == "forbidden"
    result = judged(SB, {**seen, (0, 0): 1}, [])
    assert (result.verdict, result.weak, result.finding) == ("suspected", 1, None)
    assert [s.allowed for s in result.states] == [True, True, True, False]
    assert judged(ROOT / "litmus/sb/SB+relaxed.litmus", {**seen, (0, 0): 1}, []).verdict == "seen"
    result = judged(ROOT / "litmus/sb/SB+relaxed.litmus", seen, [])
    assert (result.verdict, result.finding, result.bound, result.states[-1].count) == ("unseen", False, 0.03, 0)


def test_a_violation_is_seen_twice_in_the_right_machine_code() -> None:
    test = prepare(one(SB), model_named("ptx-8.5"), "ptx-8.5", Limits())
    wrong = measured(test.made, {(0, 0): 1, (1, 1): 9})
    for code, second, verdict in (
        ([], True, "violation"),
        ([], False, "suspected"),
        (["P0: S"], True, "suspected"),
        (None, True, "suspected"),
    ):
        evidence = Evidence()
        evidence.add(None, [wrong, *([replace(wrong, seed=2)] if second else [])])
        if code is not None:
            evidence.code[test.made.id] = code
        assert judge(test, evidence).verdict == verdict


def test_what_is_forbidden_is_looked_for_again_in_a_program_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    tests = [
        prepare(one(path), model_named("ptx-8.5"), "ptx-8.5", Limits()) for path in (SB, "litmus/mp/ISA-MP.litmus")
    ]
    programs: list[str] = []
    runs: list[tuple[str, list[str], int]] = []

    def built(text: str, arch: str, seconds: float) -> Built:
        programs.append(text)
        return Built(Path(str(len(programs))), "")

    def launched(program: Path, names: list[str], how: Campaign) -> tuple[None, list[Measured]]:
        runs.append((str(program), names, how.seed))
        return None, [replace(measured(t.made, {(0, 0): 9}), seed=how.seed) for t in tests if t.made.id in names]

    monkeypatch.setattr(campaign, "build", built)
    monkeypatch.setattr(campaign, "launch", launched)
    monkeypatch.setattr(campaign, "missing", lambda test, name, found: [])
    evidence = campaign.run(tests, Campaign(seed=3), "sm_90", 1, 60)
    assert [judge(one, evidence).verdict for one in tests] == ["violation", "forbidden"]
    assert runs[0][0::2] == ("1", 3) and runs[1:] == [("2", [tests[0].made.id], 4)]
    assert [f"struct {t.made.id} " in programs[1] for t in tests] == [True, False]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"missing": 3}, "some thread did not run in 3 instances"),
        ({"misplaced": 2}, "2 of 10 teams ran elsewhere than the test says"),
        ({"apart": 1}, "the GPUs did not run at the same time in 1 of 1 launches"),
        ({"overflow": 1}, "1 instances ended in more ways than are counted"),
        ({"instances": 11}, "the counts do not add up"),
        ({"roles": (10, 0)}, "some thread never ran"),
        ({"instances": 0, "histogram": (), "roles": ()}, "some thread never ran"),
    ],
)
def test_what_is_invalid_gives_no_verdict(wrong: dict[str, Any], said: str) -> None:
    test = prepare(one(SB), model_named("ptx-8.5"), "ptx-8.5", Limits())
    evidence = Evidence()
    evidence.add(None, [replace(measured(test.made, {(1, 1): 10}), **wrong)])
    evidence.code[test.made.id] = []
    result = judge(test, evidence)
    assert (result.verdict, result.notes[0].text) == ("open", said)


def test_instances_that_gave_up_are_left_out() -> None:
    result = judged(SB, {(1, 1): 10}, [], incomplete=5)
    assert (result.instances, result.bound, result.verdict) == (15, 0.3, "forbidden")


def test_a_filter_is_applied_to_what_is_seen() -> None:
    path = ROOT / "litmus/mbarrier/next-phase-waited-not-ordered.litmus"
    result = judged(path, {(0,): 5, (1,): 5}, [])
    assert (result.verdict, result.weak, len(result.states)) == ("seen", 5, 1)


def test_an_error_of_the_program_is_one_of_the_test() -> None:
    test = prepare(one(SB), model_named("ptx-8.5"), "ptx-8.5", Limits())
    evidence = Evidence()
    with pytest.raises(PtxmmError, match="there is no result of this test"):
        judge(test, evidence)
    evidence.add(None, [Measured(test.made.id, error="2 GPUs are needed")])
    with pytest.raises(PtxmmError, match="the GPU gives no result: 2 GPUs are needed"):
        judge(test, evidence)


def test_two_runs_are_added() -> None:
    a = Measured("t", 1, 3, 1, 1.0, roles=(3, 3), histogram=((1, (0,)), (2, (1,))))
    assert together(a, a).histogram == ((2, (0,)), (4, (1,))) and together(a, a).roles == (6, 6)


# -- machine code ------------------------------------------------------------------------------------------------------

CODE = """
\t//## File "t.cu", line 2
        /*0010*/                   STG.E.STRONG.GPU desc[UR8][R24.64], R27 ;
\t//## File "t.cu", line 9
        /*0020*/                   LDG.E R1, desc[UR8][R2.64] ;
\t//## File "t.cu", line 2
        /*0030*/              @!P0 MEMBAR.SC.GPU ;
        /*0040*/                   CCTL.IVALL ;
        /*0050*/                   LDG.E.STRONG.GPU R24, desc[UR8][R24.64] ;
"""


def test_machine_code_is_that_of_the_thread() -> None:
    test = one("litmus/sb/SB+fence.sc-relaxed.litmus")
    text = "\n".join(["", "/* t0123456789ab role 0 */", "/* t0123456789ab role 1 */"])
    found = threads_of(CODE, text)
    assert found == {("t0123456789ab", 0): "SMCL"}
    both = {("t0123456789ab", n): "SMCL" for n in (0, 1)}
    assert missing(test, "t0123456789ab", both) == []
    assert missing(test, "t0123456789ab", found) == ["P1: no machine code"]
    for wrong in ("SL", "LMCS", "SMC", "SSMCL"):
        assert len(missing(test, "t0123456789ab", {**both, ("t0123456789ab", 1): wrong})) == 1, wrong


BARRIERS = """
\t//## File "t.cu", line 2
        /*0010*/                   FENCE.VIEW.ASYNC.S ;
        /*0020*/                   SYNCS.EXCH.64 URZ, [UR6], UR4 ;
        /*0030*/                   STG.E desc[UR8][R24.64], R27 ;
        /*0040*/                   SYNCS.ARRIVE.TRANS64.A1T0 RZ, [R14+URZ], RZ ;
\t//## File "t.cu", line 3
        /*0050*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR5], R0 ;
        /*0060*/               @P0 CCTL.IVALL ;
        /*0070*/                   STAS [R8.64], R14 ;
        /*0080*/                   LDGSTS.E [R7], desc[UR8][R2.64] ;
        /*0090*/                   ARRIVES.LDGSTSBAR.64.ARVCNT [R6+URZ] ;
        /*00a0*/                   UBLKCP.S.G [UR8], [UR6], UR4 ;
        /*00b0*/                   SYNCS.CCTL.IV [R3+URZ] ;
"""


def test_machine_code_has_the_instructions_of_mbarriers_and_copies() -> None:
    text = "\n".join(["", "/* t0123456789ab role 0 */", "/* t0123456789ab role 1 */"])
    found = threads_of(BARRIERS, text)
    assert found == {("t0123456789ab", 0): "ISV", ("t0123456789ab", 1): "WCTGVKI"}
    test = one("litmus/mbarrier/relaxed-wait.litmus")
    both = {("t", 0): "SMV", ("t", 1): "WL"}
    assert missing(test, "t", {**both, ("t", 0): "SV"}) == missing(test, "t", both) == []
    for number, wrong in ((0, "VS"), (0, "S"), (1, "LW"), (1, "WLL"), (1, "L")):
        assert len(missing(test, "t", {**both, ("t", number): wrong})) == 1, wrong
    copies = one("litmus/cp-async/A36-mbarrier-arrive.litmus")
    wanted = {("t", 0): "GVV", ("t", 1): "WL"}
    assert missing(copies, "t", wanted) == [] and len(missing(copies, "t", {**wanted, ("t", 0): "VV"})) == 1


@pytest.mark.skipif(assembler() is None, reason="no ptxas")
@pytest.mark.parametrize(
    "folder", ["mp", "aliases", "mbarrier", "async", "vectors", "barriers", "cluster", "locks", "scopes"]
)
def test_ptxas_takes_the_bodies(folder: str, tmp_path: Path) -> None:
    """Each block as a kernel, its operands as registers."""
    kernels: list[str] = []
    for path in sorted((ROOT / "litmus" / folder).glob("*.litmus")):
        try:
            text = emit(one(path)).text
        except PtxmmError:
            continue
        for body, outs, ins in re.findall(
            r'asm volatile\((.*?)"\}" /\* TEST_ID role \d+ \*/ : (.*?) : (.*?) : "memory"', text, re.DOTALL
        ):
            letters = re.findall(r'"=?(\w)"', f"{outs}, {ins}")
            lines = re.sub(r"%(\d+)", r"o\1", "\n".join(re.findall(r'"(.*?)\\n\\t"', body))).replace("%%", "%")
            registers = "".join(f".reg .b{64 if letter == 'l' else 32} o{n};\n" for n, letter in enumerate(letters))
            kernels.append(f".visible .entry k{len(kernels)}() {{\n{registers}{lines}\n}}\nret;\n}}\n")
    assert kernels
    module = tmp_path / "bodies.ptx"
    module.write_text(".version 8.8\n.target sm_90\n.address_size 64\n" + "".join(kernels), encoding="utf-8")
    ptxas = assembler()
    assert ptxas is not None
    done = subprocess.run([ptxas, "-arch=sm_90", "-o", os.devnull, module], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[:2000]


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
def test_nvcc_builds_it_and_nothing_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    tests = [one(SB), one("litmus/coherence/CoRR-weak.litmus"), one("litmus/async/st.async.litmus")]
    tests += [one("litmus/mbarrier/MP+arrive+wait.litmus"), one("litmus/scopes/MP+rel.sys+acq.sys-two-gpus.litmus")]
    text = source((test.name, emit(test)) for test in tests)
    built = build(text)
    assert built.program.stat().st_mode & stat.S_IXUSR and build(text).program == built.program
    if disassembler() is None:
        pytest.skip("no nvdisasm")
    assert built.code is not None
    found = threads_of(built.code, text)
    assert [missing(test, emit(test).id, found) for test in tests] == [[], [], [], [], []]


# -- running -----------------------------------------------------------------------------------------------------------


def program(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "tests"
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("via", [None, "env"])
def test_a_program_runs_here_and_through_a_command(tmp_path: Path, via: str | None) -> None:
    gpu = '{"gpu": "G", "capability": "9.0", "multiprocessors": 1, "gpus": 1, "driver": 1, "runtime": 1, "tests": 1}'
    path = program(tmp_path, f"echo '{gpu}'; echo noise; echo '{{\"test\": \"a\", \"seed\": '$4'}}'")
    found, rows = launch(path, ["a"], Campaign(1, 7, via))
    assert found is not None and found.gpu == "G" and [(row.test, row.seed) for row in rows] == [("a", 7)]


def test_a_test_that_ends_the_program_costs_no_other(tmp_path: Path) -> None:
    path = program(
        tmp_path, 'case "$*" in *a*) echo \'{"test": "a", "error": "no"}\'; exit 3;; esac; echo \'{"test": "b"}\''
    )
    assert [(row.test, row.error) for row in launch(path, ["a", "b"], Campaign())[1]] == [("a", "no"), ("b", None)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("echo no device; exit 1", r"does not run \(exit code 1\): no device"),
        ('echo \'{"test": "", "error": "no driver"}\'; exit 3', r"exit code 3\): no driver"),
        ("exit 0", "left 1 of them out"),
        ("echo '{\"test\": 1}'", "no result of a test"),
    ],
)
def test_errors_of_the_program(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(PtxmmError, match=said):
        launch(program(tmp_path, text), ["a"], Campaign())


def test_too_few_gpus_for_a_test_cost_no_other(tmp_path: Path) -> None:
    """The program says so with its exit code, too."""
    text = "nothing was run: 2 GPUs with access to each other's memory, atomics as well, are needed, and 1 was found"
    line = f'{{"test": "a", "error": "{text}"}}'
    path = program(tmp_path, f"""cat <<'END'\n{line}\n{{"test": "b"}}\nEND\nexit 4""")
    assert [(row.test, row.error) for row in launch(path, ["a", "b"], Campaign())[1]] == [("a", text), ("b", None)]
    assert "nothing was run: %d GPUs with access" in SKELETON and "return whole ? 0 : 4;" in SKELETON


def test_a_command_that_is_none() -> None:
    for via in ("", "'", "/no/such/command"):
        with pytest.raises(PtxmmError):
            launch(SB, ["a"], Campaign(via=via))
    assert b"base64 -d" in script(b"x", ["--only", "a b"]) and b"'a b'" in script(b"x", ["--only", "a b"])


# -- commands ----------------------------------------------------------------------------------------------------------


def test_emit_writes_what_can_run_and_says_what_cannot(run_command: Run, tmp_path: Path) -> None:
    wrong = tmp_path / "host.litmus"
    wrong.write_text("PTX host\n{\n  .global .u32 x = 0;\n}\nP0 @ host {\n  ld.relaxed.sys.global.u32 r0, [x];\n}\n")
    done = run_command("emit", str(SB), str(wrong), "-o", str(tmp_path / "t.cu"))
    assert done.code == Exit.BAD_INPUT
    assert "host.litmus:5:1: error: a thread of the host is not run on a GPU\n  P0 @ host {\n  ^^" in done.err
    assert emit(one(SB)).id in (tmp_path / "t.cu").read_text()


def test_results_of_elsewhere_are_compared(run_command: Run, tmp_path: Path) -> None:
    made = emit(one(SB))
    row = measured(made, {(1, 1): 90, (0, 1): 10})
    file = tmp_path / "seen.jsonl"
    file.write_text(
        f'{{"test": "{made.id}", "seed": 1, "instances": 100, "launches": 1, "seconds": 1, '
        '"teams": 4, "roles": [100, 100], '
        '"histogram": [[90, [1, 1]], [10, [0, 1]]]}\n'
    )
    assert read(file.read_text().splitlines(), "f")[1][0].histogram == row.histogram
    done = run_command("run", str(SB), "--results", str(file))
    assert done.code == Exit.OK and "Verdict forbidden, never seen" in done.out and "  90  9.0e-01  P0:r0=1" in done.out
    done = run_command("run", str(SB), "--results", str(file), "--json")
    document = json.loads(done.out)
    Draft202012Validator(json.loads(schema.text())).validate(document)
    assert [(entry["analysis"], entry["verdict"]) for entry in document["results"]] == [("run", "forbidden")]
    assert run_command("run", str(SB), "--results", str(tmp_path / "none")).code == Exit.BAD_INPUT


def test_a_page_has_a_bar_for_every_state_that_was_seen() -> None:
    """Bars are as long as numbers have digits; what was never seen has none, but what its rate is at most."""
    seen: dict[tuple[int, ...], int] = {(1, 1): 999_990, (0, 0): 9, (0, 1): 1}
    text = "\n".join(renderer("run", "html")([Entry(judged(SB, seen, []), False, "text of the test")], Page()))
    rows = re.findall(r"<tr(?: class=\"satisfies\")?><td>.*?</tr>", text.replace("\n", ""))
    cells = [re.findall(r"<td[^>]*>([^<]*)", row) for row in rows]
    assert [row[1:6] for row in cells] == [
        ["1", "1", "999,990", "1.0e+00", "allowed"],
        ["0", "0", "9", "9.0e-06", "forbidden"],
        ["0", "1", "1", "1.0e-06", "allowed"],
        ["1", "0", "0", "at most 3.0e-06", "allowed"],
    ]
    assert [re.findall(r'<rect class="(\w+)" width="(\d+)"', row) for row in rows] == [
        [("good", "160")], [("bad", "27")], [("good", "8")], [],
    ]  # fmt: skip
    assert 'data-verdict="suspected"' in text and " style=" not in text and "text of the test" in text
    error = failure(PtxmmError("no", kind="io", file="f"), "f")
    assert "error: no" in "".join(renderer("run", "html")([Entry(error)], Page()))


GPU = """
import re, sys
line = sys.stdin.read().strip().splitlines()[-1]
seed = re.search(r"--seed (\\d+)", line)[1]
for name in re.findall(r"--only (t\\w+)", line):
    print('{"test": "%s", "seed": %s, "instances": 9, "launches": 1, "seconds": 1, "teams": 1, "roles": [9, 9], '
          '"histogram": [[8, [1, 1]], [1, [0, 0]]]}' % (name, seed))
"""


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
def test_run_builds_runs_and_runs_again(run_command: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that shows what fence.sc forbids: without nvdisasm it is suspected, with it a violation."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "gpu.py").write_text(GPU, encoding="utf-8")
    done = run_command("run", str(SB), "--via", f"{sys.executable} {tmp_path / 'gpu.py'}", "--timeout", "300")
    assert "* 1  1.1e-01  P0:r0=0  P1:r1=0  forbidden" in done.out, done.err
    assert ("Verdict VIOLATION" in done.out) == (disassembler() is not None)
    assert done.code == (Exit.INCONCLUSIVE if disassembler() is None else Exit.FOUND)


def test_the_page_has_the_tables_of_the_rows() -> None:
    page = (ROOT / "docs" / "hardware.md").read_text(encoding="utf-8")
    for name, text in tables(kept()).items():
        assert f"<!-- {name} -->\n{text}\n<!-- end -->" in page, name


def test_nothing_but_the_waits_was_seen_that_is_forbidden() -> None:
    strange = [row for row in kept() if row.forbidden and row.source not in BESIDE]
    assert len(strange) == 20 and {row.source for row in strange} == {"async", "cp-async", "mbarrier"}
    again = {row.name: row.forbidden for row in kept() if row.source == "own"}
    assert again.keys() == {f"{row.source}/{row.name}" for row in strange} and all(again.values())
