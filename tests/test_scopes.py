"""Placements of threads and widths of scopes."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from msgspec.structs import replace

from ptxmm.analysis.placements import LEVELS, placed
from ptxmm.analysis.property import judge, requirement
from ptxmm.analysis.scopes import ScopesResult, narrower, scopes
from ptxmm.analysis.words import Property
from ptxmm.cat.ir import Model
from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError
from ptxmm.formats import parse, read
from ptxmm.formats.convert import convert
from ptxmm.program.edit import edited
from ptxmm.program.identity import Site
from ptxmm.program.test import Test
from ptxmm.ptx.ops import Atomic, Fence, Load, Store
from ptxmm.render.scopes import text
from ptxmm.render.style import Style
from tests.support import ROOT, model_named, parse_one

Golden = Callable[[str, str], None]
LITMUS = sorted((ROOT / "litmus").rglob("*.litmus"))
MODEL = "ptx-8.5"


def limits() -> Limits:
    return Limits(deadline=time.monotonic() + 30)


def found(test: Test, wanted: Property = Property.never, model: str = MODEL) -> ScopesResult:
    return scopes(test, model_named(model), wanted=wanted, limits=limits())


def bundled(name: str) -> Test:
    (test,) = read(ROOT / "litmus" / f"{name}.litmus")
    return test


def table(result: ScopesResult) -> dict[str, bool | str | None]:
    """For each placement whether the property holds, or why there is none."""
    return {row.placement: row.impossible or row.holds for row in result.placements}


MP = """PTX MP
{{
  .global .u32 data = 0;
  .global .u32 flag = 0;
}}
 P0 @ {}                             | P1 @ {}                              ;
 st.global.u32 [data], 1             | ld.acquire.{}.global.u32 r0, [flag] ;
 st.release.{}.global.u32 [flag], 1  | ld.global.u32 r1, [data]             ;
exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""


def mp(scope: str, one: str = "cta 0", other: str = "cta 1") -> Test:
    return parse_one(MP.format(one, other, scope, scope))


@pytest.mark.parametrize(("scope", "last"), [("cta", "cta"), ("cluster", "cluster"), ("gpu", "gpu"), ("sys", "sys")])
def test_a_scope_reaches_as_far_as_it_says(scope: str, last: str) -> None:
    """8.5: the property holds at the placements that the scope includes, and at no wider one."""
    answers = table(found(mp(scope)))
    assert [answers[level] for level in LEVELS] == [LEVELS.index(level) <= LEVELS.index(last) for level in LEVELS]


def test_as_written() -> None:
    assert table(found(mp("gpu", "cta 0, gpu 0", "cta 0, gpu 1")))["as written"] is False
    assert table(found(mp("gpu")))["as written"] is True


def test_a_model_without_clusters() -> None:
    assert table(found(mp("gpu"), model="ptx-6.0"))["cluster"] == "the model has no clusters"


def test_host_threads_stay() -> None:
    test = bundled("scopes/MP+rel.sys+acq.sys-host")
    with pytest.raises(PtxmmError) as caught:
        found(test)
    assert caught.value.kind == "unsupported"


def test_no_condition() -> None:
    test = replace(mp("gpu"), condition=None)
    with pytest.raises(PtxmmError) as caught:
        found(test)
    assert caught.value.kind == "usage"
    assert found(test, Property.races).finding is True  # the data is read before the flag is seen


def test_the_time_limit() -> None:
    result = scopes(mp("gpu"), model_named(MODEL), limits=Limits(deadline=time.monotonic() - 1))
    assert (result.status, result.finding) == ("timeout", None)


# What can't be moved.


def threads(declarations: str, *columns: tuple[str, str]) -> Test:
    body = "".join(f"P{i} @ {place} {{ {code} }}\n" for i, (place, code) in enumerate(columns))
    return parse_one(f"PTX t\n{{\n{declarations}\n}}\n{body}exists (P1:r0 == 0)\n")


def reasons(test: Test) -> dict[str, str | None]:
    return {level: placed(test, level, model_named(MODEL).coverage).reason for level in LEVELS}


def test_shared_memory_of_a_cta() -> None:
    test = threads(".shared .u32 s = 0;", ("cta 0", "st.shared.u32 [s], 1;"), ("cta 0", "ld.shared.u32 r0, [s];"))
    why = reasons(test)
    assert why["warp"] is None and why["cta"] is None
    for level in ("cluster", "gpu", "sys"):
        assert (why[level] or "").endswith("s is in the .shared memory of one CTA")


