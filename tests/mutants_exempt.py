"""The mutants that no litmus test can notice, each with a proof.

The proofs speak of the relations of a model by their names. "Implied" conditions follow from what a base relation
relates: they are in the text because it then says what it means.
"""

from __future__ import annotations

from tests.mutants import Mutant

FENCE_SC = (
    "Fence-SC order: take an accepted execution whose witness order contradicts base causality or itself. Rearranging "
    "the order inside each cycle by a linear extension of base causality without it only takes edges away from base "
    "causality, so every other axiom still holds and so does the final state; and the rearranged order contradicts "
    "nothing. Base causality without it has no cycle through a fence (Coherence and Causality forbid one)"
)
MS_PO = (
    "one thread: strong operations of one thread are mutually in scope anyway, so only weak accesses of one location "
    "through one proxy lose anything. Communication along program order is in SC-per-Location as program order; "
    "CoTotalMS still has the pair the other way round; an observation of a weak write of the own thread starts no "
    "release pattern, and as a cause it orders nothing that program order on the location does not; a conflict in one "
    "thread is in causality order; and a torn read contradicts Causality"
)
MS_PO_BACK = (
    "one thread: communication against program order on one location through one proxy is a cycle of Causality or "
    "Coherence, because program order is in base causality and its pairs on one location are causes; CoTotalMS "
    "still has the pair in program order. (Not so in ptx-6.0, where bare program order is no cause.)"
)
READ_ONLY = (
    "accesses through this proxy only read: nothing communicates through it, reads do not conflict, and a cause from a "
    "read to a read takes part in no axiom"
)
ALL_GENERIC = "PTX ISA 6.0 has one proxy, `same-proxy` is every pair"
LEAVE_ENTER = "contained in the rule with proxy fences, in which generic accesses need none to leave and to enter"
TORN = (
    "SC-per-Location: if a read takes one byte from a write and another from before it, and the two are morally "
    "strong, then reads-from and from-reads between them are a cycle of morally strong communication"
)
SCOPED = "implied: `inscope` starts at strong operations only, so both sides of `mutual` are strong"
TYPED = "implied by the relation beside it: it starts, or ends, in that set only"
ACCESSES = "implied: `vovl`, `ovl`, `vloc` and `loc` relate memory operations only"
OBSERVED = "implied: observation order starts at a write and ends at a read, because reads-from does"
WEAK_MIDDLE = (
    "a weak write is observed within its own thread only (it is morally strong with nothing else). What observes it "
    "there and passes it on to another thread is an atomic operation: its write is strong, on the same location, and "
    "after the first operation of the pattern in program order as well, so it makes the pattern in its place. What "
    "observes it there and ends the chain is in program order after it"
)
WAIT_ACQUIRES = "barrier.cluster.wait has no other semantics than .acquire, also where none is written"
HALVES = (
    "the read and the write of an atomic operation are of one thread, one scope, one proxy and the same bytes: the "
    "write between them is morally strong (or mutually in scope) with both or with neither"
)
OVERLAP = (
    "implied: every pair of `cause` that an axiom or a flag looks at overlaps. Its first operation and what reads from "
    "or is read before it overlap; observation order keeps to one range of bytes; Coherence and `conflict` ask for it"
)
NOT_THERE = (
    "what causality orders before all initialisations of its mbarrier operates on none, which is undefined as both "
    "engines step through the operations on mbarriers; what it does not order before one is in the other part"
)
KERNELS = "litmus tests show a part of a program: kernels notice it (tests/test_cta_exit.py, tests/test_same_value.py)"
SYMMETRIC = "a race is symmetric, and the flags only ask whether there is one: the other order of the pair is there"
PROGRAM_ORDER = (
    "in its own thread, what depends on a read comes after it in program order, or is an access of an asynchronous "
    "operation that is issued after it"
)
COMPLETE = "implied: morally strong operations overlap completely, and only what overlaps partially is asked for"
WHOLE_INITIAL = (
    "implied: only what overlaps partially is asked for. An access overlaps itself completely, and an initial write is "
    "of the same location as every access of its bytes"
)
ASYNC_LEAVES = (
    "an asynchronous access, or the read of a tensor map, comes before anything in base causality order through the "
    "implicit proxy fence of its own completion only (`aord`), or through the end of its thread (`acomp` to an API "
    "event), and API synchronization passes every proxy. The implicit fence covers it and is of its own thread. So "
    "wherever a path leads out of it, a proxy fence that lets it leave is on the path"
)
NO_ENTRY = (
    "implied: a proxy fence covers asynchronous accesses; the reads of tensor maps only by the fences of their own "
    "completion, which come after them; and accesses of st.async and red.async, which are generic and need none"
)
NO_PATH_FROM_ISSUE = (
    "an issue event is neither a memory operation nor a fence nor an operation on an mbarrier, and every use of base "
    "causality order begins at one of these"
)
PO_GENERIC = "asynchronous accesses are in no program order, and all others are generic"
AMO_PO = (
    "one thread: generic accesses that overlap are in causality order as they are in program order, so Coherence "
    "orders their writes, and Causality forbids a write between the two halves of the later one that is before it"
)
SURFACE_GENERIC = (
    "implied: `pfence` covers surface, texture and constant accesses only; these are memory operations and not generic"
)

