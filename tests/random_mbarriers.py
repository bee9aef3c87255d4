"""Random programs: mbarriers."""

from __future__ import annotations

import random

from msgspec.structs import replace

from tests.random_families import Kit, program
from tests.random_programs import Program

MBARRIER_SCOPES = ("cta", "cta", "cluster")


def arrive(kit: Kit, name: str, remote: bool, scope: str | None = None, count: int | None = None) -> str | None:
    """``mbarrier.arrive``; the register of its state, if it has one."""
    where = ".shared::cluster" if remote else ".shared::cta"
    token = None if remote or kit.chance(0.75) else kit.fresh("k")
    head = "mbarrier.arrive_drop" if kit.chance(0.06) else "mbarrier.arrive"
    given = "" if count is None else f", {count}"
    kit.add(head, f"{where}.b64 {token or '_'}, [{name}]{given}", "release", scope or kit.pick(MBARRIER_SCOPES))
    return token


def wait(kit: Kit, name: str, parity: int, token: str | None = None) -> str:
    """``mbarrier.test_wait`` or ``try_wait``; the predicate that it writes."""
    p = kit.fresh("p")
    head = f"mbarrier.{kit.pick(('try_wait', 'test_wait'))}{'' if token else '.parity'}"
    kit.add(head, f".shared::cta.b64 {p}, [{name}], {token or parity}", "acquire", kit.pick(MBARRIER_SCOPES))
    return p


def after(kit: Kit, p: str) -> str | None:
    """What follows a wait: nothing, a branch over the rest, an exit, or a loop until it is true."""
    roll = kit.rng.random()
    if roll < 0.25:
        label = kit.fresh("L")
        kit.add("bra", f" {label}")
        kit.guard(p, negated=True)
        return label
    if roll < 0.35:
        kit.add("exit")
        kit.guard(p, negated=True)
    elif roll < 0.5:
        label = kit.fresh("L")
        kit.lines[-1] = replace(kit.lines[-1], label=label)
        kit.add("bra", f" {label}")
        kit.guard(p, negated=True)
    return None


# ---- mbarriers -------------------------------------------------------------------------------------------------------


def mbarriers(rng: random.Random) -> Program:
    """Producers that arrive and consumers that wait, in one CTA or across a cluster."""
    kit = Kit(rng)
    remote = kit.chance(0.4)
    ctas = kit.pick(((0, 1), (0, 1), (0, 1, 0), (0, 1, 1)) if remote else ((0, 0), (0, 0), (0, 0, 0)))
    ends = ", cluster 0" if remote else ""
    second = kit.chance(0.25)
    count = kit.pick((1, 1, 1, 2, 2, 3))
    tx = kit.pick((0, 0, 0, 8))
    if tx:
        count = kit.pick((0, 0, 1))
    inside = not tx and kit.chance(0.35)
    published = kit.pick(("barrier", "flag", "fence and flag", "fence and flag", "none")) if inside else ""
    barrier = f" = mbarrier({count}{f', {tx}' if tx else ''})" if not inside else " = 0"
    declared = [f".shared .b64 b @ cta 0{ends}{barrier};"]
    if second:
        declared.append(f".shared .b64 c @ cta 0{ends} = mbarrier(1);")
    data = kit.pick((".global", ".global", ".shared"))
    declared.append(".global .u32 x = 0;" if data == ".global" else f".shared .u32 x @ cta 0{ends} = 0;")
    if published.endswith("flag"):
        declared.append(f".shared .u32 f @ cta 0{ends} = 0;")
    scopes = ("cta", "cluster", "gpu") if remote else ("cta", "gpu")

    def space(cta: int) -> str:
        return data if data == ".global" or cta == 0 else ".shared::cluster"

    def access(cta: int, write: bool) -> None:
        if write:
            kit.store("u32", "x", kit.pick((1, 2)), kit.pick(("weak", "weak", "relaxed")), kit.pick(scopes), space(cta))
        else:
            kit.load("u32", "x", kit.pick(("weak", "weak", "relaxed")), kit.pick(scopes), space(cta))

    def start(index: int, cta: int) -> str | None:
        """Initialise the mbarrier, or wait until that is done."""
        if not inside:
            return None
        if index == 0:
            kit.add("mbarrier.init.shared::cta.b64", f" [b], {count}")
            if published == "fence and flag":
                kit.add("fence.mbarrier_init.release.cluster")
            if published.endswith("flag"):
                sem = kit.pick(("relaxed", "release") if published == "fence and flag" else ("release", "relaxed"))
                kit.store("u32", "f", 1, sem, "cluster" if remote else "cta", ".shared")
        if published == "barrier":
            if remote:
                kit.add("barrier.cluster.arrive", "", kit.pick(("release", "release", "relaxed")))
                kit.add("barrier.cluster.wait")
            else:
                kit.add("bar.sync", " 0")
        elif published.endswith("flag") and index:
            where = ".shared" if cta == 0 else ".shared::cluster"
            return kit.subscribe("f", "cluster" if remote else "cta", where, guarded=kit.chance(0.8))
        return None

    threads = []
    for i, cta in enumerate(ctas):
        label = start(i, cta)
        consumer = cta == 0 and (i == 0 if remote else i == len(ctas) - 1)
        if consumer:
            if kit.chance(0.05):
                kit.add("mbarrier.complete_tx", f".shared::cta.b64 [b], {tx or 8}", "relaxed", "cta")
            token = arrive(kit, "b", False) if kit.chance(0.15) else None
            p = wait(kit, "b", kit.pick((0, 0, 0, 0, 1)), token if kit.chance(0.7) else None)
            over = after(kit, p)
            access(cta, kit.chance(0.25))
            if second:
                arrive(kit, "c", False)
            elif kit.chance(0.2):
                wait(kit, "b", kit.pick((1, 0)))
                access(cta, False)
            elif inside and kit.chance(0.1):
                kit.add("mbarrier.inval.shared::cta.b64", " [b]")
            kit.label(over)
        else:
            access(cta, kit.chance(0.8))
            if kit.chance(0.5 if tx else 0.2):
                kit.fence(scopes)
            if tx and (i == len(ctas) - 1 or not remote or kit.chance(0.3)):
                where = ".shared::cluster" if cta else ".shared::cta"
                kit.add("mbarrier.complete_tx", f"{where}.b64 [b], 8", "relaxed", kit.pick(MBARRIER_SCOPES))
            expect = kit.chance(0.1)
            if expect:
                where = ".shared::cluster" if cta else ".shared::cta"
                kit.add("mbarrier.expect_tx", f"{where}.b64 [b], 8", "relaxed", kit.pick(MBARRIER_SCOPES))
            share = count if len(ctas) == 2 or (kit.chance(0.2) and count > 1) else max(1, count - 1)
            single = kit.chance(0.3)
            for _ in range(share if single else min(count, 1)):
                arrive(kit, "b", cta != 0, count=None if single or share == 1 or kit.chance(0.2) else share)
            if expect and kit.chance(0.9):
                where = ".shared::cluster" if cta else ".shared::cta"
                kit.add("mbarrier.complete_tx", f"{where}.b64 [b], 8", "relaxed", kit.pick(MBARRIER_SCOPES))
            if second and cta == 0:
                p = wait(kit, "c", 0)
                access(cta, kit.chance(0.5))
            elif kit.chance(0.15):
                access(cta, kit.chance(0.5))
        kit.label(label)
        threads.append((f"cta {cta}{ends}", kit.take()))
    return program(declared, threads, "x == 1")
