"""What `fences` calls removable can go: the program without it has a meaning, and no thread waits for ever in it."""

from __future__ import annotations

import random
import time

from ptxmm.analysis.fences import fences
from ptxmm.analysis.outcomes import check
from ptxmm.analysis.property import Property
from ptxmm.analysis.strength.structure import removals
from ptxmm.engines.result import Limits
from ptxmm.program.edit import edited
from ptxmm.program.test import Test
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