IN_CLUSTER = (
    "both fences are of cluster scope, and in one cluster: the first is in the CTA that the object lies in, the second "
    "in the CTA of the copy, and the shared memory of a CTA is accessible in its cluster only"
)
COVERED = (
    "implied: an acquire fence of the async proxy covers every object in shared memory, and the release fence before "
    "it covers the object, which is then in shared memory"
)

READ_BEFORE = (
    "a read that precedes a generic write is in proxy-preserved order with it as it is, and what precedes a read takes "
    "part in no axiom where it reads itself"
)
ENTERED = (
    "the fence covers objects in shared memory, whose accesses are asynchronous or generic, and a generic access is "
    "entered without a fence; no axiom asks for what precedes any other event in this way"
)
ISSUED = (
    "the accesses of the other asynchronous operations come after prior instructions of their thread anyway (products "
    "of wgmma have no issue event), and from the end of an operation base causality order goes on through `aord` and "
    "`acomp` only, from which that it was issued is left out"
)
WEAK_READ = (
    "a weak read observes within its own thread only. What it observes of others there, an atomic operation of the "
    "thread has passed on, whose read, that of a red as well, is strong and starts the pattern in its place"
)
TENSORMAP_READS = "implied: the tensormap proxy has reads only"
STORES_ASYNC = "implied: only accesses are in STA"
FENCES_FREE = (
    "what is in program order in ptx-8.5 is generic, and so is all that a fence is morally strong with where a rule "
    "asks for it: the reading makes no difference"
)

NO_EVENTS = "the model covers no instruction with such events: clusters, mbarriers and copies came later"

