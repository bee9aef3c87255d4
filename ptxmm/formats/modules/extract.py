"""The synchronization skeleton of a launched kernel as a litmus file."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from ptxmm.formats.text import at
from ptxmm.formats.writer import write
from ptxmm.program.condition import RegisterTerm, Term, map_terms
from ptxmm.program.edit import retarget
from ptxmm.program.test import Test, Thread
from ptxmm.program.unspecified.active import together
from ptxmm.ptx.isa import PREDICATE, definitions, uses
from ptxmm.ptx.ops import Address, Guard, Load, LoadMatrix, Op, Pack, Reg, Store, StoreMatrix, Sym, Type, Unpack, Wgmma
from ptxmm.ptx.spelling import refuse

_PREFIX = {32: "r", 64: "rd", 16: "rs", 128: "rq"}


def skeleton(test: Test) -> str:
    """``test``, made of a kernel, as a litmus file: what its threads do to memory, its fences and barriers, and what
    these depend on. Registers have short names, each line says where it is from only by the header.

    Raises ``PtxmmError`` (kind ``unsupported``) for what the litmus format can't say.
    """
    plain = tuple(_plain(thread) for thread in test.threads)
    _refuse_other_groups(replace(test, threads=plain))
    taken = {item.name for item in test.objects.values()}
    names = [_names(thread, taken) for thread in plain]
    threads = tuple(_renamed(thread, own) for thread, own in zip(plain, names, strict=True))
    condition = test.condition
    if condition is not None:
        renamed = map_terms(condition.proposition, lambda term: _term(term, names))
        condition = replace(condition, proposition=renamed)
    described = [f"Extracted from {Path(test.file).name}.", *(test.claims.remarks if test.claims else ())]
    info: tuple[tuple[str, str], ...] = (("Source", Path(test.file).name),)
    if test.isa > (8, 5):
        info = (*info, ("ISA", f"{test.isa[0]}.{test.isa[1]}"))
    made = replace(
        test, threads=threads, condition=condition, claims=None, info=info, description="\n".join(described),
        locations=tuple(_term(term, names) for term in test.locations),
    )  # fmt: skip
    return _with_words(write(made), {item.name for item in test.objects.values()})


def _with_words(text: str, names: Collection[str]) -> str:
    """A litmus ``text`` with words in place of ``names`` in C++ of several parts: ``a_v`` for ``a::v``."""
    title, _, rest = text.partition("\n")
    taken = set(names)
    for name in sorted(names, key=len, reverse=True):
        if re.fullmatch(r"[\w$]+", name) is None:
            word = re.sub(r"\W+", "_", name).strip("_")
            while word in taken or re.match("[0-9]", word):
                word = f"_{word}"
            taken.add(word)
            rest = re.sub(rf"(?<![\w:]){re.escape(name)}(?!\w)", word, rest)
    return f"{title}\n{rest}"


def _refuse_other_groups(test: Test) -> None:
    """Raises where lanes may execute an ``activemask`` together that a litmus test, which numbers those of each lane,
    takes for two, or the other way round."""
    own, numbered = ({tuple(group) for group in together(t)} for t in (test, replace(test, claims=None)))
    for thread, pc in sorted(site for group in own ^ numbered for site in group):
        message = "a litmus test can't say which lanes execute this `activemask` together"
        raise at(message, test.threads[thread].body[pc].source.span, kind="unsupported", hint="check the kernel itself")


def _plain(thread: Thread) -> Thread:
    """``thread`` with plain accesses for those of matrices whose rows the launch decides: these have no text, as it is
    other lanes that name them. Raises ``PtxmmError`` where a product reads a matrix in pieces."""
    for op in thread.body:
        if isinstance(op, Wgmma) and op.matrices:
            message = "a litmus test can't say which bytes the matrices of a product have"
            raise refuse(op, message, "check the kernel itself")
    if not any(isinstance(op, LoadMatrix | StoreMatrix) and op.fragments for op in thread.body):
        return thread
    halves = [f"half {n}" for n in range(2)]
    chunks = [
        list(_accesses(op, [Reg(name) for name in halves])) if isinstance(op, LoadMatrix | StoreMatrix) else [op]
        for op in thread.body
    ]
    return replace(
        thread, body=retarget(chunks), registers={**thread.registers, **dict.fromkeys(halves, Type("b", 16))}
    )


def _accesses(op: LoadMatrix | StoreMatrix, halves: Sequence[Reg]) -> Iterator[Op]:
    """The accesses of a lane, element by element."""
    if not op.fragments:
        yield op
        return
    loads = isinstance(op, LoadMatrix)
    items = op.dst if isinstance(op, LoadMatrix) else op.values
    pair, element = Type("b", 32), Type("b", 16)
    each = len(op.fragments) // len(items)
    for number, item in enumerate(items):
        places = op.fragments[each * number : each * (number + 1)]
        parts = [halves] if each == 1 else [halves[:1], halves[1:]]
        if not loads:
            assert item is not None
            yield Unpack(tuple(halves), pair, item, op.source, op.guard)
        for place, own in zip(places, parts, strict=True):
            if loads:
                yield Load(tuple(own), place, element, "weak", None, "shared", op.source, op.guard)
            else:
                yield Store(place, tuple(own), element, "weak", None, "shared", op.source, op.guard)
        if isinstance(item, Reg) and loads:
            yield Pack(item, pair, tuple(halves), op.source, op.guard)


def _names(thread: Thread, taken: Collection[str]) -> dict[str, str]:
    """A short name for each register of a thread, in the order of the instructions, none of ``taken``."""
    found: dict[str, str] = {}
    counts: dict[str, int] = {}
    for op in thread.body:
        for name, _ in (*definitions(op), *uses(op)):
            if name not in found:
                prefix = _prefix(thread.registers[name])
                while f"{prefix}{counts.get(prefix, 0)}" in taken:
                    counts[prefix] = counts.get(prefix, 0) + 1
                found[name] = f"{prefix}{counts.get(prefix, 0)}"
                counts[prefix] = counts.get(prefix, 0) + 1
    return found


def _prefix(type_: Type) -> str:
    if type_ == PREDICATE:
        return "p"
    if type_.kind == "f":
        return "f" if type_.bits == 32 else "fd"
    return _PREFIX.get(type_.bits, "r")


def _renamed(thread: Thread, names: dict[str, str]) -> Thread:
    body = tuple(_with_names(op, names) for op in thread.body)
    # The type that the instructions give a register, not the untyped bits that a compiler declares.
    first: dict[str, Type] = {}
    for op in thread.body:
        for name, type_ in (*definitions(op), *uses(op)):
            if type_.bits == thread.registers[name].bits:
                first.setdefault(name, type_)
    registers = {names[name]: first.get(name, type_) for name, type_ in thread.registers.items() if name in names}
    initial = {names[name]: value for name, value in thread.initial.items() if name in names}
    return replace(thread, body=body, registers=registers, initial=initial)


def _with_names(op: Op, names: dict[str, str]) -> Op:
    changes = {name: _item(getattr(op, name), names) for name in op.__struct_fields__}
    return replace(op, **changes)


def _item(item: object, names: dict[str, str]) -> object:
    match item:
        case Reg(name):
            return Reg(names[name])
        case Guard(register, negated):
            return Guard(names[register], negated)
        case Address(Sym(name, inside), offset):
            return Address(Sym(name, 0), inside + offset)  # as it is written: [out+12], not [out+8+4]
        case tuple():
            return tuple(_item(part, names) for part in item)
    base = getattr(item, "base", None)
    return replace(item, base=_item(base, names)) if isinstance(base, Reg) else item  # type: ignore[type-var]


def _term(term: Term, names: list[dict[str, str]]) -> Term:
    if isinstance(term, RegisterTerm) and term.register in names[term.thread]:
        return replace(term, register=names[term.thread][term.register])
    return term


def file_name(test: Test, taken: Iterable[str]) -> str:
    """A name for the file of ``test``, none of ``taken``."""
    stem = re.sub(r"[^A-Za-z0-9_.-]+", "-", f"{Path(test.file).stem}-{test.name}").strip("-")
    used, name, number = set(taken), f"{stem}.litmus", 2
    while name in used:
        name, number = f"{stem}-{number}.litmus", number + 1
    return name
