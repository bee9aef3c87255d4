"""Rows of fences, barriers, mbarriers, grid control, setmaxnreg (PTX ISA 9.7.14.1 to .4, .13, .15, .16, 9.7.19.5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, cast

from ptxmm.ptx import operands, ops, syntax
from ptxmm.ptx.ops import Op
from ptxmm.ptx.ops.basic import B64, S64, U32, U64
from ptxmm.ptx.qualified import Form, Names, Qualified, at, shown
from ptxmm.ptx.tables.common import MAP_SIZE, Limit, guard, made, scope_of, source, source_predicate
from ptxmm.ptx.tables.form import CLUSTER, SCOPES, SHARED, SHARED_CTA, SM80, SM90, V1, V6, V86, Version, words

PROXIES = words("alias async surface texture constant")
ASYNC_SPACES = words("global shared::cta shared::cluster")
_LEVEL = {"level": ("cta",)}
_ALIGNED = {"aligned": ("aligned",)}
_REDUCTIONS = {"popc": ("u32",), "and": ("pred",), "or": ("pred",)}
_RED = {"op": tuple(_REDUCTIONS), "type": ("u32", "pred")}
_B64 = {"type": ("b64",)}
_ARRIVE = {
    "arrival": words("expect_tx noComplete"),
    "sem": words("release relaxed"),
    "scope": words("cta cluster"),
    "space": SHARED,
    **_B64,
}
_INIT = {"space": SHARED_CTA, **_B64}
_TX = {"sem": ("relaxed",), "scope": words("cta cluster"), "space": SHARED, **_B64}
_WAIT = {
    "parity": ("parity",),
    "sem": words("acquire relaxed"),
    "scope": words("cta cluster"),
    "space": SHARED_CTA,
    **_B64,
}
_RESTRICT = words("sync_restrict::shared::cta sync_restrict::shared::cluster")
_RED_SLOTS = words("d bar threads? predicate")
_LEVEL_NEWER = {Version((7, 8), 20): "cta"}
_MBARRIER_NEWER = {Version((8, 0), 80): "release acquire cta", SM90: "cluster expect_tx shared::cluster",
                   V86: "relaxed"}  # fmt: skip


_MOST = (1 << 20) - 1  # the largest count of an mbarrier (9.7.14.15.2)
_COUNT = Limit("an arrival count of an mbarrier", range(1, _MOST + 1), f"from 1 to {_MOST}")
_AMOUNT = Limit("a tx-count of an mbarrier", range(_MOST + 1), f"from 0 to {_MOST}")
_THREADS = Limit(
    "the number of threads at a barrier", range(32, 1 << 32, 32), "a multiple of 32",
    "every warp that arrives counts as 32 threads",
)  # fmt: skip
_PARITY = Limit("the parity of a phase", range(2), "0 or 1")
_VALUES: Mapping[str, range] = {  # what the field of a tensor map can be (table 32)
    "elemtype": range(13),
    "interleave_layout": range(3),
    "swizzle_mode": range(4),
    "fill_mode": range(2),
}
_DIMENSION_FIELDS = frozenset({"box_dim", "global_dim", "global_stride", "element_stride"})


def _fence(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 0, 0)
    restrict = q.get("restrict")
    space = None if restrict is None else restrict.removeprefix("sync_restrict::")
    return ops.Fence(q.get("sem") or "acq_rel", scope_of(q, "gpu"), source(q), guard(q, names), space)


def _membar(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 0, 0)
    level = q.chosen["level"]
    scope = cast("ops.Scope", "gpu" if level == "gl" else level)
    return ops.Fence("sc", scope, source(q), guard(q, names))


def _tensormap_fence(q: Qualified, names: Names) -> Op:
    sem = cast("Literal['release', 'acquire']", q.chosen["sem"])
    address: ops.Address | None = None
    if sem == "acquire":
        operands.check_count(q, 2, 2)
        place, size = q.instruction.operands
        address = operands.address(q, names, place)
        MAP_SIZE.constant(size)
    elif q.instruction.operands:
        raise at(q.instruction.operands[0].span, f"`{q.form.opcode}.release` takes no operands")
    return ops.TensormapFence(sem, scope_of(q, "gpu"), address, source(q), guard(q, names))


# -- barriers ------------------------------------------------------------------------------------------------------


def _barrier(q: Qualified, names: Names) -> Op:
    kind = cast("Literal['sync', 'arrive']", q.chosen["kind"])
    operands.check_count(q, 2 if kind == "arrive" else 1, 2)
    items = q.instruction.operands
    barrier = _barrier_id(q, names, items[0])
    count = _THREADS.value(q, names, items[1], U32) if len(items) > 1 else None
    return ops.Barrier(kind, barrier, count, None, source(q), guard(q, names), _aligned(q))


def _aligned(q: Qualified) -> bool:
    """``bar`` is ``barrier`` with ``.aligned`` (9.7.14.1)."""
    return q.form.opcode.startswith("bar.") or q.form.opcode == "bar" or q.get("aligned") is not None


def _barrier_id(q: Qualified, names: Names, item: syntax.Operand) -> ops.Operand:
    barrier = operands.value(q, names, item, U32)
    if isinstance(barrier, ops.Imm) and not 0 <= barrier.value <= 15:
        raise at(item.span, f"a CTA has the barriers 0 to 15, not {barrier.value}")
    return barrier


def _barrier_reduction(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 3, 4)
    dst, barrier, *threads, predicate = q.instruction.operands
    register, negated = source_predicate(names, predicate)
    return ops.BarrierReduction(
        cast("Literal['popc', 'and', 'or']", q.chosen["op"]), operands.destination(names, dst),
        _barrier_id(q, names, barrier), _THREADS.value(q, names, threads[0], U32) if threads else None, register,
        negated,
        source(q), guard(q, names), _aligned(q),
    )  # fmt: skip


def dialect_barrier(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 1, 3)
    items = q.instruction.operands
    instance = operands.constant(items[0], "the instance of a barrier")
    barrier = operands.value(q, names, items[1], S64) if len(items) > 1 else ops.Imm(instance)
    quorum = operands.value(q, names, items[2], S64) if len(items) > 2 else None
    for item, operand in zip(items[1:], (barrier, quorum), strict=False):
        if isinstance(operand, ops.Sym):
            raise at(item.span, f"expected a register or a constant, found the location `{operand.name}`")
    if isinstance(quorum, ops.Imm) and quorum.value <= 0:
        raise at(items[2].span, f"the quorum of a barrier is at least 1, not {quorum.value}")
    kind = q.chosen["kind"]
    return ops.Barrier("sync" if kind == "sync" else "arrive", barrier, quorum, instance, source(q), guard(q, names))


def _set_max_registers(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 1, 1)
    item = q.instruction.operands[0]
    count = operands.constant_of(item, "the number of registers", range(24, 257, 8), "a multiple of 8 from 24 to 256")
    kind: Literal["inc", "dec"] = "inc" if q.chosen["op"] == "inc" else "dec"
    return ops.SetMaxRegisters(kind, count, source(q), guard(q, names))


# -- mbarriers -----------------------------------------------------------------------------------------------------


def _mbarrier_arrive(q: Qualified, names: Names) -> Op:
    arrival = q.get("arrival")
    operands.check_count(q, 2 if arrival is None else 3, 3)
    state, place, *more = q.instruction.operands
    dst = operands.destination_or_sink(names, state)
    if dst is not None and q.get("space") == "shared::cluster":
        message = f"`{q.form.opcode}.shared::cluster` returns no state"
        raise at(state.span, message, hint="write `_` for the state")
    expected = arrival == "expect_tx"
    return ops.MbarrierArrive(
        dst,
        operands.address(q, names, place),
        _COUNT.value(q, names, more[0], U32) if more and not expected else None,
        _AMOUNT.value(q, names, more[0], U32) if expected else None,
        cast("Literal['release', 'relaxed']", q.get("sem") or "release"),
        scope_of(q, "cta"),
        q.form.opcode == "mbarrier.arrive_drop",
        arrival == "noComplete",
        q.get("space"),
        source(q),
        guard(q, names),
    )


def _mbarrier_wait(q: Qualified, names: Names) -> Op:
    kind = cast("Literal['test_wait', 'try_wait']", q.form.opcode.removeprefix("mbarrier."))
    operands.check_count(q, 3, 4 if kind == "try_wait" else 3)
    complete, place, phase, *time = q.instruction.operands
    if time:
        operands.value(q, names, time[0], U32)  # how long the thread may be suspended: no effect here
    state: ops.Operand | None = None
    parity: ops.Operand | None = None
    if "parity" in q.chosen:
        parity = _PARITY.value(q, names, phase, U32)
    else:
        state = operands.register(names, phase, "a register with the state of an arrival")
    return ops.MbarrierWait(
        kind, operands.destination(names, complete), operands.address(q, names, place), state, parity,
        cast("Literal['acquire', 'relaxed']", q.get("sem") or "acquire"), scope_of(q, "cta"), source(q),
        guard(q, names), q.get("space"),
    )  # fmt: skip


def _pending_count(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 2, 2)
    dst, state = q.instruction.operands
    register = operands.register(names, state, "a register with the state of an arrival")
    return ops.PendingCount(operands.destination(names, dst), register, source(q), guard(q, names))


# -- tensor maps ---------------------------------------------------------------------------------------------------


def _tensormap_replace(q: Qualified, names: Names) -> Op:
    field, typ = q.chosen["field"], q.types[0]
    ordinal: int | None = None
    if field in _DIMENSION_FIELDS:
        operands.check_count(q, 3, 3)
        place, order, new = q.instruction.operands
        ordinal = operands.constant_of(order, "the dimension of a field", range(5), "0 to 4")
    else:
        operands.check_count(q, 2, 2)
        place, new = q.instruction.operands
    if field in _VALUES:
        legal = _VALUES[field]
        value: ops.Operand = ops.Imm(operands.constant_of(new, f"the field .{field}", legal, f"0 to {legal[-1]}"))
    else:
        value = operands.value(q, names, new, U64 if typ == B64 else U32)
    address = operands.address(q, names, place)
    return ops.TensormapReplace(field, address, ordinal, value, typ, q.get("space"), source(q), guard(q, names))


def _check_fence(q: Qualified) -> None:
    """The restricted fences of PTX ISA 8.6 (9.7.13.4 of PTX ISA 9.0)."""
    if "restrict" not in q.chosen:
        return
    forms = ("acquire.sync_restrict::shared::cluster.cluster", "release.sync_restrict::shared::cta.cluster")
    if f"{q.get('sem')}.{q.chosen['restrict']}.{q.chosen['scope']}" not in forms:
        hint = ", ".join(f"{q.form.opcode}.{form}" for form in forms)
        raise at(q.span("restrict"), f"there is no such restricted fence of `{shown(q)}`", hint=hint)


def _check_proxy_fence(q: Qualified) -> None:
    if "space" in q.chosen and q.chosen["kind"] != "async":
        message = f"`{q.form.opcode}.{q.chosen['kind']}` takes no state space: `.{q.chosen['space']}`"
        raise at(q.span("space"), message, hint=f"only {q.form.opcode}.async has one")


def _check_arrival(q: Qualified) -> None:
    """``.noComplete`` is for the own CTA (9.7.14.15.13)."""
    if q.get("arrival") != "noComplete":
        return
    for group, value in (("sem", "relaxed"), ("scope", "cluster"), ("space", "shared::cluster")):
        if q.get(group) == value:
            raise at(q.span(group), f"`{q.form.opcode}.noComplete` takes no `.{value}`")


def _check_field(q: Qualified) -> None:
    """The type of a field of a tensor map (9.7.10.25)."""
    field = q.chosen["field"]
    needed = "b64" if field in ("global_address", "global_stride") else "b32"
    if q.chosen["type"] != needed:
        raise at(q.span("type"), f"the field .{field} of a tensor map has type .{needed}")


FORMS = (
    Form("fence", _fence,
         {"sem": words("sc acq_rel acquire release"), "restrict": _RESTRICT, "scope": SCOPES},
         (), V6, ("scope",), rule=_check_fence,
         newer={Version((8, 6), 70): "acquire release", V86: " ".join(_RESTRICT)}),
    Form("fence.mbarrier_init", made(ops.MbarrierInitFence), {"sem": ("release",), "scope": ("cluster",)}, (), SM90,
         ("sem", "scope")),
    Form("membar", _membar, {"level": ("cta", "gl", "sys")}, (), Version((1, 4)), ("level",),
         newer={Version((2, 0), 20): "sys"}),
    Form("fence.proxy", made(ops.ProxyFence), {"kind": PROXIES, "space": ASYNC_SPACES}, (), Version((7, 5), 70),
         ("kind",), later={"generic::async": V86}, rule=_check_proxy_fence, newer={SM90: "async"}),
    Form("membar.proxy", made(ops.ProxyFence), {"kind": ("alias", "async"), "space": ASYNC_SPACES}, (),
         Version((7, 5), 60), ("kind",), rule=_check_proxy_fence, newer={SM90: "async"}),
    Form("fence.proxy.tensormap::generic", _tensormap_fence, {"sem": words("release acquire"), "scope": SCOPES},
         words("[a]? size?"), Version((8, 3), 90), ("sem", "scope")),
    Form("fence.proxy.async::generic", made(ops.GenericToAsyncFence),
         {"sem": words("release acquire"), "restrict": _RESTRICT, "scope": ("cluster",)}, (), V86,
         ("sem", "restrict", "scope"), rule=_check_fence),
    Form("bar", _barrier, {**_LEVEL, "kind": ("sync", "arrive")}, ("a", "b?"), V1, ("kind",),
         newer={Version((2, 0), 20): "arrive", **_LEVEL_NEWER}),
    Form("barrier", _barrier, {**_LEVEL, "kind": ("sync", "arrive"), **_ALIGNED}, ("a", "b?"), Version((6, 0), 30),
         ("kind",), newer=_LEVEL_NEWER),
    Form("bar.red", _barrier_reduction, {**_LEVEL, **_RED}, _RED_SLOTS, Version((2, 0), 20), ("op", "type"),
         ("op", _REDUCTIONS), newer=_LEVEL_NEWER),
    Form("barrier.red", _barrier_reduction, {**_LEVEL, "op": _RED["op"], **_ALIGNED, "type": _RED["type"]}, _RED_SLOTS,
         Version((6, 0), 30), ("op", "type"), ("op", _REDUCTIONS), newer=_LEVEL_NEWER),
    Form("bar.warp.sync", made(ops.WarpBarrier), {}, ("mask",), Version((6, 0), 30)),
    Form("barrier.cluster.arrive", made(ops.ClusterBarrier), {"sem": words("release relaxed"), **_ALIGNED}, (), CLUSTER,
         fixed={"kind": "arrive", "sem": "release"}, newer={SM90: "release relaxed"}),
    Form("barrier.cluster.wait", made(ops.ClusterBarrier), {"sem": ("acquire",), **_ALIGNED}, (), CLUSTER,
         fixed={"kind": "wait", "sem": "acquire"}, newer={SM90: "acquire"}),
    Form("mbarrier.init", made(ops.MbarrierInit, count=_COUNT), _INIT, words("[mbar] count"), SM80, ("type",)),
    Form("mbarrier.inval", made(ops.MbarrierInit, count=_COUNT), _INIT, ("[mbar]",), SM80, ("type",)),
    Form("mbarrier.arrive", _mbarrier_arrive, _ARRIVE, words("state [mbar] count?"), SM80, ("type",),
         rule=_check_arrival, newer=_MBARRIER_NEWER),
    Form("mbarrier.arrive_drop", _mbarrier_arrive, _ARRIVE, words("state [mbar] count?"), SM80, ("type",),
         rule=_check_arrival, newer=_MBARRIER_NEWER),
    Form("mbarrier.expect_tx", made(ops.MbarrierTx, amount=_AMOUNT), _TX, words("[mbar] tx"), SM90, ("type",),
         fixed={"kind": "expect_tx", "scope": "cta"}),
    Form("mbarrier.complete_tx", made(ops.MbarrierTx, amount=_AMOUNT), _TX, words("[mbar] tx"), SM90, ("type",),
         fixed={"kind": "complete_tx", "scope": "cta"}),
    Form("mbarrier.test_wait", _mbarrier_wait, _WAIT, words("p [mbar] phase"), SM80, ("type",),
         newer={**_MBARRIER_NEWER, Version((7, 1), 80): "parity"}),
    Form("mbarrier.try_wait", _mbarrier_wait, _WAIT, words("p [mbar] phase time?"), CLUSTER, ("type",),
         newer=_MBARRIER_NEWER),
    Form("mbarrier.pending_count", _pending_count, _B64, words("count state"), SM80, ("type",)),
    Form("setmaxnreg", _set_max_registers,
         {"op": words("inc dec"), "sync": ("sync",), "aligned": ("aligned",), "type": ("u32",)}, ("count",),
         Version((8, 0), 90), words("op sync aligned type")),
    Form("griddepcontrol", made(ops.GridControl), {"kind": words("wait launch_dependents")}, (), CLUSTER, ("kind",)),
    Form("tensormap.replace", _tensormap_replace,
         {"mode": ("tile",),
          "field": words("global_address rank box_dim global_dim global_stride element_stride elemtype "
                         "interleave_layout swizzle_mode fill_mode"),
          "space": words("global shared::cta"), "b1024": ("b1024",), "type": words("b32 b64")},
         words("[map] ordinal? value"), Version((8, 3), 90), ("mode", "field", "b1024", "type"),
         later={"swizzle_atomicity": V86}, rule=_check_field),
    Form("tensormap.cp_fenceproxy", made(ops.TensormapCopyFence, _=MAP_SIZE),
         {"dst": ("global",), "src": ("shared::cta",), "proxy": ("tensormap::generic",), "sem": ("release",),
          "scope": SCOPES, "sync": ("sync",), **_ALIGNED},
         words("[dst] [src] size"), Version((8, 3), 90), ("dst", "src", "proxy", "sem", "scope", "sync", "aligned")),
)  # fmt: skip
