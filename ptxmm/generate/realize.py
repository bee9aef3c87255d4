"""A skeleton as a litmus test: names, values, addresses."""

from __future__ import annotations

from collections.abc import Mapping

from ptxmm.errors import Span
from ptxmm.generate.skeleton import Place, Skeleton, Slot
from ptxmm.generate.vocabulary import Form, Vocabulary
from ptxmm.program.layout import address_of
from ptxmm.program.test import MemoryObject, Placement, Test, Thread
from ptxmm.ptx.ops import Address, Atomic, Fence, Imm, Load, Op, ProxyFence, Reg, Scope, Source, Store, Sym, Type

U32 = Type("u", 32)
B32 = Type("b", 32)
_NAMES = "xyzwvuts"
_NOWHERE = Source(Span(1, 1, 2), "")
_SCOPES: Mapping[str, Scope] = {"cta": "cta", "cluster": "cluster", "gpu": "gpu", "sys": "sys"}


def realize(skeleton: Skeleton, words: Vocabulary, name: str) -> Test:
    """The test of ``skeleton``, without a condition.

    Stores and exchanges of a location write 1, 2, ...; additions add powers of two beyond these, so that a value tells
    which writes it is made of. With up to eight writes of a location every value fits into one byte: no value is a
    mixture of the bytes of others, so that it makes no difference whether reads may be torn (8.9.7).
    """
    values = written_values(skeleton)
    threads = []
    for t, body in enumerate(skeleton.threads):
        ops: list[Op] = []
        registers: dict[str, Type] = {}
        for i, slot in enumerate(body):
            op = instruction(slot, values.get((t, i), 0), f"r{len(registers)}")
            if slot.form.kind in ("ld", "atom"):
                registers[f"r{len(registers)}"] = U32 if slot.form.kind == "ld" else B32
            ops.append(op)
        threads.append(Thread(f"P{t}", placement(skeleton.places[t], words), tuple(ops), registers))
    return Test(name=name, threads=tuple(threads), objects=_objects(skeleton), condition=None)


def written_values(skeleton: Skeleton) -> dict[tuple[int, int], int]:
    """What the writes write or add, by thread and position."""
    values: dict[tuple[int, int], int] = {}
    counts: dict[int, int] = {}
    slots = [((t, i), slot) for t, body in enumerate(skeleton.threads) for i, slot in enumerate(body)]
    for place, slot in slots:
        if slot.form.kind in ("st", "atom"):
            counts[slot.location] = values[place] = counts.get(slot.location, 0) + 1
    steps: dict[int, int] = {}
    for place, slot in slots:
        if slot.form.kind == "red":
            step = steps.get(slot.location) or 1 << counts.get(slot.location, 0).bit_length()
            values[place] = step
            steps[slot.location] = 2 * step
    return values


def instruction(slot: Slot, value: int, register: str) -> Op:
    """The instruction of ``slot``, which writes or adds ``value`` and reads into ``register``."""
    form = slot.form
    scope = None if form.scope is None else _SCOPES[form.scope]
    address = Address(Sym(location_name(slot.location, slot.name)))
    match form.kind:
        case "ld":
            return Load((Reg(register),), address, U32, form.order, scope, "global", _NOWHERE)
        case "st":
            return Store(address, (Imm(value),), U32, form.order, scope, "global", _NOWHERE)
        case "alias":
            return ProxyFence("alias", _NOWHERE)
    assert scope is not None
    if form.kind == "fence":
        return Fence(form.order, scope, _NOWHERE)
    returns = form.kind == "atom"
    return Atomic(
        (Reg(register),) if returns else (),
        "exch" if returns else "add",
        address,
        ((Imm(value),),),
        B32 if returns else U32,
        form.order,
        scope,
        "global",
        returns,
        _NOWHERE,
    )


def location_name(location: int, name: int) -> str:
    """``x``, ``y``, ...; ``x2`` is the alias of ``x``."""
    plain = _NAMES[location] if location < len(_NAMES) else f"v{location}"
    return f"{plain}2" if name else plain


def placement(place: Place, words: Vocabulary) -> Placement:
    """The place of a thread. The widest scope has all threads: where that is a CTA or a cluster, they are in one."""
    numbers = dict(zip(words.levels, place, strict=True))
    widest = words.scopes[-1] if words.scopes else "gpu"
    if widest in ("cta", "cluster"):
        numbers[widest] = 0
    return Placement(gpu=numbers.get("gpu", 0), cluster=numbers.get("cluster"), cta=numbers.get("cta"))


def _objects(skeleton: Skeleton) -> dict[str, MemoryObject]:
    used = sorted({(s.location, s.name) for body in skeleton.threads for s in body if s.location >= 0})
    locations = sorted({location for location, _ in used})
    names = [(location, name) for location in locations for name in (0, 1) if name == 0 or (location, 1) in used]
    addresses = {item: address_of(number) for number, item in enumerate(names)}
    objects: dict[str, MemoryObject] = {}
    for location, name in names:
        key, target = location_name(location, name), location_name(location, 0)
        alias_of = target if name else None
        objects[key] = MemoryObject(
            key, key, "global", U32, 1, False, (0,), addresses[location, name], key, target, alias_of=alias_of
        )
    return objects


__all__ = ["Form", "instruction", "location_name", "placement", "realize", "written_values"]


_KINDS = {"ld": "R", "st": "W", "atom": "X", "red": "A", "fence": "F", "alias": "Falias"}
_ORDERS = {"": "", "weak": "", "relaxed": "r", "acquire": "a", "release": "l", "acq_rel": "al", "sc": "sc"}


def canonical_name(skeleton: Skeleton) -> str:
    """The name of a program in canonical form: threads are joined by ``+``, the instructions of a thread by ``.``.

    An instruction is R (ld), W (st), X (atom.exch), A (red.add) or F (fence), then its location, then its order (none
    for weak, r relaxed, a acquire, l release, al acq_rel, sc) and the first letter of its scope (k for the cluster).
    The places of threads are not part of it.
    """
    return "+".join(".".join(_slot(slot) for slot in body) for body in skeleton.threads)


def _slot(slot: Slot) -> str:
    form = slot.form
    where = location_name(slot.location, slot.name) if slot.location >= 0 else ""
    scope = "" if form.scope is None else "k" if form.scope == "cluster" else form.scope[0]
    return f"{_KINDS[form.kind]}{where}{_ORDERS[form.order]}{scope}"
