"""Resolved instructions as canonical PTX: every default written out, nothing that has no effect on the memory model."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ptxmm.ptx import ops
from ptxmm.ptx.computation_text import computation_text
from ptxmm.ptx.ops import Op, Type
from ptxmm.ptx.spelling import Spelling, dotted, refuse
from ptxmm.ptx.table import ATOMIC_TYPES, FORMS
from ptxmm.ptx.tables.form import COMPLETE_TX
from ptxmm.ptx.tensorcore_text import tensorcore_text
from ptxmm.ptx.wmma_text import wmma_text

_S64 = Type("s", 64)


def typed_text(op: Op, spell: Spelling) -> str:
    """``op`` as PTX without its guard; resolving the text gives ``op`` again up to its source.

    Raises ``PtxmmError`` (kind ``unsupported``) for what only the untyped dialect has.
    """
    match op:
        case ops.Load() | ops.Store() | ops.Atomic() | ops.AsyncStore():
            return _memory(op, spell)
        case ops.Multimem():
            return _multimem(op, spell)
        case (
            ops.Alu() | ops.AluPair() | ops.Convert() | ops.SetPredicate() | ops.Select() | ops.Pack() | ops.Unpack()
            | ops.Branch() | ops.Exit()
        ):  # fmt: skip
            return _arithmetic(op, spell)
        case ops.LoadMatrix() | ops.StoreMatrix() | ops.WgmmaFence() | ops.Wgmma():
            return _matrix(op, spell)
        case ops.WmmaLoad() | ops.WmmaStore() | ops.Wmma():
            return wmma_text(op, spell)
        case (
            ops.TensorFence() | ops.TensorWait() | ops.TensorLoad() | ops.TensorStore() | ops.TensorCopy()
            | ops.TensorProduct() | ops.TensorCommit()
        ):  # fmt: skip
            return tensorcore_text(op, spell)
        case ops.CopyAsync() | ops.CopyAsyncArrive() | ops.AsyncCommit() | ops.AsyncWait() | ops.BulkCopy():
            return _copy(op, spell)
        case (
            ops.MbarrierInit() | ops.MbarrierArrive() | ops.MbarrierTx() | ops.MbarrierWait() | ops.PendingCount()
        ):  # fmt: skip
            return _mbarrier(op, spell)
        case (
            ops.Fence() | ops.ProxyFence() | ops.TensormapFence() | ops.GenericToAsyncFence() | ops.MbarrierInitFence()
            | ops.Barrier() | ops.BarrierReduction() | ops.WarpBarrier() | ops.ClusterBarrier() | ops.GridControl()
            | ops.SetMaxRegisters()
        ):  # fmt: skip
            return _synchronization(op, spell)
        case _:
            return _other(op, spell)


def access_order(op: ops.Load | ops.Store, weak: str | None = None) -> tuple[str | None, ...]:
    """The qualifiers for the memory order of a load or store; ``weak`` is how a weak access is marked."""
    if op.volatile:
        return ("volatile",)
    if op.mmio:
        return ("mmio", "relaxed", "sys")
    return (weak,) if op.sem == "weak" else (op.sem, op.scope)


def _joined(name: str, *parts: str | None) -> str:
    """An instruction with those of its operands that are there."""
    given = [part for part in parts if part is not None]
    return f"{name} {', '.join(given)}" if given else name


def _vec(count: int) -> str | None:
    return None if count == 1 else f"v{count}"


def _memory(op: ops.Load | ops.Store | ops.Atomic | ops.AsyncStore, spell: Spelling) -> str:
    place = spell.place(op.address)
    match op:
        case ops.AsyncStore():
            vec, typ = _vec(len(op.values)), op.type.name
            order = ("st.async", "weak") if op.reduction is None else ("red.async", "relaxed", "cluster")
            name = dotted(*order, op.space, COMPLETE_TX, op.reduction, vec, typ)
            return _joined(name, place, spell.operands(op.values, op.type), spell.place(op.mbarrier))
        case ops.Atomic():
            opcode, typ = _typed_atomic(op)
            half = "noftz" if op.type.bits == 16 and op.type.kind in ("f", "bf") else None
            name = dotted(opcode, op.sem, op.scope, op.space, op.op, half, _vec(len(op.operands)), typ)
            values = [spell.operands(items, op.type) for items in zip(*op.operands, strict=True)]
            return _joined(name, *spell.result(op), place, *values)
    if op.proxy != "generic":
        raise refuse(op, f"a {op.proxy} access has no counterpart in typed PTX here")
    if isinstance(op, ops.Store):
        name = dotted("st", *access_order(op), op.space, _vec(len(op.values)), op.type.name)
        return _joined(name, place, spell.operands(op.values, op.type))
    if op.nc and op.space is None:
        name = dotted("ldu", _vec(len(op.dst)), op.type.name)
    else:
        nc = "nc" if op.nc else None
        name = dotted("ld", *access_order(op), op.space, nc, _vec(len(op.dst)), op.type.name)
    return _joined(name, spell.registers(op.dst), place)


def _multimem(op: ops.Multimem, spell: Spelling) -> str:
    single = "acc::f32" if op.single else None
    typ = op.type.name + ("x2" if op.packed == 2 else "")
    count = len(op.dst) or len(op.values)
    name = dotted("multimem", op.kind, op.sem, op.scope, op.space, op.op, single, _vec(count), typ)
    if op.dst:
        return _joined(name, spell.registers(op.dst), spell.place(op.address))
    return _joined(name, spell.place(op.address), spell.operands(op.values, op.type))


def _typed_atomic(op: ops.Atomic) -> tuple[str, str]:
    """The opcode and type of a typed atomic, after checking that PTX has it."""
    opcode = "atom" if op.returns else "red"
    form = FORMS[opcode]
    if op.proxy != "generic":
        raise refuse(op, f"a {op.proxy} access has no counterpart in typed PTX here")
    if op.op not in form.groups["op"]:
        raise refuse(op, f"PTX has no `{opcode}.{op.op}`")
    if op.sem not in form.groups["sem"]:
        raise refuse(op, f"PTX has no `{opcode}.{op.sem}`")
    if op.packed == 2:
        return opcode, f"{op.type.name}x2"
    return opcode, _legal_type(op, f"{opcode}.{op.op}", op.type, ATOMIC_TYPES[op.op]).name


def _legal_type(op: Op, name: str, typ: Type, legal: Collection[str]) -> Type:
    """``typ``, or for the dialect's s64 the 64-bit type with which the operation exists and gives the same bits."""
    candidates = [typ, Type("b", 64), Type("u", 64)] if typ == _S64 else [typ]
    found = next((t for t in candidates if t.name in legal), None)
    if found is None:
        raise refuse(op, f"`{name}` has no type .{typ.name}")
    return found


