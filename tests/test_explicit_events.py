"""The events that the explicit side makes of each instruction, their sets and relations (docs/cat.md)."""

from __future__ import annotations

import pytest

from ptxmm.analysis.outcomes import check
from ptxmm.cat import load
from ptxmm.errors import PtxmmError
from ptxmm.events.explicit.domains import possible_values, traces
from ptxmm.events.explicit.interpreter import programs
from ptxmm.events.explicit.readings import Readings
from ptxmm.events.explicit.relations.barriers import phase_relations
from ptxmm.events.explicit.relations.base import get
from ptxmm.events.explicit.relations.execution import Layout, Scene
from ptxmm.events.explicit.trace import Trace
from ptxmm.program.identity import TENSORMAP, EventId
from tests.support import parse_one

Key = tuple[EventId, str]

OBJECTS = """
  .shared .align 16 .u32 s[4] @ cta 0, cluster 0 = {0, 0, 0, 0};
  .global .align 16 .u32 g[4] = {7, 8, 9, 10};
  .global .align 64 .b8 tm[128] = tensormap(g, u32, 4);
  .shared .b64 b @ cta 0, cluster 0 = mbarrier(2);
"""


def paths(*threads: str, objects: str = OBJECTS, readings: Readings = Readings()) -> list[list[Trace]]:  # noqa: B008
    """The paths of each thread; a thread is ``placement: instruction; instruction``."""
    blocks = []
    for i, thread in enumerate(threads):
        place, _, body = thread.partition(": ")
        blocks.append(f"P{i} @ {place} {{\n" + "".join(f"  {line.strip()};\n" for line in body.split(";")) + "}\n")
    test = parse_one("PTX t\n{" + objects + "}\n" + "".join(blocks) + "exists (1 == 1)\n")
    ready = programs(test, readings)
    domains = possible_values(test, ready, 3, readings, lambda: None)
    return [traces(p, domains, 3, readings, lambda: None) for p in ready]


def layout(*threads: str, objects: str = OBJECTS, readings: Readings = Readings()) -> Layout:  # noqa: B008
    """The layout of the first path of each thread."""
    found = paths(*threads, objects=objects, readings=readings)
    blocks = []
    for i, thread in enumerate(threads):
        place, _, body = thread.partition(": ")
        blocks.append(f"P{i} @ {place} {{\n" + "".join(f"  {line.strip()};\n" for line in body.split(";")) + "}\n")
    test = parse_one("PTX t\n{" + objects + "}\n" + "".join(blocks) + "exists (1 == 1)\n")
    return Layout(Scene(test), [t[0].events for t in found])


def pairs(found: Layout, name: str) -> set[tuple[Key, Key]]:
    """A relation between events of threads, by id and kind."""
    events = found.events
    return {
        ((events[a].id, events[a].kind), (events[b].id, events[b].kind))
        for a, b in found.algebra.pairs(get(found, name))
        if a < found.initial_first and b < found.initial_first
    }


def sets(found: Layout, key: Key) -> set[str]:
    """The base sets that an event is in."""
    i = found.numbers[key]
    return {name for name in found._tags() if found._tags()[name] >> i & 1}


def keys(found: Layout) -> list[Key]:
    """The events of threads."""
    return [(e.id, e.kind) for e in found.events[: found.initial_first]]


def at(pc: int, offset: int = 0, operand: int = 0, thread: int = 0) -> EventId:
    """An event of the first round."""
    return EventId(thread, pc, 0, operand, offset)


HERE = "cta 0, cluster 0"
BOTH = """
  .shared .align 16 .u32 s[4] = {0, 0, 0, 0};
  .global .align 16 .u32 g[4] = {7, 8, 9, 10};
  .shared .b64 b = 0;
"""


def test_elements_of_a_vector_are_unordered() -> None:
    found = layout(
        f"{HERE}: st.global.u32 [g+8], 1; ld.relaxed.gpu.global.v2.u32 {{r0, r1}}, [g]; st.global.u32 [g+12], 2"
    )
    first, second = (at(1, 0), "R"), (at(1, 4), "R")
    assert keys(found) == [(at(0), "W"), first, second, (at(2), "W")]
    po = pairs(found, "po")
    assert not {(first, second), (second, first)} & po
    assert {((at(0), "W"), first), (first, (at(2), "W")), (second, (at(2), "W"))} <= po
    assert sets(found, second) == {"R", "M", "GEN", "STRONG", "RLX", "GPU"}


