"""The forms that an instruction may take: the orders, scopes and fences that could stand in its place, by strength.

A form is made of *steps*, each of which only adds order: a stronger ``.sem``, one more level of scope, the presence of
a fence. What no step changes are the values and the accesses of the instruction.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import get_args

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.cat.ir import Coverage
from ptxmm.program.identity import Site, Switch
from ptxmm.program.test import Placement, Test
from ptxmm.program.variation import Variation
from ptxmm.ptx.ops import (
    Atomic,
    ClusterBarrier,
    Fence,
    Load,
    MbarrierArrive,
    MbarrierInitFence,
    MbarrierTx,
    MbarrierWait,
    Multimem,
    Op,
    ProxyFence,
    Scope,
    Store,
    TensormapFence,
)

SCOPES: tuple[Scope, ...] = get_args(Scope)
"""From the narrowest to the widest."""

Order = tuple[str | None, tuple[str, ...]]
"""A ``.sem`` (None: no such instruction) and the steps that it takes."""

_LOADS: tuple[Order, ...] = (("weak", ()), ("relaxed", ("strong",)), ("acquire", ("strong", "acquire")))
_STORES: tuple[Order, ...] = (("weak", ()), ("relaxed", ("strong",)), ("release", ("strong", "release")))
_REDUCTIONS: tuple[Order, ...] = (("relaxed", ()), ("release", ("release",)))
_ATOMICS: tuple[Order, ...] = (
    ("relaxed", ()), ("acquire", ("acquire",)), ("release", ("release",)), ("acq_rel", ("acquire", "release")),
)  # fmt: skip
_FENCES: tuple[Order, ...] = ((None, ()), ("acq_rel", ("fence",)), ("sc", ("fence", "sc")))
_FENCES_86: tuple[Order, ...] = (
    (None, ()), ("acquire", ("acquire",)), ("release", ("release",)), ("acq_rel", ("acquire", "release")),
    ("sc", ("acquire", "release", "sc")),
)  # fmt: skip


class Forms(Struct, frozen=True):
    """The forms of one instruction.

    ``steps`` names the steps; ``forms`` pairs each form (None: no instruction) with the numbers of its
    steps, the weakest first, the strongest last; ``given``: the steps of the instruction as it is written.
    """

    steps: tuple[str, ...]
    forms: tuple[tuple[Op | None, frozenset[int]], ...]
    given: frozenset[int]

    def variation(self, owner: Site) -> Variation:
        """The same, for the engine: the switches are those of ``owner``."""
        return Variation(tuple((op, frozenset(Switch(*owner, step) for step in needs)) for op, needs in self.forms))

    @property
    def strongest(self) -> Op:
        """The form with all steps."""
        op = self.forms[-1][0]
        assert op is not None
        return op

    def at(self, steps: frozenset[int]) -> Op | None:
        """The form that exactly the switches ``steps`` make."""
        return max((f for f in self.forms if f[1] <= steps), key=lambda f: len(f[1]))[0]


def scopes_of(
    test: Test, threads: Collection[int], coverage: Coverage, kept: Scope | None = None, stronger: bool = True
) -> tuple[Scope, ...]:
    """The scopes that tell the threads of ``test`` apart, seen from one of ``threads``, narrowest first (PTX ISA 8.5).

    Of scopes that include the same threads the narrowest is taken; ``kept`` is there too, in its place if wider
    scopes are wanted (``stronger``) and else beside it. A scope of the thread alone is left out if there is a
    wider one, for nothing is morally strong in it but what is in program order. Only scopes that the model has.
    """
    scopes = set[Scope]().union(*(_scopes_of(test, thread, coverage, kept, stronger) for thread in threads))
    return tuple(scope for scope in SCOPES if scope in scopes)


def _scopes_of(test: Test, thread: int, coverage: Coverage, kept: Scope | None, stronger: bool) -> set[Scope]:
    mine = test.threads[thread].placement
    found: dict[frozenset[int], Scope] = {}
    for scope in SCOPES:
        if scope not in coverage.scopes and scope != kept:
            continue
        around = frozenset(
            index
            for index, other in enumerate(test.threads)
            if index == thread or _includes(scope, mine, other.placement)
        )
        if (scope == kept and stronger) or around not in found:
            found[around] = scope
    ordered = sorted(found, key=len)
    if len(ordered[0]) == 1 and len(ordered) > 1 and found[ordered[0]] != kept:
        del ordered[0]
    return {found[around] for around in ordered} | ({kept} if kept is not None else set())


def forms_of(test: Test, threads: Collection[int], op: Op, coverage: Coverage, stronger: bool) -> Forms | None:
    """The forms that may stand in the place of ``op``, which ``threads`` have: up to the strongest, or up to ``op``
    itself.

    None for an instruction without other forms. Volatile accesses count as ``.relaxed.sys``; ``.mmio`` ones stay as
    they are, and so do weak accesses of several elements, which a stronger order would make accesses of other sizes.
    """
    match op:
        case Load() | Store():
            if op.mmio or op.proxy != "generic" or op.space in ("const", "param", "local"):
                return None
            if isinstance(op, Load) and op.nc:
                return None
            orders = _LOADS if isinstance(op, Load) else _STORES
            several = len(op.dst if isinstance(op, Load) else op.values) > 1
            if several and op.sem == "weak":
                return None
            scopes = scopes_of(test, threads, coverage, op.scope, stronger)
            return _product(op, [o for o in orders if not several or o[0] != "weak"], scopes, stronger)
        case Atomic():
            if op.proxy != "generic":
                return None
            scopes = scopes_of(test, threads, coverage, op.scope, stronger)
            acquires = op.returns or op.sem in ("acquire", "acq_rel")  # of red, the untyped dialect alone
            return _product(op, _ATOMICS if acquires else _REDUCTIONS, scopes, stronger)
        case Fence():
            if op.restrict is not None:
                return _presence(op)
            orders = _FENCES_86 if op.sem in ("acquire", "release") or one_way(test) else _FENCES
            return _product(op, orders, scopes_of(test, threads, coverage, op.scope, stronger), stronger)
        case ProxyFence() if op.kind == "async" and op.space in ("shared::cta", "shared::cluster"):
            near = replace(op, space="shared::cta")
            if op.space == "shared::cta" and not stronger:
                return _presence(op)
            given = frozenset((0,) if op.space == "shared::cta" else (0, 1))
            far = replace(op, space="shared::cluster")
            return Forms(
                ("fence", "cluster"), ((None, frozenset()), (near, frozenset((0,))), (far, frozenset((0, 1)))), given
            )
        case ProxyFence() | MbarrierInitFence():
            return _presence(op)
        case TensormapFence():
            absent: Order = (None, ())
            return _product(op, (absent, (op.sem, ("fence",))), _levels(coverage, op.scope, SCOPES), stronger)
        case Multimem():
            if op.sem == "weak" and max(len(op.dst), len(op.values)) > 1:
                return None
            kinds = {"ld_reduce": _LOADS, "st": _STORES, "red": _REDUCTIONS}[op.kind]
            several = max(len(op.dst), len(op.values)) > 1
            scopes = scopes_of(test, threads, coverage, op.scope, stronger)
            return _product(op, [o for o in kinds if not several or o[0] != "weak"], scopes, stronger)
        case MbarrierArrive() | MbarrierWait():
            scopes = _levels(coverage, op.scope, ("cta", "cluster"))
            strong = "release" if isinstance(op, MbarrierArrive) else "acquire"
            orders = (("relaxed", ()), (strong, (strong,)))
            if op.sem == strong and not one_way(test):
                orders = ((strong, ()),)
            return _product(op, orders, scopes, stronger)
        case MbarrierTx():
            return _product(op, (("relaxed", ()),), _levels(coverage, op.scope, ("cta", "cluster")), stronger)
        case ClusterBarrier() if op.kind == "arrive":
            both = (replace(op, sem="relaxed"), frozenset[int]()), (replace(op, sem="release"), frozenset((0,)))
            given = frozenset((0,)) if op.sem == "release" else frozenset()
            return Forms(("release",), both if stronger or given else both[:1], given) if stronger or given else None
    return None


def below(scope: Scope, coverage: Coverage) -> tuple[Scope, ...]:
    """The scopes of the model that are narrower than ``scope``, from the narrowest."""
    return tuple(s for s in SCOPES[: SCOPES.index(scope)] if s in coverage.scopes)


def one_way(test: Test) -> bool:
    """Whether the version of PTX of ``test`` has ``fence.acquire``, ``fence.release`` and relaxed mbarriers (8.6)."""
    return test.isa >= (8, 6)


def _presence(op: Op) -> Forms:
    return Forms(("fence",), ((None, frozenset()), (op, frozenset((0,)))), frozenset((0,)))


def _levels(coverage: Coverage, kept: Scope, scopes: Sequence[Scope]) -> tuple[Scope, ...]:
    return tuple(scope for scope in scopes if scope in coverage.scopes or scope == kept)


def _product(op: Op, orders: Sequence[Order], scopes: Sequence[Scope], stronger: bool) -> Forms | None:
    """All orders with all scopes; without ``stronger`` those that need no step that ``op`` does not have."""
    common = set.intersection(*(set(steps) for _, steps in orders))
    orders = [(sem, tuple(step for step in steps if step not in common)) for sem, steps in orders]
    names = tuple(dict.fromkeys(step for _, steps in orders for step in steps))
    numbers = {name: number for number, name in enumerate((*names, *(f"scope {s}" for s in scopes[1:])))}
    given: frozenset[int] | None = None
    found: list[tuple[Op | None, frozenset[int]]] = []
    for sem, steps in orders:
        base = frozenset(numbers[step] for step in steps)
        if sem is None or sem == "weak":
            found.append((None if sem is None else _weak(op), base))
            if sem is not None and getattr(op, "sem", None) == "weak":
                given = base
            continue
        for level, scope in enumerate(scopes):
            needs = base | {numbers[f"scope {s}"] for s in scopes[1 : level + 1]}
            form = _with(op, sem, scope)
            if getattr(op, "sem", sem) == sem and getattr(op, "scope", None) == scope:
                form, given = op, needs
            found.append((form, needs))
    assert given is not None
    if not stronger:
        found = [(form, needs) for form, needs in found if needs <= given]
    found.sort(key=lambda f: len(f[1]))
    kept = sorted(set().union(*(needs for _, needs in found)))
    renumbered = {old: new for new, old in enumerate(kept)}
    all_names = list(numbers)
    result = Forms(
        tuple(all_names[old] for old in kept),
        tuple((form, frozenset(renumbered[n] for n in needs)) for form, needs in found),
        frozenset(renumbered[n] for n in given),
    )
    return result if len(result.forms) > 1 else None


def _weak(op: Op) -> Op:
    if isinstance(op, Multimem):
        return replace(op, sem="weak", scope=None)
    assert isinstance(op, Load | Store)
    return replace(op, sem="weak", scope=None, volatile=False)


def _with(op: Op, sem: str, scope: Scope) -> Op:
    match op:
        case Load() | Store():
            return replace(op, sem=sem, scope=scope, volatile=False)
        case Atomic() | Fence() | Multimem():
            return replace(op, sem=sem, scope=scope)
        case TensormapFence() | MbarrierTx():
            return replace(op, scope=scope)
        case MbarrierArrive():
            return replace(op, scope=scope, sem="release" if sem == "release" else "relaxed")
        case MbarrierWait():
            return replace(op, scope=scope, sem="acquire" if sem == "acquire" else "relaxed")
    raise AssertionError(op)


def _includes(scope: Scope, mine: Placement, other: Placement) -> bool:
    """Whether ``scope`` around one thread includes another thread (8.5)."""
    if scope == "sys":
        return True
    if mine.host or other.host or mine.gpu != other.gpu:
        return False
    if scope == "gpu":
        return True
    together = mine.grid == other.grid and mine.cluster == other.cluster
    if scope == "cluster" and mine.cluster is not None:
        return together
    return together and mine.cta is not None and mine.cta == other.cta
