"""The forms that an instruction may take: the orders, scopes and fences that could stand in its place, by strength.

A form is made of *steps*, each of which only adds order: a stronger ``.sem``, one more level of scope, the presence of
a fence. What no step changes are the values and the accesses of the instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import get_args

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.cat.ir import Coverage
from ptxmm.program.identity import Site, Switch
from ptxmm.program.placement import includes
from ptxmm.program.test import Test
from ptxmm.program.variation import Variation
from ptxmm.ptx import ops

SCOPES: tuple[ops.Scope, ...] = get_args(ops.Scope)
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
    forms: tuple[tuple[ops.Op | None, frozenset[int]], ...]
    given: frozenset[int]

    def variation(self, owner: Site) -> Variation:
        """The same, for the engine: the switches are those of ``owner``."""
        return Variation(tuple((op, frozenset(Switch(*owner, step) for step in needs)) for op, needs in self.forms))

    @property
    def strongest(self) -> ops.Op:
        """The form with all steps."""
        op = self.forms[-1][0]
        assert op is not None
        return op

    def at(self, steps: frozenset[int]) -> ops.Op | None:
        """The form that exactly the switches ``steps`` make."""
        return max((f for f in self.forms if f[1] <= steps), key=lambda f: len(f[1]))[0]


def scopes_of(
    test: Test, threads: Collection[int], coverage: Coverage, kept: ops.Scope | None = None, stronger: bool = True
) -> tuple[ops.Scope, ...]:
    """The scopes that tell the threads of ``test`` apart, seen from one of ``threads``, narrowest first (PTX ISA 8.5).

    Of scopes that include the same threads the narrowest is taken; ``kept`` is there too, in its place if wider
    scopes are wanted (``stronger``) and else beside it. A scope of the thread alone is left out if there is a
    wider one, for nothing is morally strong in it but what is in program order. Only scopes that the model has.
    """
    scopes = set[ops.Scope]().union(*(_scopes_of(test, thread, coverage, kept, stronger) for thread in threads))
    return tuple(scope for scope in SCOPES if scope in scopes)


def _scopes_of(test: Test, thread: int, coverage: Coverage, kept: ops.Scope | None, stronger: bool) -> set[ops.Scope]:
    mine = test.threads[thread].placement
    found: dict[frozenset[int], ops.Scope] = {}
    for scope in SCOPES:
        if scope not in coverage.scopes and scope != kept:
            continue
        around = frozenset(
            index
            for index, other in enumerate(test.threads)
            if index == thread or includes(scope, mine, other.placement)
        )
        if (scope == kept and stronger) or around not in found:
            found[around] = scope
    ordered = sorted(found, key=len)
    if len(ordered[0]) == 1 and len(ordered) > 1 and found[ordered[0]] != kept:
        del ordered[0]
    return {found[around] for around in ordered} | ({kept} if kept is not None else set())


Levels = Callable[[ops.Scope | None], tuple[ops.Scope, ...]]
"""The scopes that an instruction may have which has this one, from the narrowest."""


def forms_of(test: Test, threads: Collection[int], op: ops.Op, coverage: Coverage, stronger: bool) -> Forms | None:
    """The forms that may stand in the place of ``op``, which ``threads`` have: up to the strongest, or up to ``op``
    itself.

    None for an instruction without other forms. Volatile accesses count as ``.relaxed.sys``; ``.mmio`` ones stay as
    they are, and so do weak accesses of several elements, which a stronger order would make accesses of other sizes.
    """

    def levels(kept: ops.Scope | None) -> tuple[ops.Scope, ...]:
        return scopes_of(test, threads, coverage, kept, stronger)

    return forms_with(test.isa, op, levels, coverage, stronger)


def forms_with(isa: tuple[int, int], op: ops.Op, levels: Levels, coverage: Coverage, stronger: bool) -> Forms | None:
    """The same in PTX of version ``isa``, where ``levels`` says which scopes an instruction may have."""
    match op:
        case ops.Fence(restrict=str()) | ops.MbarrierInitFence():
            return _presence(op)
        case ops.ProxyFence():
            return _proxy_fence(op, stronger)
        case ops.ClusterBarrier(kind="arrive"):
            forms = (replace(op, sem="relaxed"), frozenset[int]()), (replace(op, sem="release"), frozenset((0,)))
            released = op.sem == "release"
            return Forms(("release",), forms, frozenset((0,) if released else ())) if stronger or released else None
    orders = orders_of(isa, op)
    if not orders:
        return None
    match op:
        case ops.TensormapFence():
            scopes = _levels(coverage, op.scope, SCOPES)
        case ops.MbarrierArrive() | ops.MbarrierWait() | ops.MbarrierTx():
            scopes = _levels(coverage, op.scope, ("cta", "cluster"))
        case _:
            scopes = levels(getattr(op, "scope", None))
    return _product(op, orders, scopes, stronger)


def orders_of(isa: tuple[int, int], op: ops.Op) -> tuple[Order, ...]:
    """The orders that ``op`` may have; none if it stays as it is."""
    match op:
        case ops.Load() | ops.Store() if op.mmio or op.proxy != "generic" or op.space in ("const", "param", "local"):
            return ()
        case ops.Load(nc=True):
            return ()
        case ops.Load():
            return _of_elements(_LOADS, op.sem, len(op.dst))
        case ops.Store():
            return _of_elements(_STORES, op.sem, len(op.values))
        case ops.Multimem():
            orders = {"ld_reduce": _LOADS, "st": _STORES, "red": _REDUCTIONS}[op.kind]
            return _of_elements(orders, op.sem, max(len(op.dst), len(op.values)))
        case ops.Atomic(proxy="generic"):
            acquires = op.returns or op.sem in ("acquire", "acq_rel")  # of red, the untyped dialect alone
            return _ATOMICS if acquires else _REDUCTIONS
        case ops.Fence():
            return _FENCES_86 if op.sem in ("acquire", "release") or one_way(isa) else _FENCES
        case ops.TensormapFence():
            return (None, ()), (op.sem, ("fence",))
        case ops.MbarrierArrive() | ops.MbarrierWait():
            strong = "release" if isinstance(op, ops.MbarrierArrive) else "acquire"
            fixed = op.sem == strong and not one_way(isa)
            return ((strong, ()),) if fixed else (("relaxed", ()), (strong, (strong,)))
        case ops.MbarrierTx():
            return (("relaxed", ()),)
    return ()


def _of_elements(orders: tuple[Order, ...], sem: str, number: int) -> tuple[Order, ...]:
    """Those of ``orders`` between which an access of so many elements, which is ``sem``, may be changed."""
    if number == 1:
        return orders
    return () if sem == "weak" else tuple(o for o in orders if o[0] != "weak")


def _proxy_fence(op: ops.ProxyFence, stronger: bool) -> Forms:
    if op.kind != "async" or op.space not in ("shared::cta", "shared::cluster"):
        return _presence(op)
    near = op.space == "shared::cta"
    if near and not stronger:
        return _presence(op)
    spaces = (
        (replace(op, space="shared::cta"), frozenset((0,))),
        (replace(op, space="shared::cluster"), frozenset((0, 1))),
    )
    return Forms(("fence", "cluster"), ((None, frozenset()), *spaces), frozenset((0,) if near else (0, 1)))


def below(scope: ops.Scope, coverage: Coverage) -> tuple[ops.Scope, ...]:
    """The scopes of the model that are narrower than ``scope``, from the narrowest."""
    return tuple(s for s in SCOPES[: SCOPES.index(scope)] if s in coverage.scopes)


def one_way(isa: tuple[int, int]) -> bool:
    """Whether PTX of version ``isa`` has ``fence.acquire``, ``fence.release`` and relaxed mbarriers (8.6)."""
    return isa >= (8, 6)


def _presence(op: ops.Op) -> Forms:
    return Forms(("fence",), ((None, frozenset()), (op, frozenset((0,)))), frozenset((0,)))


def _levels(coverage: Coverage, kept: ops.Scope, scopes: Sequence[ops.Scope]) -> tuple[ops.Scope, ...]:
    return tuple(scope for scope in scopes if scope in coverage.scopes or scope == kept)


def _product(op: ops.Op, orders: Sequence[Order], scopes: Sequence[ops.Scope], stronger: bool) -> Forms | None:
    """All orders with all scopes; without ``stronger`` those that need no step that ``op`` does not have."""
    wider = [f"scope {scope}" for scope in scopes[1:]]
    found = list(_combined(op, orders, scopes, wider))
    given = next(needs for form, needs in found if form is op)
    if not stronger:
        found = [(form, needs) for form, needs in found if needs <= given]
    found.sort(key=lambda f: len(f[1]))
    needed = frozenset[str]().union(*(needs for _, needs in found))
    names = dict.fromkeys((*(step for _, steps in orders for step in steps), *wider))
    kept = tuple(name for name in names if name in needed)

    def numbers(needs: frozenset[str]) -> frozenset[int]:
        return frozenset(map(kept.index, needs))

    forms = tuple((form, numbers(needs)) for form, needs in found)
    return Forms(kept, forms, numbers(given)) if len(forms) > 1 else None


def _combined(
    op: ops.Op, orders: Sequence[Order], scopes: Sequence[ops.Scope], wider: Sequence[str]
) -> Iterator[tuple[ops.Op | None, frozenset[str]]]:
    """Each order in each scope with the steps that it needs, ``op`` itself among them."""
    common = set.intersection(*(set(steps) for _, steps in orders))
    for sem, steps in orders:
        for level, scope in enumerate((None,) if sem in (None, "weak") else scopes):
            form = None if sem is None else with_order(op, sem, scope)
            if form is not None and getattr(op, "sem", sem) == sem and getattr(op, "scope", None) == scope:
                form = op
            yield form, frozenset((*steps, *wider[:level])) - common


def with_order(op: ops.Op, sem: str, scope: ops.Scope | None) -> ops.Op:
    """``op`` with this ``.sem`` and this scope, as far as it has them."""
    changes = {"sem": sem, "scope": scope, "volatile": False}
    return replace(op, **{name: value for name, value in changes.items() if name in op.__struct_fields__})