def test_packed_atomics_have_a_read_and_a_write_for_each_element() -> None:
    objects = " .global .align 4 .b32 h = 0x3C003C00; P0:v = 0x40003C00;"
    found = layout("cta 0: red.relaxed.gpu.global.add.noftz.f16x2 [h], v", objects=objects)
    parts = [(at(0, p), k) for p in (0, 2) for k in ("R", "W")]
    assert keys(found) == parts
    assert pairs(found, "po") == pairs(found, "rmw") == {(parts[0], parts[1]), (parts[2], parts[3])}
    assert sets(found, parts[0]) >= {"NORET", "AMO", "STRONG", "GPU"}
    written = paths("cta 0: atom.relaxed.gpu.global.add.noftz.f16x2 r0, [h], v", objects=objects)
    assert [e.cell for e in written[0][0].events] == [("h", 0, 2)] * 2 + [("h", 2, 2)] * 2


def test_a_vector_element_is_divided_where_others_are_narrower() -> None:
    objects = " .global .align 16 .b64 x[2] = {0, 0};"
    found = layout("cta 0: st.global.v2.b64 [x], {5, 6}; ld.global.u32 r0, [x+4]", objects=objects)
    assert [e.cell for e in found.events[:4]] == [("x", 0, 4), ("x", 4, 4), ("x", 8, 8), ("x", 4, 4)]
    assert found.simple


def test_b128_is_one_access_or_two() -> None:
    objects = " .global .align 16 .b128 x = 0;"
    whole = layout("cta 0: ld.relaxed.gpu.global.b128 r0, [x]", objects=objects)
    split = layout("cta 0: ld.relaxed.gpu.global.b128 r0, [x]", objects=objects, readings=Readings(split=True))
    assert [e.cell for e in whole.events[:1]] == [("x", 0, 16)]
    assert [e.cell for e in split.events[:2]] == [("x", 0, 8), ("x", 8, 8)]


def test_a_bulk_copy_and_its_group() -> None:
    found = layout(
        f"{HERE}: cp.async.bulk.global.shared::cta.bulk_group [g], [s], 16; cp.async.bulk.commit_group; "
        "cp.async.bulk.wait_group.read 0; cp.async.bulk.wait_group 0; ld.global.u32 r0, [g]"
    )
    iss, done_read, done = (at(0), "ISS"), (at(0), "PF"), (at(0, operand=1), "PF")
    reads = [(at(0), "R")]
    writes = [(at(0, p, 1), "W") for p in (0, 4)]  # the load makes a border
    waits = (at(2), "AW"), (at(3), "AW")
    assert keys(found) == [iss, *reads, *writes, done_read, done, *waits, (at(4), "R")]
    assert sets(found, reads[0]) == {"R", "M", "ASY", "WEAK"} and sets(found, iss) == {"ISS"}
    assert sets(found, done_read) == {"F", "PF", "PFR"} and sets(found, done) == {"F", "PF"}
    assert pairs(found, "issue") == {(iss, e) for e in (*reads, *writes)}
    assert pairs(found, "issue-all") == {(iss, e) for e in (*reads, *writes, done_read, done)}
    order = {(r, x) for r in reads for x in (*writes, done_read, done)} | {(w, done) for w in writes}
    assert pairs(found, "aord") == order
    assert pairs(found, "acomp") == {(done_read, waits[0]), (done, waits[1])}
    assert pairs(found, "pfence") == {(done_read, r) for r in reads} | {(done, e) for e in (*reads, *writes)}
    assert {a for a, _ in pairs(found, "po")} == {iss, *waits}
    assert not pairs(found, "mbobj") and not pairs(found, "addr") and len(pairs(found, "data")) == 2


