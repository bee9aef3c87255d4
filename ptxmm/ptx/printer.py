"""Resolved instructions back to text: canonical PTX, or the untyped dialect."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container
from dataclasses import dataclass

from ptxmm.errors import PtxmmError
from ptxmm.ptx import ops
from ptxmm.ptx.ops import Op, Type
from ptxmm.ptx.table import ATOMIC_TYPES, DIALECT, FORMS

_S64 = Type("s", 64)
_LOADS = {"generic": "ld", "surface": "suld", "texture": "tld", "constant": "cold"}
_STORES = {"generic": "st", "surface": "sust"}


@dataclass(frozen=True, slots=True)
class _Spelling:
    """How to write labels, variables and registers."""

    label: Callable[[int], str]
    name: Callable[[str], str]
    variables: Container[str]

    def register(self, register: ops.Reg | ops.Guard) -> str:
        """A register; with ``%`` where the bare name would be a variable."""
        name = register.name if isinstance(register, ops.Reg) else register.register
        return f"%{name}" if name in self.variables else name

    def operand(self, item: ops.Operand) -> str:
        match item:
            case ops.Reg():
                return self.register(item)
            case ops.Imm(value):
                return str(value)
            case ops.Sym(name, offset):
                return self.name(name) + (f"{offset:+d}" if offset else "")

    def value(self, item: ops.Operand) -> str:
        """A source operand of the dialect, where addresses are written ``&x``."""
        return ("&" if isinstance(item, ops.Sym) else "") + self.operand(item)

    def address(self, address: ops.Address) -> str:
        return self.operand(address.base) + (f"{address.offset:+d}" if address.offset else "")

    def result(self, op: ops.Atomic) -> list[str]:
        """The destination of an atomic, if it has that operand."""
        return [] if not op.returns else ["_" if op.dst is None else self.register(op.dst)]


def _same(name: str) -> str:
    return name


def instruction_text(
    op: Op,
    typed: bool,
    label_of: Callable[[int], str],
    name_of: Callable[[str], str] = _same,
    variables: Container[str] = (),
) -> str:
    """``op`` as PTX (``typed``) or in the untyped dialect; resolving the text gives ``op`` again up to its source.
    (Only where PTX lacks an operation for ``.s64`` does the dialect's s64 become the equivalent ``.b64`` or ``.u64``.)

    ``label_of`` names the instruction with an index; ``name_of`` gives the spelling of a variable from its key;
    registers whose name is also one of ``variables`` (spellings) are written with ``%``.
    Raises ``PtxmmError`` (kind ``unsupported``, at the instruction) for what the other language cannot say.
    """
    spell = _Spelling(label_of, name_of, variables)
    body = _typed(op, spell) if typed else _untyped(op, spell)
    if op.guard is None:
        return body
    return f"@{'!' if op.guard.negated else ''}{spell.register(op.guard)} {body}"


def _typed(op: Op, spell: _Spelling) -> str:
    register, operand = spell.register, spell.operand

    def place(address: ops.Address) -> str:
        return f"[{spell.address(address)}]"

    match op:
        case ops.Load() | ops.Store():
            if op.proxy != "generic":
                raise _refuse(op, f"a {op.proxy} access has no counterpart in typed PTX here")
            name = _dotted("ld" if isinstance(op, ops.Load) else "st", *_order(op), op.space, op.type.name)
            if isinstance(op, ops.Load):
                return f"{name} {register(op.dst)}, {place(op.address)}"
            return f"{name} {place(op.address)}, {operand(op.value)}"
        case ops.Atomic():
            opcode, typ = _typed_atomic(op)
            name = _dotted(opcode, op.sem, op.scope, op.space, op.op, typ.name)
            return f"{name} {', '.join([*spell.result(op), place(op.address), *map(operand, op.operands)])}"
        case ops.Fence(sem, scope):
            return f"fence.{sem}.{scope}"
        case ops.ProxyFence(kind):
            if kind not in FORMS["fence.proxy"].groups["kind"]:
                raise _refuse(op, f"`fence.proxy.{kind}` is not PTX")
            return f"fence.proxy.{kind}"
        case ops.Barrier(kind, barrier, count, instance):
            if instance is not None:
                raise _refuse(op, "a barrier of the untyped dialect has no exact counterpart in PTX")
            if kind == "arrive" and count is None:
                raise _refuse(op, "`bar.arrive` needs the number of threads")
            return f"barrier.cta.{kind} " + ", ".join(operand(v) for v in (barrier, count) if v is not None)
        case ops.Alu(name, typ, dst, sources):
            legal = _legal_type(op, name, typ, FORMS[name.partition(".")[0]].groups["type"])
            return f"{name}.{legal.name} {', '.join([register(dst), *map(operand, sources)])}"
        case ops.Convert(dst, value, to, frm, saturate):
            return f"cvt{'.sat' if saturate else ''}.{to.name}.{frm.name} {register(dst)}, {operand(value)}"
        case ops.SetPredicate(cmp, typ, dst, complement, a, b):
            pair = register(dst) if complement is None else f"{register(dst)}|{register(complement)}"
            parts = [pair, operand(a), operand(b)]
            if op.c is not None:
                parts.append(("!" if op.c_negated else "") + register(op.c))
            return f"{_dotted('setp', cmp, op.boolop, typ.name)} {', '.join(parts)}"
        case ops.Select(typ, dst, a, b, predicate):
            return f"selp.{typ.name} {register(dst)}, {operand(a)}, {operand(b)}, {register(predicate)}"
        case ops.Branch(target, condition):
            if condition is not None:
                raise _refuse(op, "PTX has no compare-and-branch instruction")
            return f"bra {spell.label(target)}"
        case ops.Exit():
            return "exit"


def _untyped(op: Op, spell: _Spelling) -> str:
    register, operand, place = spell.register, spell.value, spell.address
    if op.guard is not None:
        raise _refuse(op, "the untyped dialect has no guard predicates")
    typ = getattr(op, "type", _S64)
    if typ != _S64:
        raise _refuse(op, f"the untyped dialect has 64-bit signed values only, not .{typ.name}")
    match op:
        case ops.Load(dst, address):
            if op.mmio:
                raise _refuse(op, "the untyped dialect has no .mmio")
            return f"{_dotted(_LOADS[op.proxy], *_order(op, 'weak'), _space(op))} {register(dst)}, {place(address)}"
        case ops.Store(address, value):
            if op.mmio:
                raise _refuse(op, "the untyped dialect has no .mmio")
            if op.proxy not in _STORES:
                raise _refuse(op, f"no store goes through the {op.proxy} proxy")
            return f"{_dotted(_STORES[op.proxy], *_order(op, 'weak'), _space(op))} {place(address)}, {operand(value)}"
        case ops.Atomic():
            opcode = ("su" if op.proxy == "surface" else "") + ("atom" if op.returns else "red")
            name = _dotted(opcode, op.sem, op.scope, _space(op), op.op)
            return f"{name} {', '.join([*spell.result(op), place(op.address), *map(operand, op.operands)])}"
        case ops.Fence(sem, scope):
            return f"fence.{sem}.{scope}"
        case ops.ProxyFence(kind):
            return f"fence.proxy.{kind}"
        case ops.Barrier(kind, barrier, count, instance):
            if instance is None:
                raise _refuse(op, "a barrier of PTX has no exact counterpart in the untyped dialect")
            parts = [str(instance)]
            if count is not None or barrier != ops.Imm(instance):
                parts.append(operand(barrier))
            if count is not None:
                parts.append(operand(count))
            return f"bar.cta.{kind} {', '.join(parts)}"
        case ops.Alu(name, _, dst, sources):
            opcode = name.removesuffix(".lo")
            if opcode not in DIALECT:
                raise _refuse(op, f"the untyped dialect has no `{name}`")
            if opcode in ("shl", "shr") and not isinstance(sources[1], ops.Imm):
                raise _refuse(op, "a shift amount of the untyped dialect is a constant")
            return f"{opcode} {', '.join([register(dst), *map(operand, sources)])}"
        case ops.Branch(target, condition):
            if condition is None:
                return f"goto {spell.label(target)}"
            return f"b{condition.cmp} {operand(condition.a)}, {operand(condition.b)}, {spell.label(target)}"
        case ops.Exit():
            return "exit"
        case _:
            raise _refuse(op, "the untyped dialect has no predicates and no conversions")


def _legal_type(op: Op, name: str, typ: Type, legal: Collection[str]) -> Type:
    """``typ``, or for the dialect's s64 the 64-bit type with which the operation exists and gives the same bits."""
    candidates = [typ, Type("b", 64), Type("u", 64)] if typ == _S64 else [typ]
    found = next((t for t in candidates if t.name in legal), None)
    if found is None:
        raise _refuse(op, f"`{name}` has no type .{typ.name}")
    return found


def _typed_atomic(op: ops.Atomic) -> tuple[str, Type]:
    """The opcode and type of a typed atomic, after checking that PTX has it."""
    opcode = "atom" if op.returns else "red"
    form = FORMS[opcode]
    if op.proxy != "generic":
        raise _refuse(op, f"a {op.proxy} access has no counterpart in typed PTX here")
    if op.op not in form.groups["op"]:
        raise _refuse(op, f"PTX has no `{opcode}.{op.op}`")
    if op.sem not in form.groups["sem"]:
        raise _refuse(op, f"PTX has no `{opcode}.{op.sem}`")
    return opcode, _legal_type(op, f"{opcode}.{op.op}", op.type, ATOMIC_TYPES[op.op])


def _order(op: ops.Load | ops.Store, weak: str | None = None) -> tuple[str | None, ...]:
    if op.volatile:
        return ("volatile",)
    if op.mmio:
        return ("mmio", "relaxed", "sys")
    return (weak,) if op.sem == "weak" else (op.sem, op.scope)


def _space(op: ops.Load | ops.Store | ops.Atomic) -> str | None:
    opcode = "ld" if isinstance(op, ops.Load) else "st"
    if op.space is not None and op.space not in DIALECT[opcode].groups["space"]:
        raise _refuse(op, f"the untyped dialect has no .{op.space}")
    return op.space if op.proxy == "generic" else None


def _dotted(*parts: str | None) -> str:
    return ".".join(part for part in parts if part is not None)


def _refuse(op: Op, message: str) -> PtxmmError:
    span = op.source.span
    width = max(1, span.end_column - span.column)
    return PtxmmError(message, kind="unsupported", line=span.line, column=span.column, width=width)