def test_shared_memory_moves_with_its_threads() -> None:
    test = threads(
        ".shared .u32 s = 0; .global .u32 x = 0;",
        ("cta 0", "st.shared.u32 [s], 1;"),
        ("cta 0", "ld.shared.u32 r0, [s];"),
        ("cta 0", "ld.global.u32 r0, [x];"),
    )
    moved = placed(test, "sys", model_named(MODEL).coverage)
    assert moved.test is not None
    gpus = [t.placement.gpu for t in moved.test.threads]
    assert gpus[0] == gpus[1] != gpus[2]
    owner = moved.test.objects["s"].owner
    assert owner is not None and owner[0] == gpus[0]
    assert [tie.threads for tie in moved.together] == [(0, 1)]


def test_shared_memory_of_two_ctas() -> None:
    test = threads(".shared .u32 s = 0;", ("cta 0", "st.shared.u32 [s], 1;"), ("cta 1", "ld.shared.u32 r0, [s];"))
    why = reasons(test)
    assert why["cta"] == "cta 0:s and cta 1:s are in the memory of different CTAs"
    assert why["gpu"] is None


def test_barriers() -> None:
    code = "bar.sync 0; mov.u32 r0, 0;"
    apart = threads("", ("cta 0", code), ("cta 1", code))
    assert reasons(apart)["cta"] == "`bar.sync` waits for the threads of its CTA"
    assert reasons(apart)["gpu"] is None
    together = threads("", ("cta 0", code), ("cta 0", code))
    assert reasons(together)["cta"] is None
    assert reasons(together)["cluster"] is not None


def test_warps() -> None:
    code = "bar.warp.sync 3; mov.u32 r0, 0;"
    test = threads("", ("cta 0, warp 0", code), ("cta 0, warp 0", code))
    why = reasons(test)
    assert why["warp"] is None
    assert why["cta"] == "no two threads can be in different warps: `bar.warp.sync` is about the lanes of a warp"


def test_cluster_barriers() -> None:
    code = "barrier.cluster.arrive; barrier.cluster.wait; mov.u32 r0, 0;"
    test = threads("", ("cluster 0, cta 0", code), ("cluster 0, cta 1", code))
    why = reasons(test)
    assert (why["warp"], why["cta"], why["cluster"]) == (None, None, None)
    assert "barrier.cluster.arrive" in (why["gpu"] or "") and "barrier.cluster.arrive" in (why["sys"] or "")


def test_grids() -> None:
    test = threads(
        ".global .u32 x = 0;",
        ("cta 0, grid 0", "st.global.u32 [x], 1;"),
        ("cta 0, grid 1", "ld.global.u32 r0, [x];"),
    )
    why = reasons(test)
    assert why["gpu"] is None
    assert why["cta"] == "the threads are of several grids"
    assert (why["sys"] or "").endswith("the grids of one GPU run one after the other")


@pytest.mark.parametrize("path", LITMUS[::5], ids=lambda path: path.stem)
def test_moved_tests_are_tests(path: Path) -> None:
    """What is printed of a moved test is read back as the same placements and owners."""
    for test in read(path):
        for level in LEVELS:
            moved = placed(test, level, model_named(MODEL).coverage).test if _several(test) else None
            if moved is None or moved.dialect:
                continue
            (again,) = parse(convert(moved, "litmus"), "moved.litmus")
            assert [t.placement for t in again.threads] == [t.placement for t in moved.threads], level
            owners = [sorted((o.name, str(o.owner)) for o in t.objects.values()) for t in (again, moved)]
            assert owners[0] == owners[1], level


def _several(test: Test) -> bool:
    return sum(not t.placement.host for t in test.threads) > 1


def test_each_cta_of_a_gpu_is_the_placement_of_most_tests() -> None:
    """Where each thread is in a CTA of its own on one GPU, and nothing ties them, ``same GPU`` is the test itself."""
    seen = 0
    for path in LITMUS[::15]:
        for test in read(path):
            places = [(t.placement.gpu, t.placement.grid, t.placement.cta) for t in test.threads]
            apart = len(set(places)) == len(places) and len({p[0] for p in places}) == 1
            lone = all(t.placement.cluster is None and not t.placement.host for t in test.threads)
            if not (apart and lone and len(places) > 1 and test.condition) or test.default_model != MODEL:
                continue
            try:
                rows = {row.placement: row for row in found(test).placements}
            except PtxmmError:
                continue
            if rows["gpu"].impossible is None:
                assert rows["gpu"].holds == rows["as written"].holds, path
                seen += 1
    assert seen > 10


# Scopes.


def test_narrowest_alone_and_together() -> None:
    result = found(bundled("scopes/SB+fence.sc.gpu+fence.sc.sys"))
    assert [(n.given, n.alone) for n in result.narrowings] == [("gpu", "gpu"), ("sys", "gpu")]
    assert (result.joint, result.listed) == ((("gpu", "gpu"),), True)