def test_a_wait_completes_all_groups_but_the_latest() -> None:
    copy = "cp.async.ca.shared::cta.global [s], [g], 4; cp.async.commit_group"
    found = layout(f"{HERE}: {copy}; {copy}; cp.async.wait_group 1; {copy.split(';')[0]}; cp.async.wait_all")
    writes = [(at(pc, operand=1), "W") for pc in (0, 2, 5)]
    assert pairs(found, "acomp") == {(writes[0], (at(4), "AW")), *((w, (at(6), "AW")) for w in writes)}
    assert sets(found, writes[0]) == {"W", "M", "GEN", "WEAK"}


def test_cp_async_fills_up_with_zeros() -> None:
    ((trace,),) = paths(f"{HERE}: cp.async.ca.shared::cta.global [s], [g], 8, 4; ld.shared.u32 r0, [s]")
    written = [(e.cell, e.value.value) for e in trace.events if e.kind == "W" and e.value is not None]
    assert written == [(("s", 0, 4), None), (("s", 4, 4), 0)]


def test_cp_async_arrival_is_after_all_earlier_copies() -> None:
    code = f"{HERE}: cp.async.ca.shared::cta.global [s], [g], 4; cp.async.mbarrier.arrive.shared.b64 [b]"
    ((trace,),) = paths(code)
    found = layout(code)
    arrival = (at(1), "MBA")
    assert ((at(0, operand=1), "W"), arrival) in pairs(found, "aord")
    assert sets(found, arrival) == {"MBA", "GEN", "STRONG", "REL", "CTA"}
    assert arrival not in {x for pair in pairs(found, "po") for x in pair}
    assert [(s.kind, s.asynchronous) for s in trace.steps] == [("mb.increment", False), ("mb.arrive", True)]


def test_multicast_writes_and_completes_in_each_cta() -> None:
    found = layout(
        f"{HERE}: cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[s], [g], 16, [b], 3",
        "cta 1, cluster 0: ld.shared.u32 r0, [s]; mbarrier.init.shared::cta.b64 [b], 1",
        objects=BOTH,
    )
    written = [e for e in found.events if e.kind == "W" and e.op is not None]
    assert {e.id.operand for e in written} == {1, 2} and len({e.cell for e in written}) == 3
    arrivals = [(e.id, e.kind) for e in found.events if e.kind == "MBA"]
    assert [id_.operand for id_, _ in arrivals] == [0, 1]
    # Each counts as performed in the CTA of its mbarrier, so .cta of a thread there includes it.
    assert {found.places[found.numbers[a]].cta for a in arrivals} == {p.cta for p in found.scene.places}
    assert all("MBX" in sets(found, a) for a in arrivals)
    initialised = (at(1, thread=1), "MBI")
    assert pairs(found, "mbobj") == {(initialised, arrivals[1])}


def test_asynchronous_stores_and_reductions() -> None:
    mine = "cta 1, cluster 0: "
    found = layout(
        mine + "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [q], {1, 2}, [c]; "
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [q], 1, [c]",
        f"{HERE}: bar.sync 0",
        objects=" .shared .align 16 .u32 q[4] @ cta 0, cluster 0 = {0, 0, 0, 0};\n"
        " .shared .b64 c @ cta 0, cluster 0 = mbarrier(0, 12);\n",
    )
    stored = [(at(0, p), "W") for p in (0, 4)]
    old, new = (at(1), "R"), (at(1), "W")
    assert sets(found, stored[0]) == {"W", "M", "GEN", "STA", "WEAK"}
    assert sets(found, old) == {"R", "M", "GEN", "STA", "STRONG", "RLX", "AMO", "NORET", "CLUSTER"}
    assert pairs(found, "rmw") == {(old, new)}
    order = {(w, (at(0), "MBA")) for w in stored} | {(old, new), (new, (at(1), "MBA"))}
    assert pairs(found, "aord") == order
    assert sets(found, (at(0), "MBA")) == {"MBA", "GEN", "STRONG", "REL", "CLUSTER"}


