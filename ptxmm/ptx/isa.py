"""What the instructions of PTX (and of the untyped dialect) mean: from a parsed instruction to a resolved one.

The table of legal instructions is ``table.py``; ``qualifiers.py`` and ``rules.py`` check the qualifiers, ``makers/``
makes the operations and fills in every default (memory order, scope, type).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from ptxmm.errors import PtxmmError
from ptxmm.ptx import ops, syntax
from ptxmm.ptx.makers import MAKERS
from ptxmm.ptx.makers.common import B64, PREDICATE, S64, U32
from ptxmm.ptx.operands import Names
from ptxmm.ptx.ops import Op, Type
from ptxmm.ptx.qualifiers import DEFAULT_ISA, is_typed, qualify
from ptxmm.ptx.rules import check
from ptxmm.ptx.signatures import result_type, source_types
from ptxmm.ptx.versions import check_version, requires

__all__ = ["ADDRESS", "PREDICATE", "S64", "definitions", "is_typed", "predicate_names", "requires", "resolve", "uses"]

ADDRESS = Type("b", 64)
_B16, _B32, _U16, _S32 = Type("b", 16), Type("b", 32), Type("u", 16), Type("s", 32)


def resolve(
    instruction: syntax.Instruction,
    *,
    dialect: bool,
    variables: Container[str],
    labels: Mapping[str, int],
    isa: tuple[int, int] = DEFAULT_ISA,
    predicates: Container[str] = (),
    cuts: list[PtxmmError] | None = None,
) -> Op:
    """The operation of ``instruction`` with every default filled in (PTX ISA 9.7, semantics section 3).

    ``variables`` are the names of memory locations (all other names are registers); ``labels`` maps labels to
    indices of instructions; ``isa`` is the PTX ISA version, and what is later is refused. ``predicates`` are registers
    that are predicates: only ``cp.async`` needs them, to tell its ignore-src from its src-size (``predicate_names``).
    ``cuts``: takes what is to be told of integers that their types can't hold: ptxas takes their last bits and says
    nothing; None: they are errors.
    Raises ``PtxmmError`` of kind ``isa``, ``name``, ``type``, or ``unsupported`` for real PTX that is not supported.
    """
    q = qualify(instruction, dialect, isa)
    check(q)
    check_version(q, isa, predicates)
    return MAKERS[q.form.kind](q, Names(variables, labels, predicates, cuts))


def predicate_names(instructions: Iterable[syntax.Instruction]) -> frozenset[str]:
    """The registers that the text of a thread shows to be predicates: guards, negated operands, and what
    instructions write as predicates. For ``resolve``."""
    found: set[str] = set()
    for instruction in instructions:
        if instruction.guard is not None:
            found.add(instruction.guard.name.name)
        for operand in instruction.operands:
            if isinstance(operand, syntax.Negated):
                found.add(operand.name.name)
            elif isinstance(operand, syntax.Pair):
                found.add(operand.second.name)
                if instruction.opcode == "setp":
                    found.add(operand.first.name)
        first = instruction.operands[0] if instruction.operands else None
        writes = instruction.opcode in ("setp", "isspacep", "testp") or any(
            name in ("pred", "test_wait", "try_wait") for name, _ in instruction.qualifiers
        )
        if writes and isinstance(first, syntax.Name):
            found.add(first.name)
    return frozenset(found)


def definitions(op: Op) -> list[tuple[str, Type]]:
    """The registers that ``op`` writes, each with the type of the value: the instruction type (``ld`` may write a
    wider register, PTX ISA 9.4.1), twice as wide for ``mul.wide`` and ``mad.wide``."""
    return [(register.name, typ) for register, typ in _written(op) if register is not None]


def _written(op: Op) -> list[tuple[ops.Reg | None, Type]]:
    match op:
        case ops.Load(dsts, _, typ):
            return [(dst, typ) for dst in dsts]
        case ops.Atomic(dst=dsts) | ops.Multimem(dst=dsts):
            return [(dst, _packed(op)) for dst in dsts]
        case ops.Alu(name, typ, dst):
            return [(dst, result_type(name, typ))]
        case ops.AluPair(name, _, typ, dst, predicate):
            return [(dst, result_type(name, typ)), (predicate, PREDICATE)]
        case ops.SetPredicate(dst=dst, complement=complement):
            return [(dst, PREDICATE), (complement, PREDICATE)]
        case ops.Convert(dst, _, typ) | ops.Select(typ, dst) | ops.Pack(dst, typ):
            return [(dst, typ)]
        case ops.Mapa(dst, typ) | ops.ConvertAddress(dst, typ):
            return [(dst, typ)]
        case ops.Unpack(dsts, typ):
            return [(dst, Type("b", typ.bits // len(dsts))) for dst in dsts]
        case ops.MbarrierArrive(dst):
            return [(dst, B64)]
        case ops.MbarrierWait(_, dst) | ops.IsSpace(dst):
            return [(dst, PREDICATE)]
        case ops.PendingCount(dst) | ops.CtaRank(dst):
            return [(dst, U32)]
        case ops.BarrierReduction(name, dst):
            return [(dst, U32 if name == "popc" else PREDICATE)]
        case ops.LoadMatrix(dsts) | ops.TensorLoad(dsts):
            return [(dst, _B32) for dst in dsts]
        case ops.Wgmma(dsts, type=typ) | ops.WmmaLoad(dsts, type=typ):
            return [(dst, typ) for dst in dsts]
        case ops.Wmma(dsts, types=types):
            return [(dst, types[0]) for dst in dsts]
        case ops.WarpExchange(name, typ, dst, predicate):
            return [(dst, _B32 if name in ("match.any", "match.all", "elect") else typ), (predicate, PREDICATE)]
        case ops.Nothing(dst, written) if written is not None:
            return [(dst, written)]
        case _:
            return []


def uses(op: Op) -> list[tuple[str, Type]]:
    """The registers that ``op`` reads, each with the type it is read as; guards and addresses included."""
    reads: list[tuple[ops.Operand | None, Type]] = []
    if op.guard is not None:
        reads.append((ops.Reg(op.guard.register), PREDICATE))
    reads += ((place.base, ADDRESS) for place in _addresses(op) if place is not None)
    reads += _read(op)
    return [(operand.name, typ) for operand, typ in reads if isinstance(operand, ops.Reg)]


def _addresses(op: Op) -> tuple[ops.Address | None, ...]:
    """The addresses of ``op`` in the order of the text."""
    match op:
        case ops.AsyncStore(address, mbarrier=mbarrier):
            return (address, mbarrier)
        case ops.CopyAsync(dst, src) | ops.TensormapCopyFence(dst, src):
            return (dst, src)
        case ops.BulkCopy():
            return (op.dst, op.src, op.mbarrier, op.tensormap)
        case (
            ops.Load() | ops.Store() | ops.Atomic() | ops.TensormapFence() | ops.MbarrierInit() | ops.MbarrierArrive()
            | ops.MbarrierTx() | ops.MbarrierWait() | ops.CopyAsyncArrive() | ops.TensormapReplace() | ops.Discard()
            | ops.TensorLoad() | ops.TensorStore() | ops.TensorCommit() | ops.LoadMatrix() | ops.StoreMatrix()
            | ops.Multimem() | ops.WmmaLoad() | ops.WmmaStore()
        ):  # fmt: skip
            return (op.address,)
        case _:
            return ()


def _read(op: Op) -> list[tuple[ops.Operand | None, Type]]:
    """The source operands of ``op`` besides its guard and addresses."""
    match op:
        case ops.Store(_, values, typ) | ops.AsyncStore(_, values, typ):
            return [(v, typ) for v in values]
        case ops.Atomic(_, _, _, elements):
            return [(v, _packed(op)) for values in elements for v in values]
        case ops.Multimem(values=values):
            return [(v, _packed(op)) for v in values]
        case ops.Barrier(_, barrier, count, instance):
            typ = U32 if instance is None else S64
            return [(barrier, typ), (count, typ)]
        case ops.BarrierReduction(_, _, barrier, count, predicate):
            return [(barrier, U32), (count, U32), (predicate, PREDICATE)]
        case ops.WarpBarrier(mask):
            return [(mask, U32)]
        case ops.MbarrierInit(_, count):
            return [(count, U32)]
        case ops.MbarrierArrive(_, _, count, expect):
            return [(count, U32), (expect, U32)]
        case ops.MbarrierTx(_, _, amount):
            return [(amount, U32)]
        case ops.MbarrierWait(_, _, _, state, parity):
            return [(state, B64), (parity, U32)]
        case ops.PendingCount(_, state):
            return [(state, B64)]
        case ops.CopyAsync(source_size=size, ignore=ignore):
            return [(size, U32), (ignore, PREDICATE)]
        case ops.BulkCopy():
            return [
                (op.size, U32), (op.mask, _U16), *((c, _S32) for c in op.coordinates), *((o, _U16) for o in op.offsets)
            ]  # fmt: skip
        case ops.TensorCopy(src=src):
            return [(src, ADDRESS)]
        case ops.TensorProduct():
            matrices = [op.b] if isinstance(op.a, ops.Address) else [op.a, op.b]
            return [*((matrix, ADDRESS) for matrix in matrices), (op.descriptor, U32), (op.enable, PREDICATE)]
        case ops.StoreMatrix(_, values) | ops.TensorStore(_, values):
            return [(v, _B32) for v in values]
        case ops.Wgmma():
            return _product_reads(op)
        case ops.WmmaLoad(stride=stride):
            return [(stride, U32)]
        case ops.WmmaStore(values=values, type=typ, stride=stride):
            return [*((v, typ) for v in values), (stride, U32)]
        case ops.Wmma(types=types):
            parts = zip(types[1:], (op.a, op.b, op.c), strict=True)
            return [(item, typ) for typ, items in parts for item in items]
        case ops.TensormapReplace(value=value, type=typ):
            return [(value, typ)]
        case ops.Mapa(_, typ, value, rank):
            return [(value, typ), (rank, U32)]
        case ops.CtaRank(_, typ, value):
            return [(value, typ)]
        case ops.ConvertAddress(_, typ, value):
            return [(value, typ)]
        case ops.IsSpace(_, _, value):
            return [(value, ADDRESS)]
        case ops.WarpExchange(name, typ, operands=operands):
            first = PREDICATE if name.startswith("vote.") else U32 if name == "elect" else typ
            return [(v, first if i == 0 else U32) for i, v in enumerate(operands)]
        case ops.Pack(_, typ, sources):
            return [(v, Type("b", typ.bits // len(sources))) for v in sources]
        case ops.Unpack(_, typ, value) | ops.Convert(_, value, _, typ):
            return [(value, typ)]
        case ops.Alu(name, typ, _, sources):
            return list(zip(sources, source_types(name, typ), strict=True))
        case ops.AluPair(_, second, typ, _, _, sources):
            return list(zip(sources, source_types(second, typ), strict=True))
        case ops.SetPredicate(_, typ, _, _, a, b, c=c):
            return [(a, typ), (b, typ), (c, PREDICATE)]
        case ops.Select(typ, _, a, b, p):
            return [(a, typ), (b, typ), (p, PREDICATE)]
        case ops.Branch(_, ops.Compare(_, typ, a, b)):
            return [(a, typ), (b, typ)]
        case _:
            return []


def _product_reads(op: ops.Wgmma) -> list[tuple[ops.Operand | None, Type]]:
    """The accumulator is a source too, unless the constant ``scale`` says that it is not."""
    added = op.scale != ops.Imm(0)
    a = [(r, _B32) for r in op.a] if isinstance(op.a, tuple) else [(op.a, ADDRESS)]
    accumulator = [(r, op.type) for r in op.dst] if added else []
    return [*accumulator, *a, (op.b, ADDRESS), (op.metadata, _B32), (op.scale, PREDICATE)]


def _packed(op: ops.Atomic | ops.Multimem) -> Type:
    """The type of a register of an atomic or a multimem operation: of packed types that of all its halves."""
    return op.type if op.packed == 1 else Type("b", op.type.bits * op.packed)