def _arithmetic(
    op: ops.Alu | ops.AluPair | ops.Convert | ops.SetPredicate | ops.Select | ops.Pack | ops.Unpack | ops.Branch
    | ops.Exit,
    spell: Spelling,
) -> str:  # fmt: skip
    register, operand = spell.register, spell.operand
    match op:
        case ops.Alu() | ops.AluPair():
            return computation_text(op, spell)
        case ops.Pack(dst, typ, sources):
            return _joined(f"mov.{typ.name}", register(dst), spell.operands(sources))
        case ops.Unpack(targets, typ, value):
            return _joined(f"mov.{typ.name}", spell.registers(targets), operand(value, typ))
        case ops.Convert(dst, value, to, frm, saturate):
            modes = (op.rounding, "ftz" if op.flush else None, "sat" if saturate else None)
            return f"{dotted('cvt', *modes, to.name, frm.name)} {register(dst)}, {operand(value, frm)}"
        case ops.SetPredicate(cmp, typ, dst, complement, a, b):
            pair = register(dst) if complement is None else f"{register(dst)}|{register(complement)}"
            last = None if op.c is None else ("!" if op.c_negated else "") + register(op.c)
            cmp, _, ftz = cmp.partition(".")
            name = dotted("setp", cmp, op.boolop, ftz or None, typ.name)
            return _joined(name, pair, operand(a, typ), operand(b, typ), last)
        case ops.Select(typ, dst, a, b, predicate):
            return _joined(f"selp.{typ.name}", register(dst), operand(a, typ), operand(b, typ), register(predicate))
        case ops.Branch(target, condition):
            if condition is not None:
                raise refuse(op, "PTX has no compare-and-branch instruction")
            return f"bra {spell.label(target)}"
        case ops.Exit():
            return "exit"