@pytest.mark.parametrize(
    ("space", "covered"),
    [("", {"s", "g"}), (".global", {"g"}), (".shared::cta", {"s"}), (".shared::cluster", {"s"})],
)
def test_a_proxy_fence_covers_a_state_space(space: str, covered: set[str]) -> None:
    copy = "cp.async.bulk.global.shared::cta.bulk_group [g], [s], 16"
    for place, expected in ((HERE, covered), ("cta 1, cluster 0", covered - ({"s"} if "cta" in space else set()))):
        found = layout(f"{HERE}: {copy}", f"{place}: fence.proxy.async{space}")
        fence = found.numbers[(at(0, thread=1), "F")]
        events = found.algebra.members(found.algebra.successors(get(found, "pfence"), fence))
        assert {found.events[i].cell[0] for i in events} == expected  # type: ignore[index]


def test_the_tensor_map_is_read_and_covered_by_its_fence() -> None:
    found = layout(
        f"{HERE}: fence.proxy.tensormap::generic.acquire.gpu [tm], 128; cp.async.bulk.tensor.1d.shared::cluster.global"
        ".mbarrier::complete_tx::bytes [s], [tm, {0}], [b]"
    )
    fence, read = (at(0), "F"), (at(1, operand=TENSORMAP), "R")
    assert pairs(found, "tmcov") == {(fence, read)}
    assert sets(found, fence) == {"F", "GEN", "STRONG", "GPU", "TMACQ"} and "TMP" in sets(found, read)
    copied = [(i, kind) for i, kind in keys(found) if i.instruction == 1 and kind in ("R", "W") and i != read[0]]
    assert {kind for _, kind in copied} == {"R", "W"}
    assert {(read, (at(1), "PF")), (read, (at(1, operand=1), "PF")), *((read, c) for c in copied)} <= pairs(
        found, "aord"
    )
    assert not {(c, read) for c in copied} & pairs(found, "aord")


def undefined(code: str, *, objects: str) -> str | None:
    """Why a program is undefined, or None; another CTA of the cluster has an idle thread."""
    body = "".join(f"  {line.strip()};\n" for line in code.split(";"))
    blocks = f"P0 @ {HERE} {{\n{body}}}\nP1 @ cta 1, cluster 0 {{\n  mov.u32 idle, 0;\n}}\n"
    test = parse_one("PTX t\n{" + objects + "}\n" + blocks + "exists (1 == 1)\n")
    result = check(test, load("ptx-8.5", {}), engine="enumerate")
    return next((note.text for note in result.notes if note.kind == "undefined"), None)


BULK = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [g], r, [b]"
ONE = """
  .shared .align 16 .u32 s[4] @ cta 0, cluster 0 = {0, 0, 0, 0};
  .global .align 16 .u32 g[4] = {7, 8, 9, 10};
  .shared .align 16 .b64 b @ cta 0, cluster 0 = mbarrier(1);
  .shared .b64 c @ cta 1, cluster 0 = mbarrier(1);
"""


def test_who_waits_for_a_copy_of_an_undefined_size_goes_on() -> None:
    waits = "mbarrier.arrive.expect_tx.shared::cta.b64 t, [b], 8; L: mbarrier.test_wait.shared::cta.b64 p, [b], t"
    reason = undefined(f"mov.u32 r, 8; {BULK}; {waits}; @!p bra L", objects=ONE)
    assert reason is not None and "a bulk copy of 8 bytes, which is no multiple of 16" in reason
    waits = waits.replace(", 8;", ", 16;")
    assert undefined(f"mov.u32 r, 16; {BULK}; {waits}; @!p bra L", objects=ONE) is None


@pytest.mark.parametrize(
    "code",
    [
        "ld.shared.u32 r, [a+4]",
        "st.shared.v2.u32 [a], {1, 1}",
        "atom.shared.add.u32 r, [a], 1",
        "red.shared.add.u32 [a], 1",
        "cp.async.ca.shared.global [a], [g], 8",
        "cp.async.bulk.global.shared::cta.bulk_group [g], [a], 16",
    ],
)
def test_an_mbarrier_is_no_memory(code: str) -> None:
    objects = ONE.replace(".b64 b @ cta 0, cluster 0 = mbarrier(1)", ".b64 b[2] @ cta 0, cluster 0 = {0, 0}")
    reason = undefined(f"mbarrier.init.shared::cta.b64 [b], 1; mov.u64 a, b; {code}", objects=objects)
    assert reason is not None and "access to an mbarrier (address 0x" in reason and "line" in reason
    assert undefined(f"mbarrier.init.shared::cta.b64 [b], 1; mov.u64 a, s; {code}", objects=objects) is None


