"""Tests as nvlitmus ``.test`` files, as far as that format can say them.

The format has loads, stores, ``add`` atomics and fences without branches; its registers are written once in the whole
file, so they are renamed where needed; its conditions have no parentheses, so they are written as a disjunction of
conjunctions of ``==`` and ``!=`` over registers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NoReturn

from ptxmm.errors import PtxmmError
from ptxmm.program.condition import (
    Comparison,
    Conjunction,
    Disjunction,
    IntegerTerm,
    Negation,
    Proposition,
    RegisterTerm,
    Term,
)
from ptxmm.program.test import MemoryObject, Placement, Test
from ptxmm.ptx.ops import Address, Atomic, Fence, Imm, Load, Op, Operand, ProxyFence, Reg, Store, Sym, Type

MAX_CLAUSES = 64
LOADS = {"generic": "ld", "texture": "tld", "surface": "suld", "constant": "ldc"}
STORES = {"generic": "st", "surface": "sust"}
PROXY_FENCES = ("alias", "generic", "surface", "texture", "constant")
REFERENCES = {"texture": "texref", "surface": "surfref", "constant": "conref"}

Literal = tuple[str, Term, Term]
Final = dict[tuple[int, str], str]
"""The name in the file of the last definition of each register."""


def write(test: Test) -> str:
    """``test`` as a ``.test`` file with one query.

    Raises ``PtxmmError`` (kind ``unsupported``) that names the line of what the format can't say: types other than
    the dialect's, branches, predicates, barriers, arithmetic, atomics other than ``add``, the scope ``.cluster``,
    initial values, conditions on memory or with an order, filters other than ``register == constant``.
    """
    if not test.dialect:
        _refuse("typed instructions", "convert it to the dialect first")
    if test.condition is None:
        _refuse("a test without a condition", "a .test file asks permit or assert")
    lines = [*(f"// {line}" for line in test.description.splitlines()), *_declarations(test), ""]
    wanted = _expected(test)
    final: Final = {}
    names = _names(test)
    for index, (thread, place) in enumerate(zip(test.threads, _places(test), strict=True)):
        if thread.initial:
            _refuse(f"an initial value of the register {thread.name}:{min(thread.initial)}")
        lines.append("d{}.b{}.t{} {{".format(*place))
        current: dict[str, str] = {}
        lines += [f"  {line};" for line in _body(test, index, wanted, current, names)]
        lines += ["}", ""]
        final |= {(index, register): name for register, name in current.items()}
    for (thread_index, register), _ in wanted.items():
        _refuse(f"the filter on {test.threads[thread_index].name}:{register}, which no load writes")
    positive = test.condition.kind != "~exists"
    clauses = _clauses(test.condition.proposition, positive)
    if not clauses or [] in clauses:
        _refuse("a condition that is constant")
    query = "permit" if test.condition.kind == "exists" else "assert"
    text = " || ".join(" && ".join(_literal(item, final) for item in clause) for clause in clauses)
    name = re.sub(r"\W", "_", test.name, flags=re.ASCII) or "query"
    lines.append(f"{query} ({text}) as {name if name[0].isalpha() or name[0] == '_' else 'q' + name};")
    return "\n".join(lines) + "\n"


def _body(
    test: Test, index: int, wanted: dict[tuple[int, str], int], current: dict[str, str], names: Iterator[str]
) -> Iterator[str]:
    """The instructions of a thread; the last that writes a register takes from ``wanted`` what is asked of it."""
    body = test.threads[index].body
    last = {name: pc for pc, op in enumerate(body) if (name := _returned(op)) is not None}
    for pc, op in enumerate(body):
        register, text = _returned(op), _instruction(test, op, current, names)
        if register is not None and last[register] == pc and (index, register) in wanted:
            text += f" == {wanted.pop((index, register))}"
        yield text


def _refuse(what: str, hint: str | None = None, op: Op | None = None) -> NoReturn:
    """Raise the error that the format has no ``what``."""
    shown = f": `{op.source.text}`" if op else ""
    error = PtxmmError(f"the nvlitmus format has no place for {what}{shown}", kind="unsupported", hint=hint)
    raise error.at(op.source.span) if op else error


# Objects and places.


def _declarations(test: Test) -> Iterator[str]:
    """The declarations, aliases after what they alias."""
    for item in test.objects.values():
        if item.replicas:
            _refuse(f"the multimem address `{item.name}`")
        if item.type != Type("s", 64) or item.count != 1:
            _refuse(f"the type or size of `{item.name}`", "every location holds one 64-bit integer")
        if item.initial and item.initial[0] != 0:
            _refuse(f"the initial value of `{item.name}`", "every location holds 0 at first")
        if item.space not in ("global", "shared") or not re.fullmatch(r"[A-Za-z_]\w*", item.key, re.ASCII):
            _refuse(f"the state space or name of `{item.key}`")
        yield _declaration(item)


def _declaration(item: MemoryObject) -> str:
    """One declaration."""
    if item.alias_of is None:
        return f".{item.space} {item.key};"
    if item.proxy == "generic":
        return f".{item.space} {item.key} physically aliases {item.alias_of};"
    return f".{REFERENCES[item.proxy]} {item.key} virtually aliases {item.alias_of};"


def _places(test: Test) -> list[tuple[int, int, int]]:
    """The device, block and thread numbers of the threads; a CTA without a number gets a free one."""
    taken = {t.placement.cta for t in test.threads}
    threads: dict[tuple[int, int], int] = {}
    places: list[tuple[int, int, int]] = []
    for thread in test.threads:
        place = thread.placement
        if place != Placement(gpu=place.gpu, cta=place.cta):
            _refuse(f"the placement of {thread.name}", "it has only GPUs, CTAs and threads, each thread its own warp")
        cta = place.cta
        if cta is None:
            cta = next(n for n in range(len(taken) + 1) if n not in taken)
            taken.add(cta)
        number = threads.get((place.gpu, cta), 0)
        threads[place.gpu, cta] = number + 1
        places.append((place.gpu, cta, number))
    return places


# Instructions.


def _names(test: Test) -> Iterator[str]:
    """Register names that the test does not use."""
    used = {r for t in test.threads for r in t.registers}
    return (name for name in (f"r{n}" for n in range(1 << 30)) if name not in used)


def _returned(op: Op) -> str | None:
    """The register that a load or an atomic of one element writes."""
    return op.dst[0].name if isinstance(op, Load | Atomic) and op.dst and op.dst[0] is not None else None


def _instruction(test: Test, op: Op, current: dict[str, str], names: Iterator[str]) -> str:
    """The text of ``op``; ``current`` gives the name of each register's last definition and is brought up to date."""
    if op.guard is not None:
        _refuse("predicates", op=op)
    match op:
        case Load(dst=(_,), proxy=proxy) if not op.mmio:
            text = f"{LOADS[proxy]}.{_order(op)}"
            return f"{text} {_define(test, op.dst[0], current, names)}, {_address(op, op.address)}"
        case Store(proxy=proxy, values=(value,)) if proxy in STORES and not op.mmio:
            return f"{STORES[proxy]}.{_order(op)} {_address(op, op.address)}, {_value(op, value, current)}"
        case Atomic(op="add", proxy=proxy, operands=((operand,),)) if proxy in STORES:
            added = _value(op, operand, current)
            tail = f"{'su' if proxy == 'surface' else ''}{'atom' if op.returns else 'red'}.add.{_order(op)}"
            to = f"{_define(test, op.dst[0], current, names)}, " if op.returns else ""
            return f"{tail} {to}{_address(op, op.address)}, {added}"
        case Fence(sem="sc" | "acq_rel") if op.scope != "cluster":
            return f"fence.{op.sem}.{op.scope}"
        case ProxyFence(kind=kind) if kind in PROXY_FENCES:
            return f"fence.proxy.{kind}"
    _refuse("this instruction", "it has loads, stores, add atomics and fences", op)


