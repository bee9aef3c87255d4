"""The vocabulary of models: the base sets and relations that the events of an execution supply, in one table.

From it come the names that a model may use, the tables of docs/cat.md, and what both sides are tested to supply.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from types import MappingProxyType
from typing import NamedTuple

CONSTANTS: Mapping[str, str] = MappingProxyType(
    {"_": "universe", "E": "universe", "emptyset": "empty_set", "0": "empty_relation"}
)
"""Names of the set of all events, the empty set and the empty relation, as the graph calls these."""


class Row(NamedTuple):
    """Base sets, or relations, that belong together: ``about`` each in turn, as Markdown; the ``section`` of the PTX
    ISA that they are of, 8.5 where no other is named; the ``readings`` that the events follow for them. The relations
    are empty where all of the sets ``needs`` are (if there are any)."""

    names: tuple[str, ...]
    section: str
    about: str
    readings: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


def _row(names: str, section: str, about: str, readings: str = "", *, needs: str = "") -> Row:
    return Row(tuple(names.split()), section, about, tuple(readings.split()), tuple(needs.split()))


# fmt: off
BASE_SETS = (
    _row("R W M", "8.2", "reads, writes, both", "b128 cas-failure tear vector"),
    _row("IW", "8.2.6", "the initial writes: they belong to no thread, are in `W` and `M` and in no set below"),
    _row("F FSC FAR PF AF", "9.7.14.4",
         "fences: all, `fence.sc`, `fence.acq_rel`, proxy fences of a kind, alias proxy fences"),
    _row("BA BW B", "9.7.14.1", "arrivals at CTA barriers, waits, both (`bar.sync` is an arrival, then a wait)"),
    _row("STRONG WEAK", "8.4",
         "strong operations (relaxed, release, acquire, volatile, mmio, fences); weak reads and writes"),
    _row("RLX REL ACQ", "8.4", "relaxed, release, acquire operations; of an atomic operation the halves that are so"),
    _row("SC ACQ_REL", "9.7.14.4", "the fences `FSC` and `FAR` under the names of other tools"),
    _row("VOL MMIO", "8.4", "volatile and mmio accesses"),
    _row("AMO NORET", "9.7.14.5", "both halves of `atom` and `red`; the read of a `red`"),
    _row("CTA CLUSTER GPU SYS", "8.5", "strong operations by their scope"),
    _row("FA FL", "9.7.13.4 (PTX 9.0)", "`fence.acquire`, `fence.release` (PTX 8.6)"),
    _row("FRA FRR", "9.7.13.4 (PTX 9.0)",
         "the same with `.sync_restrict` (PTX 8.6); they are in no other set of memory fences but `F`"),
    _row("TEN TCC TCM", "9.7.16.6 (PTX 9.0)",
         "accesses of tensor memory (PTX 8.6): all, those of `tcgen05.cp`, of `tcgen05.mma`"),
    _row("TCB TCA TCX", "9.7.16.11 (PTX 9.0)",
         "`tcgen05.fence::before_thread_sync`; `::after_thread_sync`; the arrivals of `tcgen05.commit`"),
    _row("ASREL ASACQ", "9.7.13.4 (PTX 9.0)", "`fence.proxy.async::generic`, `.release` and `.acquire` (PTX 8.6)"),
    _row("CA CW", "9.7.14.3", "arrivals at cluster barriers, waits"),
    _row("MBI MBA MBW", "9.7.14.15",
         "of mbarriers: initialisations; arrivals and counting of bytes, those of asynchronous operations too; "
         "waits that return true"),
    _row("MBX", "9.7.14.15.3",
         "the operations on mbarriers that are not initialised before the program, but initialisations: `MBA`, "
         "`MBW`, and the waits that return false and the `mbarrier.inval`, which are in no other set"),
    _row("FMBI TMREL TMACQ", "9.7.14.4", "`fence.mbarrier_init`; release and acquire fences of the tensormap proxy"),
    _row("ISS AW", "8.9.1.1", "instructions that start an asynchronous operation; waits for groups of them"),
    _row("STA", "9.7.10.12", "the accesses of `st.async` and `red.async`"),
    _row("PFR", "9.7.10.24.2",
         "the implicit proxy fences after the reads of bulk copies (they and those at the completion are in `PF` "
         "too)"),
    _row("EX", "9.7.14.1",
         "the exits of threads, in programs with barriers that do not wait for threads which have exited"),
    _row("API", "8.9.4", "the ends and starts of threads where grids follow each other, and `griddepcontrol.wait`"),
    _row("GEN SUR TEX CON", "8.6", "accesses and fences by proxy: generic, surface, texture, constant"),
    _row("ASY TMP", "9.7.10.24.2", "accesses through the async proxy; reads of tensor maps by copies"),
    _row("ALIAS HOST", "8.6", "`AF`; events of host threads"),
)
"""Kinds of events, orders, scopes, proxies."""

BASE_RELATIONS = (
    _row("po int ext", "8.9.1",
         "program order (transitive; elements of a vector are not ordered among themselves, asynchronous "
         "operations not at all); same thread; different threads"),
    _row("rf co fr", "8.9.7",
         "reads-from, coherence, from-reads. `co` is any strict partial order on the writes of a location with the "
         "initial write first: the model must say what more it needs", "co tear"),
    _row("fsc", "8.9.3", "Fence-SC order: some pairs of `fence.sc` that are in each other's scope",
         needs="FSC"),
    _row("rmw", "8.10.3", "the read and the write of one atomic operation", "cas-failure"),
    _row("addr data ctrl", "8.10.4",
         "dependencies from a read, a wait on an mbarrier or an arrival that returns a state to what it decides "
         "the address, the value or the execution of ([Readings](readings.md#dependencies) says when it does). "
         "What decides that a loop is left decides the execution of all that comes after it. Of an arrival, the "
         "address is which barrier it is at, and the value its counts; the `complete_tx` of a copy has what "
         "decides where and how much is copied as its address", "dep"),
    _row("loc ovl", "8.2.1", "accesses to the same physical bytes; to some common ones"),
    _row("vloc vovl", "8.2.2", "the same by virtual address: aliases of one location differ"),
    _row("po-loc", "8.10.5", "`po & loc`"),
    _row("inscope", "8.5", "(a, b): a is strong and its scope contains the thread of b"),
    _row("sr", "8.7", "strong operations, each in the scope of the other"),
    _row("scta", "8.5", "events of threads of one CTA"),
    _row("barphase warpphase cluphase", "8.9.4",
         "arrival and wait of one phase of a CTA barrier; of a `bar.warp.sync`; of a cluster barrier",
         needs="BW CW"),
    _row("exitphase", "9.7.14.1",
         "the exit of a thread and a wait of a phase of such a barrier that would have waited for its arrival",
         needs="EX"),
    _row("mbphase", "9.7.14.15.6", "an arrival on an mbarrier and a wait for its phase or a later one",
         needs="MBW"),
    _row("mblate mbpassed", "9.7.14.15.7",
         "an arrival (no `expect_tx`, no `complete_tx`) in a phase of an mbarrier that is not the first one, to "
         "itself; to it from each wait that has found the phase before complete",
         needs="MBA"),
    _row("mbcount", "9.7.14.15.13",
         "an operation on an mbarrier and each later arrival on it that returns its state, as they ran (where the "
         "program computes with such a state)",
         needs="MBA"),
    _row("mbnext mbobj", "9.7.14.15.3",
         "an arrival and the next operation on the same mbarrier as they ran; an initialisation and the operations "
         "on its mbarrier",
         needs="MBA MBI"),
    _row("issue issue-all", "8.9.1.1",
         "the start of an asynchronous operation and its accesses; and all that belongs to it",
         needs="ISS TEN"),
    _row("aord acomp", "8.9.1.1", "the order inside an asynchronous operation; its completion and what waits for that",
         needs="ISS AW TEN"),
    _row("pfence", "8.6", "a proxy fence and an access through its proxy in the state space it covers",
         needs="PF"),
    _row("accum", "9.7.16.6.2 (PTX 9.0)",
         "what two products of `tcgen05.mma` access in tensor memory, if they are of one accumulator, shape and kind",
         needs="TEN"),
    _row("tmcov", "9.7.14.4", "an acquire fence of the tensormap proxy and a read of the tensor map that it covers",
         needs="TMACQ"),
    _row("rcov", "9.7.13.4 (PTX 9.0)",
         "a fence with `.sync_restrict` and an operation, on an mbarrier too, on an object in the state space that "
         "it is for",
         needs="FRA FRR ASREL ASACQ"),
    _row("lives", "5.1.7",
         "in a kernel: what another CTA does with the shared memory of a CTA, or a bulk copy, and what the threads "
         "of this CTA do; it itself where they do nothing"),
    _row("same-value", "8.7.1",
         "in a kernel: two writes of the same bytes, with the same value, that its launch allows to race "
         "([Kernels](modules.md#races-of-equal-values))"),
    _row("api-indirect", "9.7.14.13",
         "the pairs of `api` that end at a `griddepcontrol.wait` and begin in a grid before the one before it",
         needs="API"),
    _row("api", "8.9.4", "the end of a thread and the start of one in a later grid, or its `griddepcontrol.wait`",
         needs="API"),
    _row("trigger", "9.7.14.13",
         "the first `griddepcontrol.launch_dependents` of a thread and the starts of the threads of the next grid, "
         "if that may start before this one ends; from PTX 9.2 on, before it there are none",
         needs="API"),
    _row("syncbar sync_barrier sync_fence", "8.9.4",
         "`barphase`, `barphase`, `fsc` under the names of other tools; a model that uses `sync_fence` gets one "
         "that is acyclic and orders every two `fence.sc` in each other's scope",
         needs="BW FSC"),
)
"""The identity ``id`` is built in."""
# fmt: on

SELDOM = ("lives", "same-value")
"""Relations that most programs have no pair of, whatever their events."""

SETS = frozenset(name for row in BASE_SETS for name in row.names)
RELATIONS = frozenset(name for row in BASE_RELATIONS for name in row.names)
_NEEDING = tuple((frozenset(row.needs), row.names) for row in BASE_RELATIONS if row.needs)


def close(name: str, known: Sequence[str], most: int) -> list[str]:
    """Those of ``known`` that ``name`` is most probably a misspelling of; one that differs in case only is it."""
    from difflib import get_close_matches  # only on the way to an error

    folded = {n.lower(): n for n in known}
    return [folded[name.lower()]] if name.lower() in folded else get_close_matches(name, known, most)


def absent(sets: Set[str], relations: Set[str] = frozenset()) -> frozenset[str]:
    """The base sets and relations that are empty where the base sets ``sets`` and ``relations`` are."""
    return frozenset(relations).union(sets, *(names for needs, names in _NEEDING if needs <= sets))
