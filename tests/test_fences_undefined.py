"""What `fences` calls removable can go: the program without it has a meaning, and no thread waits for ever in it."""

from __future__ import annotations

import random
import re
import time
from collections import Counter

import pytest
from msgspec.structs import replace

from ptxmm.analysis.fences import fences
from ptxmm.analysis.outcomes import check
from ptxmm.analysis.strength.structure import removals
from ptxmm.analysis.words import Property
from ptxmm.engines.result import Limits
from ptxmm.program.edit import edited
from ptxmm.program.identity import Site
from ptxmm.program.test import Test
from ptxmm.ptx.ops import ClusterBarrier
from tests.random_families import seeded
from tests.support import model_named, parse_one
from tests.tally import Tally

MODEL = "ptx-8.5"
HEAD = """PTX t
{ .shared .b64 b @ cta 0; .shared .u32 x @ cta 0 = 0; .global .u32 g = 7; }
"""


def text(seed: int) -> str:
    """An mbarrier that one thread initialises and both use, with barriers of which some are not needed."""
    rng = random.Random(seed)
    bar = ["bar.sync 0;", "", "fence.mbarrier_init.release.cluster;", "fence.acq_rel.cta;"]
    common = [rng.choice(bar[:1] * 3 + bar) for _ in range(2)]
    wait = rng.choice(("L: mbarrier.try_wait.parity.shared::cta.b64 p, [b], 0; @!p bra L;",
                       "mbarrier.test_wait.parity.shared::cta.b64 p, [b], 0;"))  # fmt: skip
    use = rng.choice(("mbarrier.arrive.shared::cta.b64 _, [b];", "cp.async.mbarrier.arrive.noinc.shared.b64 [b];"))
    first = ["mbarrier.init.shared::cta.b64 [b], 1;", common[0], "st.shared.u32 [x], 1;", use, common[1]]
    second = [common[0], wait, "@p ld.shared.u32 r0, [x];", common[1]]
    bodies = "\n".join(f"P{i} @ cta 0 {{\n{chr(10).join(body)}\n}}" for i, body in enumerate((first, second)))
    return f"{HEAD}{bodies}\nexists (P1:r0 == 5)\n"


def meaningful(test: Test) -> bool:
    result = check(test, model_named(MODEL), engine="enumerate")
    return result.status == "complete" and "deadlock" not in result.flags and "vacuous" not in result.flags


def test_what_is_removable_can_go(tally: Tally) -> None:
    limits = Limits(deadline=time.monotonic() + 60)
    removable = needed = 0
    for seed in range(24):
        test = parse_one(text(seed))
        if not meaningful(test):
            continue
        judged = fences(test, model_named(MODEL), wanted=Property.never, limits=limits)
        found = {item.line: item for item in judged.items}
        for structural in removals(test):
            thread, index = structural.at
            item = found[test.threads[thread].body[index].source.span.line]
            assert (item.verdict == "removable") == meaningful(edited(test, structural.edits)), text(seed)
            removable += item.verdict == "removable"
            needed += item.verdict == "needed"
    tally.notes.append(f"barriers of random programs with an mbarrier: {needed} needed, {removable} removable")
    assert removable and needed


def warp(test: Test, site: Site) -> set[Site]:
    """An instruction, and in a warp those that the other threads execute together with it: of those with the same
    opcode the k-th of each, as these programs run straight on."""
    opcodes = [[re.sub(r"^@\S+ ", "", op.source.text).split()[0].rstrip(";") for op in t.body] for t in test.threads]
    name = opcodes[site.thread][site.instruction]
    place = test.threads[site.thread].placement
    if ".aligned" not in name and not name.startswith("bar.sync"):
        return {site}
    if place.warp is None:
        return {site}
    number = opcodes[site.thread][: site.instruction].count(name)
    places = [[pc for pc, other in enumerate(found) if other == name] for found in opcodes]
    return {Site(t, found[number]) for t, found in enumerate(places)
            if test.threads[t].placement == place and number < len(found)}  # fmt: skip


def handed_over(seed: int) -> str:
    """Two lanes of a warp, and a thread of another CTA that uses the mbarrier that one of them initialises."""
    rng = random.Random(seed)
    orders = rng.choice(("relaxed", "release", "release")), rng.choice(("relaxed", "release", "release"))
    first = rng.choice((["bar.sync 0;"], ["wgmma.fence.sync.aligned;"], []))
    met = [[f"barrier.cluster.arrive.{order}.aligned;", "barrier.cluster.wait.aligned;"] for order in orders]
    fence = rng.choice((["fence.mbarrier_init.release.cluster;"], ["fence.acq_rel.cluster;"], [], []))
    bodies = [
        [*first, "mbarrier.init.shared::cta.b64 [b], 1;", *fence, *met[0], *met[1]],
        [*first, *met[0], *met[1]],
        [*met[0], "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [b];", *met[1]],
    ]
    places = "cta 0, cluster 0, warp 0", "cta 0, cluster 0, warp 0", "cta 1, cluster 0, warp 0"
    head = "PTX t\n{ .shared .b64 b @ cta 0, cluster 0; .global .u32 y = 0; }\n"
    threads = [f"P{t} @ {places[t]} {{\n" + "\n".join(body) + "\n}\n" for t, body in enumerate(bodies)]
    return head + "".join(threads) + "exists (y == 99)\n"


def test_what_a_warp_executes_together_changes_together(tally: Tally) -> None:
    together(4, 12, tally)


@pytest.mark.slow
def test_more_of_what_a_warp_executes_together(tally: Tally) -> None:
    together(60, 300, tally)


def together(handed: int, programs: int, tally: Tally) -> None:
    """The verdicts on each instruction against the program without it, or with a weaker one, in its whole warp."""
    limits = Limits(deadline=time.monotonic() + 600)
    model = model_named(MODEL)
    verdicts = Counter[str]()
    random_ones = (seeded("aligned", seed).text() for seed in range(programs))
    sources = [re.sub(r"exists.*", "exists (y == 99)", source) for source in random_ones]
    for source in [*map(handed_over, range(handed)), *sources]:
        test = parse_one(source)
        if not meaningful(test):
            continue
        judged = fences(test, model, wanted=Property.never, limits=limits)
        assert judged.holds and all(meaningful(variant.program) for variant in judged.repairs), source
        found = {item.line: item for item in judged.items}
        for structural in removals(test):
            sites = set(structural.edits)
            assert sites == {other for site in sites for other in warp(test, site)}, source
            item = found[test.threads[structural.at.thread].body[structural.at.instruction].source.span.line]
            without = edited(test, dict.fromkeys(sites, ()))
            assert (item.verdict == "removable") == meaningful(without), source
            verdicts[item.verdict] += any(len(warp(test, site)) > 1 for site in sites)
        for item in judged.items:
            where = next(
                Site(t, pc) for t, thread in enumerate(test.threads) for pc, op in enumerate(thread.body)
                if op.source.span.line == item.line
            )  # fmt: skip
            op = test.threads[where.thread].body[where.instruction]
            if isinstance(op, ClusterBarrier) and not item.text.endswith(")"):  # its order
                relaxed = edited(test, {site: (replace(op, sem="relaxed"),) for site in warp(test, where)})
                assert (item.verdict == "weaker") == meaningful(relaxed), source
                verdicts["weaker" if item.verdict == "weaker" else "order"] += 1
    tally.notes.append(f"instructions that warps execute together: {dict(verdicts)}")
    assert min(verdicts[kind] for kind in ("needed", "removable", "weaker", "order")) > 0