def test_nothing_to_narrow_where_the_property_fails() -> None:
    result = found(mp("cta"))
    assert (result.narrowings, result.joint) == ((), ())
    assert "fails as written" in result.notes[-1].text


def test_several_choices() -> None:
    """Either of two release patterns is enough, so that each scope alone may be narrow, but not both."""
    test = parse_one(
        """PTX either
{
  .global .u32 data = 0;
  .global .u32 flag = 0;
}
 P0 @ cta 0                          | P1 @ cta 1                           ;
 st.global.u32 [data], 1             | ld.acquire.gpu.global.u32 r0, [flag] ;
 fence.acq_rel.gpu                   | ld.global.u32 r1, [data]             ;
 st.release.gpu.global.u32 [flag], 1 |                                      ;
exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""
    )
    result = found(test)
    assert [n.alone for n in result.narrowings] == ["cta", "gpu", "gpu"]
    assert set(result.joint) == brute(test, model_named(MODEL))


def brute(test: Test, model: Model) -> set[tuple[str, ...]]:
    """The narrowest scopes together, by trying all."""
    wanted = requirement(test, model, Property.never, limits())
    choices = {
        Site(i, n): found
        for i, thread in enumerate(test.threads)
        for n, op in enumerate(thread.body)
        if (found := narrower(op, model.coverage))
    }
    keep = []
    for levels in product(*(range(len(found)) for found in choices.values())):
        edits = {}
        for (site, known), level in zip(choices.items(), levels, strict=True):
            op = test.threads[site.thread].body[site.instruction]
            assert isinstance(op, Load | Store | Atomic | Fence)
            edits[site] = (replace(op, scope=known[level]),)
        if judge(edited(test, edits), model, wanted, limits()).holds:
            keep.append(levels)
    least = [k for k in keep if not any(o != k and all(x <= y for x, y in zip(o, k, strict=True)) for o in keep)]
    return {tuple(known[n] for known, n in zip(choices.values(), levels, strict=True)) for levels in least}


@pytest.mark.parametrize(
    "name", ["mp/MP+rel+acq", "scopes/SB+fence.sc.gpu+fence.sc.sys", "scopes/MP+rel.cluster+acq.cluster"]
)
def test_together_is_what_trying_all_gives(name: str) -> None:
    test = bundled(name)
    result = found(test)
    assert result.listed
    assert set(result.joint) == brute(test, model_named(MODEL))


def test_races_as_the_property() -> None:
    result = found(bundled("locks/dekker-fence.sc"), Property.races)
    answers = table(result)
    assert (answers["gpu"], answers["sys"]) == (True, False)
    assert result.required == "no data race" or "race" in result.required


def test_golden(golden: Golden) -> None:
    lines = text(found(bundled("scopes/SB+fence.sc.gpu+fence.sc.sys")), Style(False))
    lines += text(found(bundled("bugs/flashinfer-topk-missing-bar-fixed")), Style(False))
    golden("scopes.txt", "\n".join(line for line in lines if not line.startswith("Time ")) + "\n")


def test_a_race_in_an_execution_that_never_ends() -> None:
    """P1 spins for ever behind its store, so that no execution with the race reaches its end."""
    test = parse_one(
        """PTX spin
{ .global .u32 d = 0; .global .u32 f = 0; .global .u32 g = 0; }
P0 @ cta 0 { st.global.u32 [d], 1; st.relaxed.gpu.global.u32 [g], 1; }
P1 @ cta 1 {
  ld.relaxed.gpu.global.u32 r1, [g];
  setp.eq.u32 q, r1, 0;
  @q bra E;
  st.global.u32 [d], 2;
L:
  ld.relaxed.gpu.global.u32 r0, [f];
  setp.eq.u32 p, r0, 0;
  @p bra L;
E:
}
"""
    )
    result = scopes(test, model_named("ptx-8.5"), wanted=Property.races)
    assert result.placements[0].holds is False
    assert not result.narrowings


@pytest.mark.parametrize(
    "code",
    ["wgmma.fence.sync.aligned", "wgmma.commit_group.sync.aligned", "tcgen05.wait::st.sync.aligned"],
)
def test_nobody_joins_a_warp_that_executes_something_together(code: str) -> None:
    """A thread that has no such instruction would take the meaning from the program (9.7.16)."""
    body = MP.format("cta 0, warp 0", "cta 1", "gpu", "gpu").replace("PTX MP\n", "PTX MP\nISA=8.6\n")
    test = parse_one(body.replace("st.global.u32 [data], 1 ", f"{code} | ;\n st.global.u32 [data], 1 "))
    rows = table(found(test))
    assert isinstance(rows["warp"], str) and "warp" in rows["warp"]
    assert rows["cta"] is True
