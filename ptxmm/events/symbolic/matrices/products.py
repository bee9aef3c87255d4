"""When a thread uses the registers of a product of its warpgroup as it must not (PTX ISA 9.7.16.7)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec.structs import replace

from ptxmm.events.symbolic.executor import Executor
from ptxmm.events.symbolic.machine import Products, Use
from ptxmm.events.symbolic.values.domain import joined
from ptxmm.program.shared.products import UNFENCED, accessed, changed, copied, fragments, unfinished
from ptxmm.ptx.ops import Op, Wgmma, WgmmaFence
from ptxmm.relations.formula import FALSE, Formula, Formulas


def merged(formulas: Formulas, arms: Sequence[tuple[Formula, Products]]) -> Products:
    """The moment after several paths meet, each with its guard."""
    both = formulas.both
    return Products(
        formulas.any([both(guard, p.fenced) for guard, p in arms]),
        joined(formulas, ((use, both(guard, when)) for guard, p in arms for use, when in p.used.items())),
        joined(formulas, ((number, both(guard, when)) for guard, p in arms for number, when in p.running.items())),
    )


def execute(
    run: Executor, op: Op, now: Products, presence: Formula, among: frozenset[str], fed: frozenset[str]
) -> Products:
    """The moment after ``op``, which is executed where ``presence`` holds; misuse is noted. ``among``: the registers of
    the products of the thread. ``fed``: where copies are no accesses (A63), these and all that is copied to them."""
    formulas = run.formulas
    if presence == FALSE:
        return now
    if isinstance(op, WgmmaFence):
        used = {use: formulas.both(when, -presence) for use, when in now.used.items()}
        left = {use: when for use, when in used.items() if when != FALSE}
        return replace(now, fenced=formulas.either(now.fenced, presence), used=left)
    if isinstance(op, Wgmma):
        return _product(run, op, now, presence)
    names = accessed(op, among, fed)
    if not names:
        return now
    for name in names:
        held = [when for number, when in now.running.items() if name in {n for n, _ in _uses(run, number)}]
        if held:
            run.misuse(formulas.both(presence, formulas.any(held)), unfinished(name))
    copy = copied(op) if fed else None
    if copy is None:
        return replace(now, used=_with(formulas, now, {(name, "thread"): presence for name in names}))
    taken = {
        (copy[0], kind): formulas.both(presence, when) for (name, kind), when in now.used.items() if name == copy[1]
    }
    return replace(now, used=_with(formulas, now, taken))


def finished(formulas: Formulas, now: Products, done: Collection[int], presence: Formula) -> Products:
    """The moment after a wait for the products ``done``."""
    running = {n: formulas.both(when, -presence) if n in done else when for n, when in now.running.items()}
    return replace(now, running={n: when for n, when in running.items() if when != FALSE})


def _product(run: Executor, op: Wgmma, now: Products, presence: Formula) -> Products:
    formulas = run.formulas
    uses = _uses_of(op)
    run.misuse(formulas.both(presence, -now.fenced), UNFENCED)
    for name in sorted({name for name, _ in uses}):
        others = [when for use, when in now.used.items() if use[0] == name and use not in uses]
        if others:
            run.misuse(formulas.all([presence, now.fenced, formulas.any(others)]), changed(name))
        # A product that goes on holds it in another role (9.7.16.7.3).
        running = [
            when for n, when in now.running.items() if any(u[0] == name and u not in uses for u in _uses(run, n))
        ]
        if running:
            run.misuse(formulas.both(presence, formulas.any(running)), unfinished(name))
    started = {**now.running, len(run.machine.operations): presence}
    return replace(now, used=_with(formulas, now, dict.fromkeys(uses, presence)), running=started)


def _with(formulas: Formulas, now: Products, uses: Mapping[Use, Formula]) -> dict[Use, Formula]:
    return {**now.used, **{use: formulas.either(now.used.get(use, FALSE), when) for use, when in uses.items()}}


def _uses(run: Executor, number: int) -> list[Use]:
    """The registers of a product by its number among the operations."""
    return _uses_of(run.machine.products[number])


def _uses_of(op: Wgmma) -> list[Use]:
    kind = "accumulator", op.shape, op.type
    return [*((r.name, kind) for r in op.dst), *((name, "fragment") for name in fragments(op))]
