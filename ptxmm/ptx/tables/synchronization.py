"""Rows of fences, barriers, mbarriers, grid control, setmaxnreg (PTX ISA 9.7.14.1 to .4, .13, .15, .16, 9.7.19.5)."""

from __future__ import annotations

from ptxmm.ptx.tables.form import CLUSTER, SCOPES, SHARED, SHARED_CTA, SM80, SM90, V1, V6, Form, Version, words

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

FORMS = (
    Form("fence", "fence",
         {"sem": words("sc acq_rel acquire release"), "restrict": _RESTRICT, "scope": SCOPES},
         (), V6, ("scope",)),
    Form("fence.mbarrier_init", "mbarrier_init_fence", {"sem": ("release",), "scope": ("cluster",)}, (), SM90,
         ("sem", "scope")),
    Form("membar", "membar", {"level": ("cta", "gl", "sys")}, (), Version((1, 4)), ("level",)),
    Form("fence.proxy", "proxy_fence", {"kind": PROXIES, "space": ASYNC_SPACES}, (), Version((7, 5), 70), ("kind",),
         later=words("generic::async")),
    Form("membar.proxy", "proxy_fence", {"kind": ("alias", "async"), "space": ASYNC_SPACES}, (), Version((7, 5), 60),
         ("kind",)),
    Form("fence.proxy.tensormap::generic", "tensormap_fence", {"sem": words("release acquire"), "scope": SCOPES},
         words("[a]? size?"), Version((8, 3), 90), ("sem", "scope")),
    Form("fence.proxy.async::generic", "generic_to_async_fence",
         {"sem": words("release acquire"), "restrict": _RESTRICT, "scope": ("cluster",)}, (), Version((8, 6), 90),
         ("sem", "restrict", "scope")),
    Form("bar", "barrier", {**_LEVEL, "kind": ("sync", "arrive")}, ("a", "b?"), V1, ("kind",)),
    Form("barrier", "barrier", {**_LEVEL, "kind": ("sync", "arrive"), **_ALIGNED}, ("a", "b?"), Version((6, 0), 30),
         ("kind",)),
    Form("bar.red", "barrier_red", {**_LEVEL, **_RED}, _RED_SLOTS, Version((2, 0), 20), ("op", "type"),
         ("op", _REDUCTIONS)),
    Form("barrier.red", "barrier_red", {**_LEVEL, "op": _RED["op"], **_ALIGNED, "type": _RED["type"]}, _RED_SLOTS,
         Version((6, 0), 30), ("op", "type"), ("op", _REDUCTIONS)),
    Form("bar.warp.sync", "warp_barrier", {}, ("mask",), Version((6, 0), 30)),
    Form("barrier.cluster.arrive", "cluster_barrier", {"sem": words("release relaxed"), **_ALIGNED}, (), CLUSTER,
         fixed={"kind": "arrive", "sem": "release"}),
    Form("barrier.cluster.wait", "cluster_barrier", {"sem": ("acquire",), **_ALIGNED}, (), CLUSTER,
         fixed={"kind": "wait", "sem": "acquire"}),
    Form("mbarrier.init", "mbarrier_init", {"space": SHARED_CTA, **_B64}, words("[mbar] count"), SM80, ("type",)),
    Form("mbarrier.inval", "mbarrier_init", {"space": SHARED_CTA, **_B64}, ("[mbar]",), SM80, ("type",)),
    Form("mbarrier.arrive", "mbarrier_arrive", _ARRIVE, words("state [mbar] count?"), SM80, ("type",)),
    Form("mbarrier.arrive_drop", "mbarrier_arrive", _ARRIVE, words("state [mbar] count?"), SM80, ("type",)),
    Form("mbarrier.expect_tx", "mbarrier_tx", _TX, words("[mbar] tx"), SM90, ("type",)),
    Form("mbarrier.complete_tx", "mbarrier_tx", _TX, words("[mbar] tx"), SM90, ("type",)),
    Form("mbarrier.test_wait", "mbarrier_wait", _WAIT, words("p [mbar] phase"), SM80, ("type",)),
    Form("mbarrier.try_wait", "mbarrier_wait", _WAIT, words("p [mbar] phase time?"), CLUSTER, ("type",)),
    Form("mbarrier.pending_count", "pending_count", _B64, words("count state"), SM80, ("type",)),
    Form("setmaxnreg", "set_max_registers",
         {"op": words("inc dec"), "sync": ("sync",), "aligned": ("aligned",), "type": ("u32",)}, ("count",),
         Version((8, 0), 90), words("op sync aligned type")),
    Form("griddepcontrol", "grid_control", {"kind": words("wait launch_dependents")}, (), CLUSTER, ("kind",)),
    Form("tensormap.replace", "tensormap_replace",
         {"mode": ("tile",),
          "field": words("global_address rank box_dim global_dim global_stride element_stride elemtype "
                         "interleave_layout swizzle_mode fill_mode"),
          "space": words("global shared::cta"), "b1024": ("b1024",), "type": words("b32 b64")},
         words("[map] ordinal? value"), Version((8, 3), 90), ("mode", "field", "b1024", "type"),
         later=("swizzle_atomicity",)),
    Form("tensormap.cp_fenceproxy", "tensormap_copy",
         {"dst": ("global",), "src": ("shared::cta",), "proxy": ("tensormap::generic",), "sem": ("release",),
          "scope": SCOPES, "sync": ("sync",), **_ALIGNED},
         words("[dst] [src] size"), Version((8, 3), 90), ("dst", "src", "proxy", "sem", "scope", "sync", "aligned")),
)  # fmt: skip