def _synchronization(
    op: ops.Fence | ops.ProxyFence | ops.TensormapFence | ops.GenericToAsyncFence | ops.MbarrierInitFence | ops.Barrier
    | ops.BarrierReduction
    | ops.WarpBarrier | ops.ClusterBarrier | ops.GridControl | ops.SetMaxRegisters,
    spell: Spelling,
) -> str:  # fmt: skip
    operand = spell.operand
    aligned = ".aligned" if getattr(op, "aligned", False) else ""
    match op:
        case ops.Fence(sem, scope):
            return dotted("fence", sem, None if op.restrict is None else f"sync_restrict::{op.restrict}", scope)
        case ops.ProxyFence(kind):
            if kind not in FORMS["fence.proxy"].groups["kind"]:
                raise refuse(op, f"`fence.proxy.{kind}` is not PTX")
            return dotted("fence.proxy", kind, op.space)
        case ops.TensormapFence(sem, scope, address):
            name = dotted("fence.proxy.tensormap::generic", sem, scope)
            return name if address is None else _joined(name, spell.place(address), "128")
        case ops.GenericToAsyncFence(order):
            return dotted("fence.proxy.async::generic", order, f"sync_restrict::{op.restrict}", "cluster")
        case ops.MbarrierInitFence():
            return "fence.mbarrier_init.release.cluster"
        case ops.Barrier(barrier_kind, barrier, count, instance):
            if instance is not None:
                raise refuse(op, "a barrier of the untyped dialect has no exact counterpart in PTX")
            if barrier_kind == "arrive" and count is None:
                raise refuse(op, "`bar.arrive` needs the number of threads")
            threads = None if count is None else operand(count)
            return _joined(f"barrier.cta.{barrier_kind}{aligned}", operand(barrier), threads)
        case ops.BarrierReduction(name, dst, barrier, count, predicate, negated):
            vote = ("!" if negated else "") + spell.register(predicate)
            typ = "u32" if name == "popc" else "pred"
            threads = None if count is None else operand(count)
            name = f"barrier.cta.red.{name}{aligned}.{typ}"
            return _joined(name, spell.register(dst), operand(barrier), threads, vote)
        case ops.WarpBarrier(mask):
            return f"bar.warp.sync {operand(mask)}"
        case ops.ClusterBarrier(cluster_kind, order):
            return f"barrier.cluster.{cluster_kind}.{order}{aligned}"
        case ops.GridControl(action):
            return f"griddepcontrol.{action}"
        case ops.SetMaxRegisters(change, registers):
            return f"setmaxnreg.{change}.sync.aligned.u32 {registers}"