def test_an_mbarrier_is_used_through_a_register() -> None:
    assert undefined("mov.u64 a, b; mbarrier.arrive.shared::cta.b64 t, [a]", objects=ONE) is None


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("mov.u32 r, 77; bar.sync r", "barrier 77, but a CTA has the barriers 0 to 15"),
        ("mov.u32 r, 33; bar.sync 0, r", "33 threads at a barrier, which is no multiple of 32"),
        (
            "mov.u32 r, 7; mbarrier.try_wait.parity.shared::cta.b64 p, [b], r",
            "the parity 7 of a wait, which is not 0 or 1",
        ),
        ("mov.u32 r, 15; bar.sync r", None),
        ("mov.u32 r, 32; bar.sync 0, r", None),
        ("mov.u32 r, 1; mbarrier.try_wait.parity.shared::cta.b64 p, [b], r", None),
    ],
)
def test_operands_of_barriers_in_registers(code: str, reason: str | None) -> None:
    assert undefined(code, objects=ONE) == reason


def test_tensor_maps_are_replaced_and_copied() -> None:
    found = layout(
        f"{HERE}: tensormap.replace.tile.global_address.global.b1024.b64 [tm], 0; tensormap.cp_fenceproxy.global"
        ".shared::cta.tensormap::generic.release.gpu.sync.aligned [tm], [t], 128",
        objects=OBJECTS + " .shared .align 128 .b8 t[128] @ cta 0, cluster 0 = {0};\n",
    )
    chain = [(at(0), "R"), (at(0), "W"), (at(1), "R"), (at(1, operand=1), "W"), (at(1), "F")]
    assert keys(found) == chain
    assert pairs(found, "po") == {(a, b) for i, a in enumerate(chain) for b in chain[i + 1 :]}
    assert sets(found, chain[4]) == {"F", "GEN", "STRONG", "GPU", "TMREL"} and not pairs(found, "rmw")


def test_barrier_like_instructions() -> None:
    found = layout(
        f"{HERE}: barrier.cluster.arrive.relaxed; barrier.cluster.wait; bar.warp.sync 1; "
        "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [b], 8; "
        "mbarrier.arrive.release.cluster.shared::cta.b64 t, [b]; mbarrier.test_wait.shared::cta.b64 p, [b], t; "
        "fence.mbarrier_init.release.cluster; mbarrier.inval.shared.b64 [b]"
    )
    assert [k for _, k in keys(found)] == ["CA", "CW", "BA", "BW", "MBA", "MBA", "MBW", "F", "MBV", "EX"]
    assert sets(found, (at(0), "CA")) == {"CA", "GEN", "STRONG", "CLUSTER"}
    assert sets(found, (at(1), "CW")) == {"CW", "GEN", "STRONG", "ACQ", "CLUSTER"}
    assert sets(found, (at(3), "MBA")) == {"MBA", "GEN", "STRONG", "CTA"}
    assert sets(found, (at(4), "MBA")) == {"MBA", "GEN", "STRONG", "REL", "CLUSTER"}
    assert sets(found, (at(5), "MBW")) == {"MBW", "GEN", "STRONG", "ACQ", "CTA"}
    assert sets(found, (at(6), "F")) == {"F", "GEN", "STRONG", "FMBI", "CLUSTER"}


