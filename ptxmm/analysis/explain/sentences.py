"""Sentences of the PTX ISA 8.5 that explanations quote, by the section and the clause that they are, as data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

SENTENCES: Mapping[str, str] = MappingProxyType(
    {
        "8.2.1": "Two memory operations are said to overlap when they specify the same virtual address and the "
        "corresponding memory locations overlap.",
        "8.5": "Each strong operation must specify a scope, which is the set of threads that may interact directly "
        "with that operation and establish any of the relations described in the memory consistency model.",
        "8.6": "A proxy fence is required to synchronize memory operations across different proxies.",
        "8.7": "Two operations are said to be morally strong relative to each other if they satisfy all of the "
        "following conditions:",
        "8.7 (1)": "The operations are related in program order (i.e, they are both executed by the same thread), or "
        "each operation is strong and specifies a scope that includes the thread executing the other operation.",
        "8.7 (2)": "Both operations are performed via the same proxy.",
        "8.7 (3)": "If both are memory operations, then they overlap completely.",
        "8.7.2": "Either the read-modify-write operation specified by A1 is performed completely before A2 is "
        "initiated, or vice versa.",
        "8.8 release (1)": "A release operation on M",
        "8.8 release (2)": "Or a release operation on M followed by a strong write on M in program order",
        "8.8 release (3)": "Or a memory fence followed by a strong write on M in program order",
        "8.8 acquire (1)": "An acquire operation on M",
        "8.8 acquire (2)": "Or a strong read on M followed by an acquire operation on M in program order",
        "8.8 acquire (3)": "Or a strong read on M followed by a memory fence in program order",
        "8.9.1": "The program order relates all operations performed by a thread to the order in which a sequential "
        "processor will execute instructions in the corresponding PTX source.",
        "8.9.1.1": "These asynchronous operations are ordered after prior instructions in the same thread (except in "
        "the case of wgmma.mma_async), but they are not part of the program order for that thread.",
        "8.9.2 (1)": "R and W are morally strong and R reads the value written by W",
        "8.9.2 (2)": "For some atomic operation Z, W precedes Z and Z precedes R in observation order.",
        "8.9.3": "The Fence-SC order is an acyclic partial order, determined at runtime, that relates every pair of "
        "morally strong fence.sc operations.",
        "8.9.4 (1)": "A fence.sc operation X synchronizes with a fence.sc operation Y if X precedes Y in the Fence-SC "
        "order.",
        "8.9.4 (2)": "A bar{.cta}.sync or bar{.cta}.red or bar{.cta}.arrive operation synchronizes with a "
        "bar{.cta}.sync or bar{.cta}.red operation executed on the same barrier.",
        "8.9.4 (3)": "A barrier.cluster.arrive operation synchronizes with a barrier.cluster.wait operation.",
        "8.9.4 (4)": "A release pattern X synchronizes with an acquire pattern Y, if a write operation in X precedes a "
        "read operation in Y in observation order, and the first operation in X and the last operation in Y are "
        "morally strong.",
        "8.9.4 API": "In addition to establishing a synchronizes relation, the CUDA API synchronization mechanisms "
        "above also participate in proxy-preserved base causality order.",
        "8.9.5 base (1)": "X precedes Y in program order",
        "8.9.5 base (2)": "X synchronizes with Y",
        "8.9.5 base (3)": "X precedes Z in base causality order and Z precedes Y in base causality order.",
        "8.9.5 ppbc (1)": "X and Y are performed to the same address, using the generic proxy",
        "8.9.5 ppbc (2)": "X and Y are performed to the same address, using the same proxy, and by the same thread "
        "block",
        "8.9.5 ppbc (3)": "X and Y are aliases and there is an alias proxy fence along the base causality path from X "
        "to Y.",
        "8.9.5 causality (1)": "X precedes Y in proxy-preserved base causality order",
        "8.9.5 causality (2)": "For some operation Z, X precedes Z in observation order, and Z precedes Y in "
        "proxy-preserved base causality order.",
        "8.9.6": "Two overlapping write operations are related in coherence order if they are morally strong or if "
        "they are related in causality order.",
        "8.9.7 (1)": "A write W precedes an overlapping read R in communication order if R returns the value of any "
        "byte that was written by W.",
        "8.9.7 (3)": "A read R precedes an overlapping write W in communication order if, for any byte accessed by "
        "both R and W, R returns the value written by a write W’ that precedes W in coherence order.",
        "8.10.1": "If a write W precedes an overlapping write W’ in causality order, then W must precede W’ in "
        "coherence order.",
        "8.10.2": "For a pair of morally strong fence.sc operations F1 and F2, if F1 precedes F2 in causality order, "
        "then F1 must precede F2 in Fence-SC order.",
        "8.10.3 single-copy": "Conflicting morally strong operations are performed with single-copy atomicity.",
        "8.10.3 RMW": "When an atomic operation A and a write W overlap and are morally strong, then the following two "
        "communications cannot both exist in the same execution, for the set of bytes accessed by both A and W:",
        "8.10.4": "Values may not appear “out of thin air”: an execution cannot speculatively produce a value in such "
        "a way that the speculation becomes self-satisfying through chains of instruction dependencies and "
        "inter-thread communication.",
        "8.10.5": "Within any set of overlapping memory operations that are pairwise morally strong, communication "
        "order cannot contradict program order",
        "8.10.6 (1)": "If a read R precedes an overlapping write W in causality order, then R cannot read from W.",
        "8.10.6 (2)": "If a write W precedes an overlapping read R in causality order, then for any byte accessed by "
        "both R and W, R cannot read from any write W’ that precedes W in coherence order.",
        "9.7.14.1": "The barrier{.cta}.sync or barrier{.cta}.red or barrier{.cta}.arrive instruction guarantees that "
        "when the barrier completes, prior memory accesses requested by this thread are performed relative to all "
        "threads participating in the barrier.",
        "9.7.14.2": "bar.warp.sync also guarantee memory ordering among threads participating in barrier.",
        "9.7.14.4": "A .release proxy fence can form a release sequence that synchronizes with an acquire sequence "
        "that contains a .acquire proxy fence.",
        "9.7.14.13": ".wait modifier causes the executing thread to wait until all prerequisite grids in flight have "
        "completed and all the memory operations from the prerequisite grids are performed and made visible to the "
        "current grid.",
        "9.7.14.15.13": "mbarrier.arrive operation on an mbarrier object located in .shared::cta returns an opaque "
        "64-bit register capturing the phase of the mbarrier object prior to the arrive-on operation in the "
        "destination operand state.",
        "9.7.14.15.16": "All memory accesses (except async operations ) requested prior, in program order, to "
        "mbarrier.arrive during the completed phase by the participating threads of the CTA are performed and are "
        "visible to the executing thread.",
    }
)


def sentence(section: str | None) -> str | None:
    """The sentence that a clause is, or the one of its section; None where none is quoted."""
    if section is None or section.endswith("of PTX ISA 9.0"):
        return None
    number = re.match(r"[\d.]+", section)
    return SENTENCES.get(section) or (SENTENCES.get(number[0]) if number else None)