def _mbarrier(
    op: ops.MbarrierInit | ops.MbarrierArrive | ops.MbarrierTx | ops.MbarrierWait | ops.PendingCount, spell: Spelling
) -> str:
    operand = spell.operand
    match op:
        case ops.MbarrierInit(address, None):
            return _joined(dotted("mbarrier.inval", op.space, "b64"), spell.place(address))
        case ops.MbarrierInit(address, count):
            assert count is not None
            return _joined(dotted("mbarrier.init", op.space, "b64"), spell.place(address), operand(count))
        case ops.MbarrierArrive(dst, address, count, expect):
            arrival = "expect_tx" if expect is not None else "noComplete" if op.no_complete else None
            opcode = "mbarrier.arrive_drop" if op.drop else "mbarrier.arrive"
            name = dotted(opcode, arrival, op.sem, op.scope, op.space, "b64")
            last = expect if expect is not None else count
            return _joined(name, spell.sink(dst), spell.place(address), None if last is None else operand(last))
        case ops.MbarrierTx(kind, address, amount, scope, space):
            name = dotted("mbarrier", kind, "relaxed", scope, space, "b64")
            return _joined(name, spell.place(address), operand(amount))
        case ops.MbarrierWait(wait, dst, address, state, parity, sem, scope):
            name = dotted("mbarrier", wait, None if parity is None else "parity", sem, scope, op.space, "b64")
            phase = parity if parity is not None else state
            assert phase is not None
            return _joined(name, spell.register(dst), spell.place(address), operand(phase))
        case ops.PendingCount(dst, state):
            return f"mbarrier.pending_count.b64 {spell.register(dst)}, {operand(state)}"


def _copy(
    op: ops.CopyAsync | ops.CopyAsyncArrive | ops.AsyncCommit | ops.AsyncWait | ops.BulkCopy, spell: Spelling
) -> str:
    match op:
        case ops.CopyAsync(dst, src, size, source_size, ignore, negated):
            name = f"cp.async.{'cg' if size == 16 else 'ca'}.shared.global"
            fill = None if source_size is None else spell.operand(source_size)
            if ignore is not None:
                fill = ("!" if negated else "") + spell.register(ignore)
            return _joined(name, spell.place(dst), spell.place(src), str(size), fill)
        case ops.CopyAsyncArrive(address, noinc):
            name = dotted("cp.async.mbarrier.arrive", "noinc" if noinc else None, op.space, "b64")
            return _joined(name, spell.place(address))
        case ops.AsyncCommit(kind):
            return f"{_GROUPS[kind]}.commit_group{'.sync.aligned' if kind == 'wgmma' else ''}"
        case ops.AsyncWait(kind, None):
            return f"{_GROUPS[kind]}.wait_all"
        case ops.AsyncWait(kind, pending, read):
            tail = ".sync.aligned" if kind == "wgmma" else ".read" if read else ""
            return f"{_GROUPS[kind]}.wait_group{tail} {pending}"
        case ops.BulkCopy():
            return _bulk_copy(op, spell)


_GROUPS = {"cp.async": "cp.async", "bulk": "cp.async.bulk", "wgmma": "wgmma"}


def _bulk_copy(op: ops.BulkCopy, spell: Spelling) -> str:
    def side(address: ops.Address | None) -> str:
        if address is not None:
            return spell.place(address)
        assert op.tensormap is not None
        vector = ", ".join(spell.operand(c) for c in op.coordinates)
        return f"[{spell.address(op.tensormap)}, {{{vector}}}]"

    opcode = "cp.async.bulk" if op.reduction is None else "cp.reduce.async.bulk"
    completion = "bulk_group" if op.mbarrier is None else COMPLETE_TX
    multicast = None if op.mask is None else "multicast::cluster"
    if op.tensormap is not None:
        words = (f"{len(op.coordinates)}d", op.dst_space, op.src_space, op.reduction, op.load_mode)
        name = dotted(opcode, "tensor", *words, completion, multicast)
    else:
        typ = None if op.type is None else op.type.name
        half = "noftz" if op.reduction == "add" and typ in ("f16", "bf16") else None
        name = dotted(opcode, op.dst_space, op.src_space, completion, multicast, op.reduction, half, typ)
    return _joined(
        name,
        side(op.dst),
        side(op.src),
        None if op.size is None else spell.operand(op.size),
        None if op.mbarrier is None else spell.place(op.mbarrier),
        None if not op.offsets else "{" + ", ".join(spell.operand(v) for v in op.offsets) + "}",
        None if op.mask is None else spell.operand(op.mask),
    )