def test_a_wait_forks_and_names_its_token() -> None:
    ((true, false),) = paths(
        f"{HERE}: mbarrier.arrive.shared::cta.b64 t, [b]; mbarrier.test_wait.shared::cta.b64 p, [b], t; "
        "@p st.global.u32 [g], 1"
    )
    assert [t.steps[-1].number for t in (true, false)] == [1, 0]
    assert all(t.steps[-1].state == at(0) for t in (true, false))
    assert [[e.kind for e in t.events] for t in (true, false)] == [["MBA", "MBW", "W"], ["MBA", "MBP"]]
    # The store depends on the wait, which depends on the arrival whose state it asks for.
    assert true.events[2].ctrl == 1 << true.events[1].leaf and true.events[1].data == 1 << true.events[0].leaf
    assert true.tokens == {at(0): 0}


def test_phases_of_an_mbarrier_are_per_initialisation() -> None:
    found = layout(
        f"{HERE}: mbarrier.arrive.shared::cta.b64 _, [b]; mbarrier.arrive.shared::cta.b64 _, [b]; "
        "mbarrier.try_wait.parity.shared::cta.b64 p, [b], 0"
    )
    a, b, w = at(0), at(1), at(2)
    epoch = 1 << 20

    def related(*phases: int) -> set[EventId]:
        relation = phase_relations(found, dict(zip((a, b, w), phases, strict=True)))["mbphase"]
        return {found.events[x].id for x, _ in found.algebra.pairs(relation)}

    assert related(0, 0, 1) == {a, b} and related(0, 1, 1) == {a} and related(0, 0, 0) == set()
    assert related(0, epoch, epoch + 1) == {b}


def test_grids_follow_each_other() -> None:
    objects = " .global .u32 x = 0;"
    found = layout(
        "grid 0, cta 0: st.global.u32 [x], 1",
        "grid 1, cta 0: ld.global.u32 r0, [x]",
        "grid 2 overlap, cta 0: griddepcontrol.wait; ld.global.u32 r0, [x]",
        objects=objects,
    )
    ends = {t: (EventId(t, n), "API") for t, n in ((0, 1), (1, 1), (2, 2))}
    starts = {t: (EventId(t, -1), "API") for t in range(3)}
    wait = (EventId(2, 0), "API")
    assert pairs(found, "api") == {(ends[0], starts[1]), (ends[0], wait), (ends[1], wait)}
    assert (starts[0], (EventId(0, 0), "W")) in pairs(found, "po") and sets(found, wait) == {"API"}


def test_in_flight_copies_are_complete_at_the_end_of_their_grid() -> None:
    found = layout(
        f"grid 0, {HERE}: cp.async.bulk.global.shared::cta.bulk_group [g], [s], 16",
        "grid 1, cta 0: ld.global.u32 r0, [g]",
        objects=OBJECTS.replace("@ cta", "@ grid 0, cta"),
    )
    end = (EventId(0, 1), "API")
    inside = {k for k in keys(found) if k[0][:2] == (0, 0) and k[1] != "ISS"}
    assert {a for a, b in pairs(found, "acomp") if b == end} == inside


def test_addresses_in_other_ctas() -> None:
    code = (
        "mov.u64 a, b; mapa.shared::cluster.u64 c, a, 1; mapa.shared::cluster.u64 d, a, 7; "
        "getctarank.shared::cluster.u64 e, c; cvta.shared::cluster.u64 f, c; isspacep.shared::cluster p, f; "
        "isspacep.shared::cta q, f; isspacep.global r, f"
    )
    objects = " .shared .b64 b = 0;"
    ((trace,), _) = paths(f"{HERE}: {code}", "cta 1, cluster 0: mbarrier.init.shared::cta.b64 [b], 1", objects=objects)
    values = {name: node.value for name, node in trace.registers.items()}
    assert values["c"] not in (0, values["a"]) and values["d"] == 0 and values["e"] == 1
    assert (values["p"], values["q"], values["r"]) == (1, 0, 0)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("mov.b32 r0, 0; stmatrix.sync.aligned.m8n8.x2.shared.b16 [s], {r0, r0}", "more than one matrix"),
    ],
)
def test_what_can_not_be_modelled_is_refused(code: str, message: str) -> None:
    with pytest.raises(PtxmmError, match=message) as caught:
        paths(f"{HERE}: {code}", objects=OBJECTS + " .global .align 128 .b8 raw[128] = {0};\n")
    assert caught.value.kind == "unsupported" and caught.value.line is not None
