"""The ``.test`` format of nvlitmus (NVlabs/mixedproxy): one Test for each query and each row of the template table.

The values of this format have no types; its tests are read as tests of the untyped dialect (64-bit signed). Thread
``dD.bB.tT`` is a warp of its own in CTA B of GPU D. ``ld ... == v`` restricts the executions considered to those in
which the load returns v: it becomes part of the test's filter. ``permit (p)`` and ``check (p)`` state that p can be
reached (``exists``), ``assert (p)`` that it always holds (``forall``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lark
from msgspec import Struct
from msgspec.structs import replace

from ptxmm.errors import PtxmmError
from ptxmm.formats.nvlitmus_frame import MAX_DEPTH, extent, parse_frame
from ptxmm.formats.nvlitmus_writer import write
from ptxmm.formats.template import Instance, instances
from ptxmm.formats.text import open_text
from ptxmm.program.condition import (
    Comparison,
    Condition,
    Conjunction,
    Disjunction,
    IntegerTerm,
    Negation,
    Proposition,
    RegisterTerm,
    Term,
)
from ptxmm.program.layout import address_of
from ptxmm.program.test import MemoryObject, OwnerPath, Placement, Test, Thread
from ptxmm.ptx import isa, parser
from ptxmm.ptx.ops import Atomic, Load, Op, Reg, Source, Store, Sym, Type
from ptxmm.ptx.syntax import Instruction

__all__ = ["parse", "write"]

_MODEL = "ptx-7.5"
S64 = Type("s", 64)
SPACES = ("global", "shared")
PROXIES = {"texref": "texture", "surfref": "surface", "conref": "constant"}


class _Expectation(Struct, frozen=True):
    """``== value`` behind a load: the register it writes, and where it stands."""

    register: str
    value: int
    start: int
    end: int
    text: str


class _Block(Struct, frozen=True):
    """A thread with what its loads are expected to return."""

    thread: Thread
    expectations: tuple[_Expectation, ...]


def parse(text: str, file: str = "<text>") -> list[Test]:
    """The tests of a ``.test`` file: for each row of its table (or once) one for each query, in order.

    A test is named ``stem.query``, with a table ``stem.query.row`` (rows from 1). Its ``info`` has
    ``("Expect", "ptx-7.5:holds")``. Raises ``PtxmmError`` at the place of what is wrong.
    """
    source = open_text(text, file)
    try:
        return [test for instance in instances(source) for test in _instance_tests(instance)]
    except PtxmmError as error:
        raise source.fill(error) from None


def _instance_tests(instance: Instance) -> list[Test]:
    """The tests of one instance."""
    file = instance.origin.file
    tree = parse_frame(instance)
    objects = _objects(instance, list(tree.find_data("declaration")))
    blocks = _blocks(instance, list(tree.find_data("thread")), objects)
    objects = _owners(objects, blocks)
    threads = tuple(b.thread for b in blocks)
    queries: list[list[Any]] = [list(q.children) for q in tree.find_data("query")]
    if not threads:
        raise instance.error("a test needs a thread", 0, 1, hint="write d0.b0.t0 { ... }")
    if not queries:
        end = len(instance.text.rstrip())
        raise instance.error("a test needs a query", max(0, end - 1), end, hint="write assert (r0 == 1) as name;")
    filter_ = _filter(blocks)
    seen: set[str] = set()
    tests: list[Test] = []
    for query in reversed(queries):
        kind, disjunction, name = query
        if str(name) in seen:
            raise instance.error(f"two queries have the name `{name}`", *extent(name), kind="name")
        seen.add(str(name))
        start, end = kind.end_pos, name.start_pos
        written = instance.text[start:end].strip().removesuffix("as").strip()
        proposition = _proposition(instance, disjunction, threads)
        condition = Condition("forall" if kind == "assert" else "exists", proposition, written[1:-1].strip())
        test = Test(
            name=".".join([Path(file).stem, str(name)] + ([str(instance.row)] if instance.row else [])),
            threads=threads,
            objects=objects,
            condition=condition,
            filter=filter_,
            description=" | ".join(instance.cells),
            info=(("Query", str(kind)), ("Expect", f"{_MODEL}:holds")),
            dialect=True,
            default_model=_MODEL,
            file=file,
            text=instance.origin.characters,
        )
        tests.append(test)
    return tests[::-1]


# Declarations.


def _objects(instance: Instance, trees: list[lark.Tree[lark.Token]]) -> dict[str, MemoryObject]:
    """The memory objects, laid out in order of declaration; aliases of one address share it."""
    objects: dict[str, MemoryObject] = {}
    count = 0
    for tree in trees:
        tokens: list[Any] = tree.children
        space, name = tokens[0], tokens[1]
        key = str(name)
        if key in objects:
            raise instance.error(f"`{key}` is declared twice", *extent(name), kind="name")
        if space not in (*SPACES, *PROXIES):
            hint = "declare .global, .shared, .texref, .surfref or .conref"
            raise instance.error(f"unknown state space `.{space}`", *extent(space), hint=hint)
        address = address_of(count)
        count += space in SPACES
        own = MemoryObject(key, key, str(space), S64, 1, False, (0,), address, key, key)
        if len(tokens) == 2:
            if space in PROXIES:
                hint = f"write .{space} {key} virtually aliases x;"
                raise instance.error(f".{space} {key} names no location", *extent(name), hint=hint)
            objects[key] = own
            continue
        how, target = tokens[2], tokens[3]
        if str(target) not in objects:
            hint = "declare it before its aliases"
            raise instance.error(f"`{target}` is not declared", *extent(target), kind="name", hint=hint)
        of = objects[str(target)]
        wanted = "virtually" if space in PROXIES else "physically"
        if how != wanted:
            hint = f"write .{space} {key} {wanted} aliases {target};"
            raise instance.error(f"a .{space} alias is not `{how}`", *extent(how), hint=hint)
        if space in PROXIES:
            proxy = PROXIES[str(space)]
            objects[key] = replace(of, key=key, name=key, proxy=proxy, alias_of=str(target))
        else:
            objects[key] = replace(own, space=of.space, physical=of.physical, alias_of=str(target))
    return objects


def _owners(objects: dict[str, MemoryObject], blocks: list[_Block]) -> dict[str, MemoryObject]:
    """``objects`` with the CTA of each .shared one: the only CTA whose threads use it."""
    if all(o.space == "global" for o in objects.values()):
        return objects
    placed = dict(objects)
    users: dict[str, OwnerPath] = {}
    for thread in (b.thread for b in blocks):
        place = (thread.placement.gpu, 0, None, thread.placement.cta)
        for name, op in _accesses(thread):
            physical = objects[name].physical
            if objects[name].space == "shared" and users.setdefault(physical, place) != place:
                message = f".shared `{name}` is used by threads of two CTAs"
                raise PtxmmError(message, kind="unsupported", hint="declare it .global").at(op.source.span)
    for key, item in objects.items():
        if item.space == "shared":
            placed[key] = replace(item, owner=users.get(item.physical, (0, 0, None, 0)))
    return placed


def _accesses(thread: Thread) -> Iterator[tuple[str, Op]]:
    """The names of the locations that the instructions of ``thread`` use."""
    for op in thread.body:
        if isinstance(op, Load | Store | Atomic) and isinstance(op.address.base, Sym):
            yield op.address.base.name, op


# Threads.


def _blocks(instance: Instance, trees: list[lark.Tree[lark.Token]], objects: dict[str, MemoryObject]) -> list[_Block]:
    """The threads, named P0, P1, ... in the order of the file."""
    blocks: list[_Block] = []
    seen: set[tuple[int, ...]] = set()
    for tree in trees:
        head: Any = tree.children[0]
        place = tuple(int(n) if len(n) < 10 else -1 for n in re.findall("[0-9]+", head))
        if -1 in place:
            raise instance.error("the number of a thread has more than 9 digits", *extent(head))
        if place in seen:
            raise instance.error(f"two threads are {'d{}.b{}.t{}'.format(*place)}", *extent(head), kind="name")
        seen.add(place)
        body: list[Op] = []
        written: dict[str, Type] = {}
        expectations: dict[str, _Expectation] = {}
        for token in tree.children[1:]:
            op, expectation = _instruction(instance, token, objects, written)  # type: ignore[arg-type]
            for register, type_ in isa.definitions(op):
                if register in expectations:
                    old = expectations[register]
                    message = f"`{register}` is written again, so `{old.text}` can't be checked at the end"
                    raise instance.error(message, old.start, old.end, kind="unsupported", hint="use another register")
                written[register] = type_
            if expectation:
                expectations[expectation.register] = expectation
            body.append(op)
        placement = Placement(gpu=place[0], cta=place[1])
        thread = Thread(f"P{len(blocks)}", placement, tuple(body), dict(sorted(written.items())))
        blocks.append(_Block(thread, tuple(expectations.values())))
    return blocks


def _instruction(
    instance: Instance, token: lark.Token, objects: dict[str, MemoryObject], written: dict[str, Type]
) -> tuple[Op, _Expectation | None]:
    """One instruction and what its load is expected to return."""
    start, end = extent(token)
    code, equals, expected = token.partition("==")
    op = _resolve(instance, code.rstrip(), start, objects)
    _check_location(instance, op, objects, written, start, code.rstrip())
    for register, _ in isa.uses(op):
        if register not in written:
            at = start + max(0, code.rfind(register))
            hint = "registers belong to one thread; a load or an atomic writes them"
            message = f"this thread has not written `{register}` before"
            raise instance.error(message, at, at + len(register), kind="name", hint=hint)
    if not equals:
        return op, None
    at = start + len(code)
    if not isinstance(op, Load | Atomic) or not op.dst or op.dst[0] is None:
        raise instance.error("only what a load or an atomic returns can be expected", at, end)
    word = expected.strip()
    value = _integer(word)
    if value is None:
        hint = "write ld r0, [x] == 1;"
        raise instance.error("an expected value is an integer of at most 64 bits", at, end, hint=hint)
    return op, _Expectation(op.dst[0].name, value, at, end, f"== {word}")


def _integer(word: str) -> int | None:
    """The value of an integer of at most 64 bits, or None."""
    if not re.fullmatch(r"-?[0-9]{1,20}|-?0[xX][0-9a-fA-F]{1,16}", word):
        return None
    value = int(word, 16 if "x" in word.lower() else 10)
    return value if -(1 << 63) <= value < 1 << 64 else None


def _resolve(instance: Instance, code: str, start: int, objects: dict[str, MemoryObject]) -> Op:
    """The instruction ``code`` as one of the dialect; ``start`` is its offset in the instance."""
    flat = re.sub(r"\s", " ", code)
    mnemonic = re.sub(r"^ldc\b", "cold", flat)
    mnemonic = re.sub(r"^fence\s*\.\s*alias$", "fence.proxy.alias", mnemonic)
    shift = len(mnemonic) - len(flat)
    try:
        statements = parser.parse_statements(mnemonic, dialect=True)
        if len(statements) != 1 or not isinstance(statements[0], Instruction):
            raise instance.error("expected one instruction", start, start + len(code))
        op = isa.resolve(statements[0], dialect=True, variables=objects, labels={})
    except PtxmmError as error:
        if error.line != 1 or error.source is not None:
            raise
        at = start + max(0, min(len(code), (error.column or 1) - 1 - shift))
        raise instance.error(error.message, at, at + error.width, kind=error.kind, hint=error.hint) from None
    if not isinstance(op, Load | Store | Atomic) and not mnemonic.startswith("fence"):
        hint = "the format has ld tld suld ldc, st sust, atom suatom, red sured and fence"
        raise instance.error(f"no instruction of this format: `{flat.split()[0]}`", start, start + len(code), hint=hint)
    return replace(op, source=Source(instance.span(start, start + len(code)), " ".join(flat.split())))


def _check_location(
    instance: Instance, op: Op, objects: dict[str, MemoryObject], written: dict[str, Type], start: int, code: str
) -> None:
    """Accesses go to a declared name of their own proxy."""
    if not isinstance(op, Load | Store | Atomic):
        return
    base = op.address.base
    if isinstance(base, Reg) and base.name not in written:
        at = start + max(0, code.rfind(base.name))
        hint = f"declare it: .global {base.name};"
        raise instance.error(f"`{base.name}` is not declared", at, at + len(base.name), kind="name", hint=hint)
    if not isinstance(base, Sym) or base.offset or op.address.offset:
        raise instance.error("an access names its location", start, start + len(code), hint="write [x]")
    item = objects[base.name]
    if item.proxy != op.proxy:
        hint = "declare a name with ." + next((k for k, p in PROXIES.items() if p == op.proxy), "global")
        message = f"`{base.name}` is accessed through the {item.proxy} proxy, not the {op.proxy} one"
        raise instance.error(message, start, start + len(code), kind="type", hint=hint)


# Queries.


def _filter(blocks: list[_Block]) -> Proposition | None:
    """What the loads are expected to return, or None."""
    items: tuple[Proposition, ...] = tuple(
        Comparison("==", RegisterTerm(i, e.register, S64), IntegerTerm(e.value))
        for i, b in enumerate(blocks)
        for e in b.expectations
    )
    return items[0] if len(items) == 1 else Conjunction(items) if items else None


def _proposition(instance: Instance, tree: Any, threads: tuple[Thread, ...], depth: int = 0) -> Proposition:
    """The proposition of a query."""
    if depth > MAX_DEPTH:
        at = next(tree.scan_values(lambda v: isinstance(v, lark.Token)))
        raise instance.error(f"the condition is nested more than {MAX_DEPTH} deep", *extent(at))
    if tree.data == "comparison":
        left, operator, right = tree.children
        terms = [_term(instance, side.children[0], threads) for side in (left, right)]
        return Comparison(str(operator), terms[0], terms[1])
    if tree.data == "negation":
        return Negation(_proposition(instance, tree.children[-1], threads, depth + 1))
    items: list[Proposition] = []
    for child in tree.children:
        items.append(_proposition(instance, child, threads, depth + 1))
    return Conjunction(tuple(items)) if tree.data == "conjunction" else Disjunction(tuple(items))


def _term(instance: Instance, token: lark.Token, threads: tuple[Thread, ...]) -> Term:
    """An integer, or a register of the one thread that writes it."""
    if token.type == "INTEGER":
        value = _integer(token)
        if value is None:
            raise instance.error(f"`{token[:40]}` is not an integer of at most 64 bits", *extent(token))
        return IntegerTerm(value)
    found = [i for i, t in enumerate(threads) if str(token) in t.registers]
    if len(found) == 1:
        return RegisterTerm(found[0], str(token), S64)
    if found:
        hint = "name the registers of the threads differently"
        raise instance.error(f"several threads write `{token}`", *extent(token), kind="condition", hint=hint)
    known = sorted({r for t in threads for r in t.registers})
    hint = "registers: " + ", ".join(known[:12]) if known else "a load writes a register"
    raise instance.error(f"no thread writes `{token}`", *extent(token), kind="condition", hint=hint)