def _matrix(op: ops.LoadMatrix | ops.StoreMatrix | ops.WgmmaFence | ops.Wgmma, spell: Spelling) -> str:
    match op:
        case ops.LoadMatrix(dst, address, space, transposed):
            items = [spell.sink(r) for r in dst]
            name = dotted("ldmatrix.sync.aligned.m8n8", f"x{len(dst)}", "trans" if transposed else None, space, "b16")
            return _joined(name, _braced(items), spell.place(address))
        case ops.StoreMatrix(address, values, space, transposed):
            items = [spell.operand(v) for v in values]
            name = dotted(
                "stmatrix.sync.aligned.m8n8", f"x{len(values)}", "trans" if transposed else None, space, "b16"
            )
            return _joined(name, spell.place(address), _braced(items))
        case ops.WgmmaFence():
            return "wgmma.fence.sync.aligned"
        case ops.Wgmma():
            return _product(op, spell)


def _product(op: ops.Wgmma, spell: Spelling) -> str:
    m, n, k = op.shape
    sparse = op.metadata is not None
    binary = op.multiplicands == ("b1", "b1")
    dtype = "f16" if op.type.kind == "b" else op.type.name
    name = dotted(
        "wgmma.mma_async.sp" if sparse else "wgmma.mma_async",
        f"sync.aligned.m{m}n{n}k{k}",
        "satfinite" if op.saturate else None,
        dtype,
        *op.multiplicands,
        "and.popc" if binary else None,
    )
    return _joined(
        name,
        _braced([spell.register(r) for r in op.dst]),
        _braced([spell.register(r) for r in op.a]) if isinstance(op.a, tuple) else spell.operand(op.a),
        spell.operand(op.b),
        None if op.metadata is None else spell.register(op.metadata),
        str(op.selector) if sparse else None,
        ("!" if op.scale_negated else "") + spell.operand(op.scale),
        *map(str, op.immediates),
    )


def _braced(items: Sequence[str]) -> str:
    return "{" + ", ".join(items) + "}"


def _other(op: Op, spell: Spelling) -> str:
    register, operand = spell.register, spell.operand
    match op:
        case ops.TensormapReplace(field, address, ordinal, value, typ, space):
            name = dotted("tensormap.replace.tile", field, space, "b1024", typ.name)
            dimension = None if ordinal is None else str(ordinal)
            return _joined(name, spell.place(address), dimension, operand(value, typ))
        case ops.TensormapCopyFence(to, frm, scope):
            name = f"tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.{scope}.sync.aligned"
            return _joined(name, spell.place(to), spell.place(frm), "128")
        case ops.Discard(address, size):
            return _joined(dotted("discard", op.space, "L2"), spell.place(address), str(size))
        case ops.Mapa(target, typ, value, rank, space):
            return _joined(dotted("mapa", space, typ.name), register(target), operand(value), operand(rank))
        case ops.CtaRank(target, typ, value):
            return _joined(dotted("getctarank", op.space, typ.name), register(target), operand(value))
        case ops.ConvertAddress(target, typ, value, space):
            return _joined(dotted("cvta.to" if op.to else "cvta", space, typ.name), register(target), operand(value))
        case ops.IsSpace(target, space, value):
            return f"isspacep.{space} {register(target)}, {operand(value)}"
        case ops.WarpExchange():
            return _exchange(op, spell)
        case ops.Nothing(None):
            return "nanosleep.u32 0"
        case ops.Nothing(dst):
            assert dst is not None
            return f"createpolicy.fractional.L2::evict_normal.b64 {register(dst)}"
    raise refuse(op, "this instruction can't be written as PTX")


def _exchange(op: ops.WarpExchange, spell: Spelling) -> str:
    opcode, _, mode = op.op.partition(".")
    match opcode:
        case "activemask":
            name = "activemask.b32"
        case "elect":
            name = "elect.sync"
        case "match":
            name = dotted("match", mode, "sync", op.type.name)
        case _:
            name = dotted(opcode, "sync", mode, op.type.name)
    target = spell.sink(op.dst) + ("" if op.predicate is None else f"|{spell.register(op.predicate)}")
    values = [spell.operand(v) for v in op.operands]
    if op.negated:
        values[0] = "!" + values[0]
    return _joined(name, target, *values)