def _order(op: Load | Store | Atomic) -> str:
    """The qualifiers for the order and scope."""
    if isinstance(op, Load | Store) and op.volatile:
        return "volatile"
    if op.scope is None:
        return "weak"
    if op.scope == "cluster":
        _refuse("the scope .cluster", op=op)
    return f"{op.sem}.{op.scope}"


def _address(op: Op, address: Address) -> str:
    """The location of an access."""
    if not isinstance(address.base, Sym) or address.offset or address.base.offset:
        _refuse("addresses other than the name of a location", op=op)
    return f"[{address.base.name}]"


def _value(op: Op, operand: Operand, current: dict[str, str]) -> str:
    """The value of a store or an atomic."""
    match operand:
        case Imm(value) if value >= 0:
            return str(value)
        case Reg(name) if name in current:
            return current[name]
    _refuse("this value", "a value is a constant from 0 on or a register that was loaded before", op)


def _define(test: Test, dst: Reg | None, current: dict[str, str], names: Iterator[str]) -> str:
    """A name for a new definition of ``dst``: its own if no other thread uses it and this is the first one."""
    if dst is None:
        return next(names)
    users = sum(dst.name in t.registers for t in test.threads)
    keep = users == 1 and dst.name not in current and re.fullmatch(r"r[0-9]+", dst.name)
    current[dst.name] = dst.name if keep else next(names)
    return current[dst.name]


# Conditions.


def _expected(test: Test) -> dict[tuple[int, str], int]:
    """What the filter asks of the final values of registers."""
    wanted: dict[tuple[int, str], int] = {}
    stack = [test.filter] if test.filter is not None else []
    while stack:
        match stack.pop():
            case Conjunction(items):
                stack.extend(items)
            case Comparison("==", RegisterTerm(thread, register, _), IntegerTerm(value)) if (
                value >= 0 and wanted.setdefault((thread, register), value) == value
            ):
                pass
            case _:
                _refuse("this filter", "it has only `ld r0, [x] == 1`: a conjunction of register == constant")
    return wanted


def _clauses(item: Proposition, positive: bool) -> list[list[Literal]]:
    """``item``, or its negation, as a disjunction of conjunctions."""
    match item:
        case Negation(inner):
            return _clauses(inner, not positive)
        case Comparison(op, left, right):
            if op not in ("==", "!="):
                _refuse(f"the comparison {op}", "it has == and !=")
            return [[(op if positive else {"==": "!=", "!=": "=="}[op], left, right)]]
        case Conjunction(items) | Disjunction(items):
            parts = [_clauses(i, positive) for i in items]
            if isinstance(item, Conjunction) != positive:
                flat = [clause for part in parts for clause in part]
                return _bounded(flat)
            product: list[list[Literal]] = [[]]
            for part in parts:
                product = _bounded([a + b for a in product for b in part])
            return product


def _bounded(clauses: list[list[Literal]]) -> list[list[Literal]]:
    """``clauses`` if they are few enough."""
    if len(clauses) > MAX_CLAUSES:
        _refuse("this condition", "it has no parentheses, and without them this one is very long")
    return clauses


def _literal(item: Literal, final: Final) -> str:
    """One comparison."""
    op, *terms = item
    words: list[str] = []
    for term in terms:
        match term:
            case IntegerTerm(value) if value >= 0:
                words.append(str(value))
            case RegisterTerm(thread, register, _) if (thread, register) in final:
                words.append(final[thread, register])
            case _:
                _refuse("this condition", "it compares registers that the threads write, and constants from 0 on")
    return f"{words[0]} {op} {words[1]}"
