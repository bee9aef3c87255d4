"""The relations and axioms of the models in words, with their sections in PTX ISA 8.5, as data."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct

from ptxmm.cat import index
from ptxmm.cat.ir import Axiom, Model


class Words(Struct, frozen=True):
    """``text``: what a relation or an axiom is called or says; ``section`` of PTX ISA 8.5, or of the version that it
    names, or None where it is not from there."""

    text: str
    section: str | None


EDGES: Mapping[str, Words] = MappingProxyType(
    {
        "po": Words("program order", "8.9.1"),
        "po-loc": Words("program order, same location", "8.9.1"),
        "rf": Words("reads-from", "8.9.7 (1)"),
        "co": Words("coherence order", "8.9.6"),
        "fr": Words("from-reads", "8.9.7 (3)"),
        "fsc": Words("Fence-SC order", "8.9.3"),
        "sync_fence": Words("Fence-SC order", "8.9.3"),
        "rmw": Words("the two halves of one atomic operation", "8.4"),
        "addr": Words("address dependency", "8.10.4"),
        "data": Words("data dependency", "8.10.4"),
        "ctrl": Words("control dependency", "8.10.4"),
        "barphase": Words("barrier phase", "8.9.4 (2)"),
        "syncbar": Words("barrier phase", "8.9.4 (2)"),
        "sync_barrier": Words("barrier phase", "8.9.4 (2)"),
        "warpphase": Words("phase of bar.warp.sync", "9.7.14.2"),
        "cluphase": Words("phase of the cluster barrier", "8.9.4 (3)"),
        "mbphase": Words("phase of the mbarrier", "9.7.14.15.16"),
        "exitphase": Words("exit, which lets the barrier pass", "9.7.14.1"),
        "mbnext": Words("next operation on the mbarrier", "9.7.14.15"),
        "mbcount": Words("state of the mbarrier that the later arrival returns", "9.7.14.15.13"),
        "mblate": Words("arrival of a later phase of the mbarrier", "9.7.14.15.4"),
        "mbpassed": Words("wait for the phase before", "9.7.14.15.4"),
        "issue": Words("start of an asynchronous operation", "8.9.1.1"),
        "issue-all": Words("start of an asynchronous operation", "8.9.1.1"),
        "aord": Words("order inside an asynchronous operation", "8.9.1.1"),
        "acomp": Words("completion of an asynchronous operation", "8.9.1.1"),
        "api": Words("API synchronization between grids", "8.9.4 API"),
        "api-indirect": Words("API synchronization with a grid further back", "9.7.14.13"),
        "trigger": Words("the dependent grid starts after it", "9.7.14.13"),
    }
)
"""Base relations that order events."""

STATIC: Mapping[str, Words] = MappingProxyType(
    {
        "loc": Words("same location", "8.2.1"),
        "ovl": Words("overlap", "8.2.1"),
        "vloc": Words("same address", "8.2.1"),
        "vovl": Words("overlap by address", "8.2.1"),
        "inscope": Words("scope includes", "8.5"),
        "sr": Words("each in the scope of the other", "8.5"),
        "scta": Words("same CTA", "8.5"),
        "int": Words("same thread", "8.9.1"),
        "ext": Words("another thread", "8.9.1"),
        "pfence": Words("proxy fence of the proxy", "8.6"),
        "mbobj": Words("initialisation of the mbarrier", "9.7.14.15.9"),
        "accum": Words("products of the same accumulator and shape", "9.7.16.6.2 of PTX ISA 9.0"),
        "tmcov": Words("fence of the tensor map", "9.7.14.4"),
        "lives": Words("shared memory of the CTA", "5.1.7"),
        "rcov": Words("fence for the shared memory", "9.7.13.4 of PTX ISA 9.0"),
        "same-value": Words("the same value, which may race", "8.7.1"),
    }
)
"""Base relations between what two instructions are by themselves, where a model makes a path of them."""

ORDERS: Mapping[str, Words] = MappingProxyType(
    {
        "obs": Words("observation order", "8.9.2"),
        "bc": Words("base causality order", "8.9.5 base"),
        "ppbc": Words("proxy-preserved base causality order", "8.9.5 ppbc"),
        "cause": Words("causality order", "8.9.5 causality"),
        "precedes": Words("causality order of the whole atomic operation", "8.2"),
        "ms": Words("morally strong", "8.7"),
    }
)
"""Definitions of the models that chapter 8 has a name for, apart from patterns and synchronization; those that have
numbered clauses end in what these belong to."""

CONDITIONS: Mapping[str, Words] = MappingProxyType(
    {
        "po": Words("program order relates them", "8.7 (1)"),
        "mutual": Words("both are strong, and the scope of each includes the other", "8.7 (1)"),
        "same-proxy": Words("the same proxy", "8.7 (2)"),
        "complete": Words("complete overlap", "8.7 (3)"),
    }
)
"""The conditions of morally strong operations, as the models define them."""

COMPOSITE: Mapping[str, Words] = MappingProxyType(
    {
        "sync-pattern": Words("synchronizes by release and acquire patterns", "8.9.4 (4)"),
        "sync-cluster": Words("synchronizes by the cluster barrier", "8.9.4 (3)"),
        "sync-mbarrier": Words("synchronizes by the mbarrier", "9.7.14.15.16"),
        "sync-tensormap": Words("synchronizes by tensormap fences", "9.7.14.4"),
        "sync-init": Words("publishes initialised mbarriers", "9.7.14.4"),
        "sync-releasing": Words("synchronizes by a release fence for shared memory", "9.7.13.4 of PTX ISA 9.0"),
        "sync-acquiring": Words("synchronizes by an acquire fence for shared memory", "9.7.13.4 of PTX ISA 9.0"),
        "sync-async": Words("synchronizes by fences of the async proxy", "9.7.13.4 of PTX ISA 9.0"),
    }
)
"""Definitions of the models that are shown as one edge, with what it is made of."""

PATTERNS: Mapping[str, Words] = MappingProxyType(
    {
        "release-pattern": Words("release pattern", "8.8 release"),
        "acquire-pattern": Words("acquire pattern", "8.8 acquire"),
    }
)
"""Definitions inside of those whose first and last instruction are told."""

_WHOLE = "no morally strong write falls between the two halves of an atomic operation"

AXIOMS: Mapping[str, Words] = MappingProxyType(
    {
        "FenceSC-order": Words("Fence-SC order is acyclic", "8.9.3"),
        "FenceSC-total": Words("Fence-SC order relates every pair of morally strong fence.sc operations", "8.9.3"),
        "Fence-SC": Words("Fence-SC order cannot contradict causality order", "8.10.2"),
        "Coherence": Words("coherence order of overlapping writes cannot contradict causality order", "8.10.1"),
        "CoTotalMS": Words("morally strong writes are related in coherence order", "8.9.6"),
        "SingleCopyAtomicity": Words("a read takes no bytes from a write and from one before it", "8.10.3 single-copy"),
        "Atomicity-RMW": Words(_WHOLE, "8.10.3 RMW"),
        "Atomicity": Words(_WHOLE, "8.10.3 RMW"),
        "MixedSizeRMW": Words("atomic operations of any sizes are performed one after the other", "8.7.2"),
        "MixedSizeRMW-order": Words("atomic operations of any sizes are performed one after the other", "8.7.2"),
        "No-Thin-Air": Words("no value comes out of thin air", "8.10.4"),
        "SC-per-Location": Words("communication order cannot contradict program order on one location", "8.10.5"),
        "Causality": Words("communication order cannot contradict causality order", "8.10.6"),
    }
)  # fmt: skip
"""What the axioms of the models of PTX say."""

SC_AXIOMS: Mapping[str, Words] = MappingProxyType(
    {
        "Coherence": Words("all writes of a location are ordered", None),
        "Atomicity": Words("no write falls between the two halves of an atomic operation", None),
        "Sequential-Consistency": Words("all operations are in one order that agrees with every thread's", None),
    }
)
"""What those of ``sc`` say, which is not from the PTX ISA."""


def axiom_words(model: Model, axiom: Axiom) -> Words:
    """What ``axiom`` says; in a model of the user's own, what kind of check it is and where it stands."""
    known = SC_AXIOMS if model.name == "sc" else AXIOMS
    if model.name in index().models and axiom.name in known:
        return known[axiom.name]
    return Words(f"{axiom.kind} in line {axiom.span.line} of {axiom.file}", None)
