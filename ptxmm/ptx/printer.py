"""Resolved instructions back to text: canonical PTX, or the untyped dialect."""

from __future__ import annotations

from collections.abc import Callable, Container

from ptxmm.ptx import ops
from ptxmm.ptx.ops import Op, Type
from ptxmm.ptx.ops.memory import access_order
from ptxmm.ptx.spelling import Spelling, dotted, refuse
from ptxmm.ptx.table import DIALECT
from ptxmm.ptx.typed_text import typed_text

_S64 = Type("s", 64)
_LOADS = {"generic": "ld", "surface": "suld", "texture": "tld", "constant": "cold"}
_STORES = {"generic": "st", "surface": "sust"}


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
    spell = Spelling(label_of, name_of, variables)
    body = typed_text(op, spell) if typed else _untyped(op, spell)
    if op.guard is None:
        return body
    return f"@{'!' if op.guard.negated else ''}{spell.register(op.guard)} {body}"


def _untyped(op: Op, spell: Spelling) -> str:
    register, operand = spell.register, spell.value

    def place(address: ops.Address) -> str:
        # A bare constant would be the value of the dialect's move.
        return spell.place(address) if isinstance(address.base, ops.Imm) else spell.address(address)

    if op.guard is not None:
        raise refuse(op, "the untyped dialect has no guard predicates")
    typ = getattr(op, "type", None)
    if typ not in (None, _S64):
        raise refuse(op, f"the untyped dialect has 64-bit signed values only, not .{typ.name}")
    match op:
        case ops.Load(dst, address, nc=False) if len(dst) == 1:
            if op.mmio:
                raise refuse(op, "the untyped dialect has no .mmio")
            name = dotted(_LOADS[op.proxy], access_order(op, "weak"), _space(op))
            return f"{name} {spell.registers(dst)}, {place(address)}"
        case ops.Store(address, (value,)):
            if op.mmio:
                raise refuse(op, "the untyped dialect has no .mmio")
            if op.proxy not in _STORES:
                raise refuse(op, f"no store goes through the {op.proxy} proxy")
            name = dotted(_STORES[op.proxy], access_order(op, "weak"), _space(op))
            return f"{name} {place(address)}, {operand(value)}"
        case ops.Atomic(operands=(values,), packed=1):
            opcode = ("su" if op.proxy == "surface" else "") + ("atom" if op.returns else "red")
            name = dotted(opcode, op.sem, op.scope, _space(op), op.op)
            return f"{name} {', '.join([*spell.result(op), place(op.address), *map(operand, values)])}"
        case ops.Fence(sem, scope, restrict=None):
            return f"fence.{sem}.{scope}"
        case ops.ProxyFence(kind) if kind in DIALECT["fence.proxy"].groups["kind"]:
            return f"fence.proxy.{kind}"
        case ops.Barrier(kind, barrier, count, instance):
            if instance is None:
                raise refuse(op, "a barrier of PTX has no exact counterpart in the untyped dialect")
            parts = [str(instance)]
            if count is not None or barrier != ops.Imm(instance):
                parts.append(operand(barrier))
            if count is not None:
                parts.append(operand(count))
            return f"bar.cta.{kind} {', '.join(parts)}"
        case ops.Alu(name, _, dst, sources):
            opcode = name.removesuffix(".lo")
            if opcode not in DIALECT:
                raise refuse(op, f"the untyped dialect has no `{name}`")
            if opcode in ("shl", "shr") and not isinstance(sources[1], ops.Imm):
                raise refuse(op, "a shift amount of the untyped dialect is a constant")
            return f"{opcode} {', '.join([register(dst), *map(operand, sources)])}"
        case ops.Branch(target, condition):
            if condition is None:
                return f"goto {spell.label(target)}"
            return f"b{condition.cmp} {operand(condition.a)}, {operand(condition.b)}, {spell.label(target)}"
        case ops.Exit():
            return "exit"
        case ops.SetPredicate() | ops.Select() | ops.Convert():
            raise refuse(op, "the untyped dialect has no predicates and no conversions")
        case _:
            raise refuse(op, "the untyped dialect has no such instruction")


def _space(op: ops.Load | ops.Store | ops.Atomic) -> str | None:
    opcode = "ld" if isinstance(op, ops.Load) else "st"
    if op.space is not None and op.space not in DIALECT[opcode].groups["space"]:
        raise refuse(op, f"the untyped dialect has no .{op.space}")
    return op.space if op.proxy == "generic" else None