_GROUPS: list[tuple[str, str, list[str]]] = [
    (FENCE_SC, "*", ["axiom FenceSC-order", "axiom Fence-SC"]),
    (MS_PO, "*", ["related without po"]),
    (MS_PO_BACK, "ptx-7.5 ptx-8.5", ["related without (po)^-1"]),
    (SCOPED, "*", ["related whatever [STRONG]", "related whatever [STRONG] (2)"]),
    (OBSERVED, "*", ["pattern-write whatever W", "pattern-read whatever R"]),
    (WEAK_MIDDLE, "*", ["pattern-write whatever STRONG"]),
    (WEAK_MIDDLE, "*", ["release-pattern whatever [pattern-write]", "release-pattern whatever [pattern-write] (2)"]),
    (WEAK_MIDDLE, "ptx-8.5", ["sync-init whatever [pattern-write]", "sync-tensormap whatever [pattern-write]"]),
    (WEAK_MIDDLE, "ptx-8.5", ["sync-releasing whatever [pattern-write]", "handed-over whatever [pattern-write]"]),
    (IN_CLUSTER, "ptx-8.5", ["sync-async whatever ms"]),
    (TYPED, "ptx-8.5", ["sync-async whatever [ASREL]", "sync-async whatever [ASACQ]"]),
    (OVERLAP, "ptx-8.5", ["ppbc whatever vovl (5)", "ppbc whatever vovl (6)"]),
    (COVERED, "ptx-8.5", ["acquire-async whatever rcov"]),
    (TYPED, "ptx-8.5", ["acquire-async whatever M"]),
    (HALVES, "ptx-6.0", ["axiom Atomicity whatever ms", "axiom Atomicity whatever ms (2)"]),
    (HALVES, "ptx-7.5 ptx-8.5", ["axiom Atomicity-RMW whatever ms", "axiom Atomicity-RMW whatever ms (2)"]),
    (HALVES, "ptx-8.5", ["axiom MixedSizeRMW whatever amo-ms", "axiom MixedSizeRMW whatever amo-ms (2)"]),
    (NO_EVENTS, "ptx-6.0 ptx-7.5", ["arrived without cluphase", "arrived without mbphase", "arrived without mbcount"]),
    (NO_EVENTS, "ptx-6.0 ptx-7.5", ["passed without CW", "passed never (issue-all)?"]),
    (NO_EVENTS, "ptx-6.0", ["passed without API"]),
    (PROGRAM_ORDER, "sc", ["given whatever ext"]),
    # ptx-6.0
    (ALL_GENERIC, "ptx-6.0", ["related whatever same-proxy"]),
    (ACCESSES, "ptx-6.0", ["axiom CoTotalMS whatever loc"]),
    # ptx-7.5
    (READ_ONLY, "ptx-7.5", ["same-proxy-access without (TEX * TEX)", "same-proxy-access without (CON * CON)"]),
    (LEAVE_ENTER, "ptx-7.5", ["ppbc without ([(M & GEN)] ; (bc & vovl) ; [(M & GEN)])"]),
    (ACCESSES, "ptx-7.5", ["leave whatever M", "enter whatever M"]),
    (SURFACE_GENERIC, "ptx-7.5", ["leave whatever [(M \\ GEN)]", "leave with GEN"]),
    (SURFACE_GENERIC, "ptx-7.5", ["enter whatever [(M \\ GEN)]", "enter with GEN"]),
    (ACCESSES, "ptx-7.5", ["ppbc whatever M", "ppbc whatever M (2)", "ppbc whatever [M]", "ppbc whatever [M] (2)"]),
    (ACCESSES, "ptx-7.5", ["axiom CoTotalMS whatever ovl"]),
    (OVERLAP, "ptx-7.5", ["ppbc whatever ovl", "axiom Coherence whatever ovl"]),
    (TYPED, "ptx-7.5", ["leave whatever [PF]", "enter whatever [PF]"]),
    # ptx-8.5
    (READ_ONLY, "ptx-8.5", ["same-proxy-access without (TMP * TMP)"]),
    (LEAVE_ENTER, "ptx-8.5", ["ppbc without ([generic] ; (bc & vovl) ; [generic])"]),
    (TORN, "ptx-8.5", ["axiom SingleCopyAtomicity"]),
    (
        ACCESSES,
        "ptx-8.5",
        ["generic whatever M", "ppbc whatever [M]", "ppbc whatever [M] (2)", "ppbc whatever [M] (3)"],
    ),
    (ACCESSES, "ptx-8.5", ["ppbc whatever [api-end]", "axiom CoTotalMS whatever ovl"]),
    (OVERLAP, "ptx-8.5", ["ppbc whatever ovl", "ppbc whatever ovl (2)", "axiom Coherence whatever ovl"]),
    (SYMMETRIC, "*", ["conflict without (W * M)", "conflict without (M * W)"]),
    (COMPLETE, "ptx-6.0 ptx-7.5", ["flag mixed-size-race without ms"]),
    (WHOLE_INITIAL, "ptx-6.0 ptx-7.5", ["conflict with id", "conflict with ((IW * M) | (M * IW))"]),
    (WHOLE_INITIAL, "ptx-6.0 ptx-7.5", ["conflict without (IW * M)", "conflict without (M * IW)"]),
    (TYPED, "ptx-8.5", ["cluster whatever [CA]", "cluster whatever CW", "sync-cluster whatever CA"]),
    (TYPED, "ptx-8.5", ["sync-cluster whatever [CA]", "mb-release whatever MBA", "mb-release whatever [MBA]"]),
    (TYPED, "ptx-8.5", ["mb-acquire whatever MBW", "enter-tensormap whatever [TMACQ]"]),
    (TYPED, "ptx-8.5", ["enter-tensormap whatever [(R & TMP)]", "enter-tensormap whatever R"]),
    (TYPED, "ptx-8.5", ["enter-tensormap whatever TMP", "leave whatever [PF]", "enter-by-fence whatever [PF]"]),
    (WAIT_ACQUIRES, "ptx-8.5", ["cluster whatever [(CW & ACQ)]", "cluster whatever ACQ"]),
    (ASYNC_LEAVES, "ptx-8.5", ["leave whatever (proxy-fence)^-1", "leave whatever [leaving]"]),
    (ASYNC_LEAVES, "ptx-8.5", ["leaving whatever R", "leaving whatever TMP", "ppbc whatever [generic]"]),
    (NO_ENTRY, "ptx-8.5", ["enter-by-fence whatever [(M & async-op)]"]),
    (NO_ENTRY, "ptx-8.5", ["enter-by-fence whatever M", "enter-by-fence whatever async-op"]),
    (NO_PATH_FROM_ISSUE, "ptx-8.5", ["tc without issue"]),
    (KERNELS, "ptx-8.5", ["seen-by without bc", "seen-by without ((rf | mbphase) ; (bc)?)", "seen-by never (bc)?"]),
    (KERNELS, "ptx-8.5", ["seen-by without rf", "seen-by without mbphase", "seen-by (bc)? once"]),
    (NOT_THERE, "ptx-8.5", ["flag mbarrier-before-init without (MBX \\ range(initialised))"]),
    (NOT_THERE, "ptx-8.5", ["initialised whatever mbobj"]),
    (KERNELS, "ptx-8.5", ["flag shared-after-exit", "flag shared-after-exit with domain((lives & seen-by))"]),
    (KERNELS, "ptx-8.5", ["flag shared-after-exit whatever lives", "flag shared-after-exit whatever seen-by"]),
    (KERNELS, "ptx-8.5", ["race without same-value"]),
    (PO_GENERIC, "ptx-8.5", ["po-vloc whatever same-proxy"]),
    (AMO_PO, "ptx-8.5", ["amo-ms without po", "amo-ms without (po)^-1"]),
    # other readings
    (
        READ_BEFORE,
        "ptx-8.5[proxy-war=free]",
        ["cause whatever [(W & async-op)]", "cause whatever W", "cause whatever async-op"],
    ),
    (
        ENTERED,
        "ptx-8.5[proxy-restrict=single]",
        ["enter whatever [(M & async-op)]", "enter whatever M", "enter whatever async-op"],
    ),
    (
        ISSUED,
        "ptx-8.5[tcgen05-wait=acquire]",
        ["issue whatever [domain((issue-all ; [TEN]))]", "issue whatever [TEN]", "issue whatever [M]"],
    ),
    (WEAK_READ, "ptx-6.0[red=read] ptx-7.5[red=read] ptx-8.5[red=read]", ["pattern-read whatever STRONG"]),
    (OBSERVED, "ptx-6.0[red=read] ptx-7.5[red=read] ptx-8.5[red=read]", ["pattern-read whatever R"]),
    (TENSORMAP_READS, "ptx-8.5[tmwar=off]", ["inside whatever R"]),
    (STORES_ASYNC, "ptx-8.5[stasync=async]", ["async-op whatever M"]),
    (FENCES_FREE, "ptx-8.5[fence-proxy=free]", ["same-proxy without ((_ * _) \\ (M * M))"]),
]

EXEMPT: dict[tuple[str, str], str] = {
    (model, name): reason for reason, models, names in _GROUPS for model in models.split() for name in names
}
"""(model or ``*``, mutant) -> why no test can tell."""


def exempt(mutant: Mutant) -> str | None:
    """Why no test can notice the mutant; None if one must."""
    return EXEMPT.get((mutant.model, mutant.name)) or EXEMPT.get(("*", mutant.name))
