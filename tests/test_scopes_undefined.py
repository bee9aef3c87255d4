"""Narrower scopes and weaker instructions leave no program without meaning, and no thread waiting for ever: `scopes`,
`fences` and `robust` against each changed program by itself, on small programs that hand something over."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from ptxmm.analysis.fences import fences
from ptxmm.analysis.outcomes import check
from ptxmm.analysis.robust import robust
from ptxmm.analysis.scopes import narrower, scopes
from ptxmm.analysis.words import Property
from ptxmm.engines.result import Limits
from ptxmm.program.edit import edited
from ptxmm.program.identity import Site
from ptxmm.program.test import Test
from ptxmm.ptx.ops import Fence, Load, MbarrierArrive, Store
from tests.support import model_named, parse_one
from tests.tally import Tally

MODEL = "ptx-8.5"
HEAD = """PTX t
{ .shared .b64 b @ cta 0, cluster 0; .global .u64 x = 0; .global .u32 y = 0; .global .u32 z = 0; }
"""
USES = {  # what a thread does with `x` where it has seen `y`, and what else runs in its CTA
    "hang": ("setp.eq.u64 q, r1, 0;\n@q exit;\nbar.sync 0, 64;", "bar.sync 0, 64;"),
    "barrier number": ("setp.eq.u64 q, r1, 0;\nselp.u32 r3, 16, 1, q;\nbar.sync r3, 64;", "bar.sync 1, 64;"),
    "illegal access": ("ld.global.u32 r2, [r1];", "ld.global.u32 r2, [z];"),
    "executed together": ("setp.eq.u64 q, r1, 0;\n@!q wgmma.fence.sync.aligned;", "wgmma.fence.sync.aligned;"),
    "mbarrier": ("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [b];", ""),
}


def text(seed: int, use: str) -> str:
    """A thread of one CTA hands over to one of another CTA of its cluster."""
    rng = random.Random(f"{use} {seed}")
    wide = ("cluster", "gpu", "gpu", "sys") if seed else ("cta",)
    release, acquire = (rng.choice(("relaxed", order)) for order in ("release", "acquire"))
    first = ["mbarrier.init.shared::cta.b64 [b], 1;", "mov.u64 r0, z;", "st.relaxed.gpu.global.u64 [x], r0;"]
    if release == "relaxed" or rng.random() < 0.3:
        first.append(f"fence.{rng.choice(('acq_rel', 'sc'))}.{rng.choice(wide)};")
    first.append(f"st.{release}.{rng.choice(wide)}.global.u32 [y], 1;")
    second = [f"ld.{acquire}.{rng.choice(wide)}.global.u32 r0, [y];", "setp.ne.u32 p, r0, 1;"]
    own, other = USES[use]
    second.append("@p bra N;" if use in ("hang", "barrier number", "executed together") else "@p exit;")
    if acquire == "relaxed" or rng.random() < 0.3:
        second.append(f"fence.acq_rel.{rng.choice(wide)};")
    second += ["ld.relaxed.gpu.global.u64 r1, [x];", own]
    if second[2] == "@p bra N;":
        second += ["exit;", f"N: {other}"]
    bodies = [(0, first), (1, second), (1, [other] if other else [])]
    warp = ", warp 0" if use == "executed together" else ""
    places = [f"P{i} @ cta {cta}, cluster 0{warp if cta else ''} " for i, (cta, _) in enumerate(bodies)]
    threads = ["\n".join((f"{place}{{", *body, "}")) for place, (_, body) in zip(places, bodies, strict=True) if body]
    return HEAD + "\n".join(threads) + "\nexists (z == 9)\n"


def meaningful(test: Test) -> bool:
    result = check(test, model_named(MODEL), engine="enumerate")
    return result.status == "complete" and "deadlock" not in result.flags and "vacuous" not in result.flags


@pytest.mark.parametrize("use", USES)
def test_narrower_scopes_and_weaker_programs_have_a_meaning(use: str, tally: Tally) -> None:
    compare(use, (0, 1, 3), tally)


@pytest.mark.slow
@pytest.mark.parametrize("use", USES)
def test_more_narrower_scopes_and_weaker_programs(use: str, tally: Tally) -> None:
    compare(use, range(8), tally)


def compare(use: str, seeds: Iterable[int], tally: Tally) -> None:
    limits = Limits(deadline=time.monotonic() + 60)
    model = model_named(MODEL)
    narrowed = kept = weaker = undefined = 0
    for seed in seeds:
        test = parse_one(text(seed, use))
        if not meaningful(test):
            undefined += 1
            assert robust(test, model, limits=limits).robust is not True, text(seed, use)
            if use != "hang":
                assert not scopes(test, model, wanted=Property.never, limits=limits).narrowings
            continue
        found = scopes(test, model, wanted=Property.never, limits=limits)
        for item in found.narrowings:
            thread = next(n for n, t in enumerate(test.threads) if t.name == item.instruction.thread)
            site = Site(thread, item.instruction.index)
            op = test.threads[site.thread].body[site.instruction]
            assert isinstance(op, Load | Store | Fence | MbarrierArrive)
            allowed = narrower(op, model.coverage)
            assert item.alone is not None
            for scope in allowed:
                wide = allowed.index(scope) >= allowed.index(item.alone)
                changed = edited(test, {site: (replace(op, scope=scope),)})
                assert meaningful(changed) == wide, text(seed, use)
            narrowed += item.alone != item.given
            kept += item.alone == item.given
        for variant in fences(test, model, wanted=Property.never, limits=limits).repairs if weaker < 2 else ():
            assert meaningful(variant.program), text(seed, use)
            weaker += bool(variant.changes)
    tally.notes.append(f"{use}: {narrowed} scopes narrower, {kept} kept, {weaker} weaker, {undefined} undefined")
    assert narrowed and kept and weaker and undefined
