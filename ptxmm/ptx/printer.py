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
    if op.guard is not None:
        raise refuse(op, "the untyped dialect has no guard predicates")
    typ = getattr(op, "type", None)
    if typ not in (None, _S64):
        raise refuse(op, f"the untyped dialect has 64-bit signed values only, not .{typ.name}")
    match op:
        case ops.Load(dst=(_,), nc=False) | ops.Store(values=(_,)) | ops.Atomic(operands=(_,), packed=1):
            return _access(op, spell)
        case ops.Fence(sem, scope, restrict=None):
            return f"fence.{sem}.{scope}"
        case ops.ProxyFence(kind) if kind in DIALECT["fence.proxy"].groups["kind"]:
            return f"fence.proxy.{kind}"
        case ops.Barrier(instance=None):
            raise refuse(op, "a barrier of PTX has no exact counterpart in the untyped dialect")
        case ops.Barrier(kind, barrier, count, instance):
            named = count is not None or barrier != ops.Imm(instance or 0)
            parts = [barrier] if named else []
            parts += [] if count is None else [count]
            return f"bar.cta.{kind} {', '.join([str(instance), *map(spell.value, parts)])}"
        case ops.Alu(name, _, dst, sources):
            opcode = name.removesuffix(".lo")
            if opcode not in DIALECT:
                raise refuse(op, f"the untyped dialect has no `{name}`")
            if opcode in ("shl", "shr") and not isinstance(sources[1], ops.Imm):
                raise refuse(op, "a shift amount of the untyped dialect is a constant")
            return f"{opcode} {', '.join([spell.register(dst), *map(spell.value, sources)])}"
        case ops.Branch(target, None):
            return f"goto {spell.label(target)}"
        case ops.Branch(target, ops.Compare(cmp, _, a, b)):
            return f"b{cmp} {spell.value(a)}, {spell.value(b)}, {spell.label(target)}"
        case ops.Exit():
            return "exit"
        case ops.SetPredicate() | ops.Select() | ops.Convert():
            raise refuse(op, "the untyped dialect has no predicates and no conversions")
        case _:
            raise refuse(op, "the untyped dialect has no such instruction")


def _access(op: ops.Load | ops.Store | ops.Atomic, spell: Spelling) -> str:
    if not isinstance(op, ops.Atomic) and op.mmio:
        raise refuse(op, "the untyped dialect has no .mmio")
    # A bare constant would be the value of the dialect's move.
    place = spell.place(op.address) if isinstance(op.address.base, ops.Imm) else spell.address(op.address)
    match op:
        case ops.Load():
            return (
                f"{dotted(_LOADS[op.proxy], access_order(op, 'weak'), _space(op))} {spell.registers(op.dst)}, {place}"
            )
        case ops.Store():
            if op.proxy not in _STORES:
                raise refuse(op, f"no store goes through the {op.proxy} proxy")
            opcode = dotted(_STORES[op.proxy], access_order(op, "weak"), _space(op))
            return f"{opcode} {place}, {spell.value(op.values[0])}"
        case ops.Atomic():
            opcode = ("su" if op.proxy == "surface" else "") + ("atom" if op.returns else "red")
            items = ", ".join([*spell.result(op), place, *map(spell.value, op.operands[0])])
            return f"{dotted(opcode, op.sem, op.scope, _space(op), op.op)} {items}"


def _space(op: ops.Load | ops.Store | ops.Atomic) -> str | None:
    opcode = "ld" if isinstance(op, ops.Load) else "st"
    if op.space is not None and op.space not in DIALECT[opcode].groups["space"]:
        raise refuse(op, f"the untyped dialect has no .{op.space}")
    return op.space if op.proxy == "generic" else None
