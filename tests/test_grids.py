"""Launches of several grids: on one stream or programmatic, on one or several GPUs, with one set of claims."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxmm.analysis.outcomes import check
from ptxmm.analysis.result import Value
from ptxmm.errors import PtxmmError
from ptxmm.formats import parse, read
from ptxmm.formats.modules.extract import skeleton
from ptxmm.formats.modules.launch import parse_launches
from ptxmm.formats.modules.read import kernels, parse_ptx
from ptxmm.program.test import Test
from tests.support import ROOT, model_named

HEAD = ".version 8.5\n.target sm_90\n.address_size 64\n"
TWO = '[[grids]]\nkernel = "a"\n[[grids]]\nkernel = "b"\n'


def entry(name: str, body: str, parameters: int = 0) -> str:
    """A kernel; %rd0, %rd1, ... are its parameters."""
    loads = "".join(f"ld.param.u64 %rd{i}, [{name}_p{i}];\n" for i in range(parameters))
    given = ", ".join(f".param .u64 {name}_p{i}" for i in range(parameters))
    return f".visible .entry {name}({given})\n{{\n.reg .b32 %r<8>; .reg .b64 %rd<8>;\n{loads}{body}\nret;\n}}\n"


def module(*entries: str, before: str = "") -> str:
    return HEAD + before + "".join(entries)


def launched(toml: str, text: str) -> Test:
    comments = "".join(f"// ptxmm: {row}\n" for row in toml.splitlines())
    (test,) = parse(comments + text, "k.ptx")
    return test


def states(test: Test) -> set[tuple[tuple[str, Value], ...]]:
    """All final states of what the condition names."""
    found = check(test, model_named("ptx-8.5"))
    assert found.status == "complete"
    return {tuple((str(name), value) for name, value in item.memory.items()) for item in found.outcomes}


# -- mistakes ------------------------------------------------------------------------------------------------------

MISTAKES = [
    ("grids = 3", 1, 1, 6, "`grids` is an array of tables", "write [[grids]]"),
    ("[grids]\ngpu = 1", 1, 1, 7, "`grids` is an array of tables", "write [[grids]]"),
    ("grids = []", 1, 1, 6, "`grids` is empty", "write [[grids]] and what is said of it, or leave it out"),
    ("[[grids]]\n" * 65, 1, 2, 7, "a launch has 1 to 64 grids, not 65", None),
    ("gpu = 1", 1, 1, 4, "`gpu` is said of a grid", "write it below a [[grids]]"),
    ('after = "stream"', 1, 1, 6, "`after` is said of a grid", "write it below a [[grids]]"),
    ("[[grids]]\ngpu = 64", 2, 1, 4, "`gpu` is a number from 0 to 63", None),
    ("[[grids]]\ngpu = -1", 2, 1, 4, "`gpu` is a number from 0 to 63", None),
    ('[[grids]]\ngpu = "0"', 2, 1, 4, "`gpu` is a number from 0 to 63", None),
    (
        '[[grids]]\n[[grids]]\nafter = "event"', 3, 1, 6, '`after` is "stream" or "programmatic"',
        "when those before it on its GPU have ended, or as a programmatic launch",
    ),
    (
        '[[grids]]\n[[grids]]\ngpu = 1\nafter = "programmatic"', 4, 1, 6, "no grid of GPU 1 comes before this one",
        "the grids of a GPU stand in the order of their launch",
    ),
    ("[[grids]]\nblok = 2", 2, 1, 5, "`blok` is not part of a grid", "did you mean `block`?"),
    (
        "[[grids]]\nzzz = 2", 2, 1, 4, "`zzz` is not part of a grid",
        "known are after, args, block, cluster, gpu, grid, kernel, shared, threads",
    ),
    (
        '[[grids]]\n[grids.check]\nraces = "none"', 2, 1, 13,
        "`check` is said of the whole launch, not of a grid", "write it before the first [[grids]]",
    ),
    (
        "[[grids]]\nname = 'x'", 2, 1, 5,
        "`name` is said of the whole launch, not of a grid", "write it before the first [[grids]]",
    ),
    ("block = 2\n[[grids]]\n[[grids]]\nblock = 1025", 4, 1, 6, "a CTA has at most 1024 threads, not 1025", None),
    ("[[grids]]\nblock = 2\n[[grids]]\nblock = 0", 4, 1, 6, "`block` is one to three positive numbers",
     "as in block = 2 or block = [2, 1, 1]"),
    ("grid = 3\n[[grids]]\n[[grids]]\ncluster = 2", 4, 1, 8, "the grid is not made of whole clusters", None),
    ("block = 600\n[[grids]]\n[[grids]]\n[check]", 2, 2, 7,
     "1200 threads run in 2 grids; at most 1024 are supported", 'choose some: threads = "lane 0"'),
    ('[[grids]]\n[[grids]]\nthreads = "lane 4"', 3, 1, 8, "there is no lane 4: they go from 0 to 0", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "column", "width", "message", "hint"), MISTAKES)
def test_mistakes(text: str, line: int, column: int, width: int, message: str, hint: str | None) -> None:
    with pytest.raises(PtxmmError) as caught:
        parse_launches(text, "k.toml")
    error = caught.value
    assert (error.kind, error.message, error.hint, error.file) == ("format", message, hint, "k.toml")
    assert (error.line, error.column, error.width) == (line, column, width)


STORES = [entry("a", "st.global.u32 [%rd0], 1;", 1), entry("b", "st.global.u32 [%rd0], 2;", 1)]
V = [entry("a", "st.global.u32 [v], 1;"), entry("b", "st.global.u32 [v], 2;")]
X = '[objects]\nx = "u32"\n'


@pytest.mark.parametrize(
    ("toml", "text", "line", "message", "hint"),
    [
        (
            'args = ["x"]\n[[grids]]\nkernel = "a"\n[[grids]]\n' + X, module(*STORES), 1,
            "the module has 2 kernels", 'say which: kernel = "a" or "b"',
        ),
        (
            'args = ["x"]\n[[grids]]\nkernel = "a"\n[[grids]]\nkernel = "c"\n' + X, module(*STORES), 5,
            "the module has no kernel `c`", "its kernels: a, b",
        ),
        (
            '[[grids]]\nkernel = "a"\nargs = ["x"]\n[[grids]]\nkernel = "b"\nargs = ["x", 1]\n' + X,
            module(*STORES), 6, "`b` has 1 parameters, 2 arguments are given", "its parameters: .u64",
        ),
        (
            '[[grids]]\nkernel = "a"\nargs = ["x"]\n[[grids]]\nkernel = "b"\nargs = ["y"]\n' + X,
            module(*STORES), 6, "the argument `y` is no object of this launch", '[objects] y = { type = "u32" }',
        ),
        (
            f"{TWO}gpu = 1\n[check]\ncondition = 'exists (v == 1)'",
            module(*V, before=".global .u32 v;\n"),
            7, "there are 2 variables `v`", "name one of them: v_gpu0, v_gpu1",
        ),
        (
            f"{TWO}gpu = 1\n[objects]\nv_gpu0 = 'u32'",
            module(*V, before=".global .u32 v;\n"),
            1, "`v` of several grids is called `v_gpu0`, which is the name of another variable", "rename the other one",
        ),
        (
            f"{TWO}", module(*(entry(k, "st.shared.u32 [s], 1; ld.shared.u32 %r1, [s]; st.shared.u32 [s+4], %r1;")
                              for k in "ab"), before=".extern .shared .u32 s[];\n"),
            1, "`s_grid0` is dynamic shared memory, of which this launch has none", "say how many bytes: shared = 1024",
        ),
    ],
)  # fmt: skip
def test_what_does_not_fit(toml: str, text: str, line: int, message: str, hint: str | None) -> None:
    with pytest.raises(PtxmmError) as caught:
        launched(toml, text)
    assert (caught.value.message, caught.value.hint, caught.value.line) == (message, hint, line)


# -- what they mean ------------------------------------------------------------------------------------------------


def test_places() -> None:
    """Grids are numbered in the order of the file; what stands before the first holds for all."""
    toml = (
        'args = ["x"]\nblock = 2\n[[grids]]\nkernel = "a"\n[[grids]]\nkernel = "b"\nafter = "programmatic"\n'
        'block = 1\n[[grids]]\nkernel = "a"\ngpu = 1\ngrid = 2\nthreads = "lane 1"\n' + X
    )
    test = launched(toml, module(*STORES))
    assert test.name == "a, b"
    places = [(t.name, p.gpu, p.grid, p.cta, p.overlap) for t in test.threads for p in [t.placement]]
    assert places == [
        ("P0", 0, 0, 0, False), ("P1", 0, 0, 0, False), ("P2", 0, 1, 0, True), ("P3", 1, 2, 0, False),
        ("P4", 1, 2, 1, False),
    ]  # fmt: skip
    assert test.claims is not None
    assert test.claims.remarks == (
        "5 of 7 threads run: P0 is thread 0 of CTA 0 of grid 0 (a on GPU 0), P1 is thread 1 of CTA 0 of grid 0 "
        "(a on GPU 0), P2 is thread 0 of CTA 0 of grid 1 (b on GPU 0), P3 is thread 1 of CTA 0 of grid 2 (a on GPU 1), "
        "P4 is thread 1 of CTA 1 of grid 2 (a on GPU 1)",
    )


@pytest.mark.parametrize(
    ("second", "last"),
    [("", {2}), ('after = "programmatic"\n', {1, 2}), ("gpu = 1\n", {1, 2}), ('after = "stream"\n', {2})],
)
def test_the_order_of_two_grids(second: str, last: set[int]) -> None:
    """Two weak stores: the later one wins only where something orders the grids (semantics A42)."""
    toml = f'args = ["x"]\n{TWO}{second}{X}[check]\ncondition = "exists (x == 0)"'
    assert states(launched(toml, module(*STORES))) == {(("x", value),) for value in last}


@pytest.mark.parametrize(("waits", "last"), [(True, {3}), (False, {2, 3})])
def test_waiting_for_the_grid_before(waits: bool, last: set[int]) -> None:
    """``griddepcontrol.wait`` orders what comes behind it, not what stands ahead of it (9.7.14.13)."""
    rows = ["ld.global.u32 %r1, [%rd0]; add.u32 %r1, %r1, 2; st.global.u32 [%rd1], %r1;", "griddepcontrol.wait;"]
    body = "".join(reversed(rows) if waits else rows)
    toml = 'args = ["x"]\n[[grids]]\nkernel = "a"\n[[grids]]\nkernel = "b"\nargs = ["x", "y"]\nafter = "programmatic"\n'
    toml += '[objects]\nx = "u32"\ny = "u32"\n[check]\ncondition = "exists (y == 0)"'
    found = states(launched(toml, module(STORES[0], entry("b", body, 2))))
    assert {dict(state)["y"] for state in found} == last


def test_variables_of_the_module_are_one_for_each_gpu() -> None:
    """Each GPU has its own, with what points to it; managed and unified ones are one (5.4.8)."""
    before = ".global .u32 v = 5;\n.global .u64 p = v;\n.global .attribute(.managed) .u32 m = 6;\n"
    body = "ld.global.u64 %rd1, [p]; st.global.u32 [%rd1], {n}; st.relaxed.sys.global.u32 [m], {n};"
    entries = [entry(name, body.format(n=n)) for n, name in enumerate("ab", 1)]
    toml = f"{TWO}gpu = 1\n[check]\ncondition = 'exists (v_gpu0 == 0 /\\ v_gpu1 == 0 /\\ m == 0)'"
    test = launched(toml, module(*entries, before=before))
    assert list(test.objects) == ["v_gpu0", "m", "v_gpu1"]  # what nobody changes is not read
    found = [dict(state) for state in states(test)]
    assert {(s["v_gpu0"], s["v_gpu1"], s["m"]) for s in found} == {(1, 2, 1), (1, 2, 2)}


def test_one_gpu_has_one_variable() -> None:
    entries = [entry("a", "st.global.u32 [v], 1;"), entry("b", "ld.global.u32 %r1, [v]; st.global.u32 [%rd0], %r1;", 1)]
    toml = f'{TWO}args = ["x"]\n{X}[check]\ncondition = "exists (x == 0)"'
    assert states(launched(toml, module(*entries, before=".global .u32 v;\n"))) == {(("x", 1),)}


def test_shared_memory_of_two_kernels() -> None:
    """What two kernels declare by one name are two variables, each of its own size."""
    shared = ".shared .align 4 .b8 s[{}];\n"
    bodies = [
        shared.format(4) + "st.shared.u32 [s], 1; ld.shared.u32 %r1, [s]; st.global.u32 [%rd0], %r1;",
        shared.format(8) + "st.shared.u64 [s], 2; ld.shared.u32 %r1, [s+4]; st.global.u32 [%rd0+4], %r1;",
    ]
    entries = [entry(name, body, 1) for name, body in zip("ab", bodies, strict=True)]
    toml = f'args = ["x"]\n{TWO}[objects]\nx = {{ type = "u32", count = 2, init = 9 }}\n[check]\n'
    test = launched(toml + "condition = 'exists (x[0] == 0 /\\ x[1] == 0 /\\ s_grid1[0] == 2)'", module(*entries))
    assert {name: item.size for name, item in test.objects.items()} == {"x": 8, "s_grid0": 4, "s_grid1": 8}
    assert states(test) == {(("x[0]", 1), ("x[1]", 0), ("s_grid1[0]", 2))}


def test_one_kernel_twice_keeps_its_names() -> None:
    body = ".shared .u32 s;\nst.shared.u32 [s], 1; ld.shared.u32 %r1, [s]; st.global.u32 [%rd0], %r1;"
    toml = 'kernel = "a"\nargs = ["x"]\n[[grids]]\n[[grids]]\n' + X
    test = launched(toml, module(entry("a", body, 1)))
    assert sorted(test.objects) == ["grid 0, cta 0:s", "grid 1, cta 0:s", "x"]


def test_dynamic_shared_memory_of_two_sizes() -> None:
    body = "st.shared.u32 [s], 1; ld.shared.u32 %r1, [s]; st.global.u32 [%rd0], %r1;"
    toml = 'kernel = "a"\nargs = ["x"]\n[[grids]]\nshared = 4\n[[grids]]\nshared = 8\n' + X
    test = launched(toml, module(entry("a", body, 1), before=".extern .shared .u32 s[];\n"))
    assert {name: item.size for name, item in test.objects.items()} == {"x": 4, "s_grid0": 4, "s_grid1": 8}


def test_parameters_of_two_grids() -> None:
    """A parameter whose address is taken is another one in each grid."""
    body = "mov.u64 %rd1, a_p0; ld.param.u64 %rd2, [%rd1]; st.global.u32 [%rd2], 1;"
    text = module(f".visible .entry a(.param .u64 a_p0)\n{{\n.reg .b64 %rd<8>;\n{body}\nret;\n}}\n")
    toml = 'kernel = "a"\n[[grids]]\nargs = ["x"]\n[[grids]]\nargs = ["y"]\n[objects]\nx = "u32"\ny = "u32"\n'
    test = launched(toml + '[check]\ncondition = "exists (x == 0 /\\\\ y == 0)"', text)
    assert states(test) == {(("x", 1), ("y", 1))}


def test_grid_synchronization_of_two_grids() -> None:
    """Each grid has a workspace of its own: threads of one do not wait for those of the other."""
    source = ROOT / "tests" / "cuda" / "grid_sync.ptx"
    toml = (
        'kernel = "exchange"\ngrid = 2\n[[grids]]\nargs = ["x", "y"]\n[[grids]]\nargs = ["x2", "y2"]\n[objects]\n'
        + "".join(f'{name} = {{ type = "u32", count = 2 }}\n' for name in ("x", "y", "x2", "y2"))
        + "[check]\ncondition = 'forall (y[0] == 2 /\\ y[1] == 1 /\\ y2[0] == 2 /\\ y2[1] == 1)'"
    )
    test = launched(toml, source.read_text())
    assert {"grid_workspace_grid0", "grid_workspace_grid1"} <= test.objects.keys()
    assert check(test, model_named("ptx-8.5")).holds is True


def test_registers_without_a_value_of_two_kernels() -> None:
    """They are variables of different widths, although both are called %r1."""
    first = ".visible .entry a(.param .u64 a_p0)\n{\n.reg .b32 %r1; .reg .b64 %rd0;\nld.param.u64 %rd0, [a_p0];\n"
    second = ".visible .entry b(.param .u64 b_p0)\n{\n.reg .b64 %r1; .reg .b64 %rd0;\nld.param.u64 %rd0, [b_p0];\n"
    text = HEAD + first + "st.global.u32 [%rd0], %r1;\nret;\n}\n" + second + "st.global.u64 [%rd0], %r1;\nret;\n}\n"
    test = launched(
        f'{TWO}args = ["y"]\n'.replace('"a"\n', '"a"\nargs = ["x"]\n') + '[objects]\nx = "u32"\ny = "u64"', text
    )
    assert {name: item.size for name, item in test.objects.items()} == {
        "x": 4, "y": 8, "uninit_r1": 4, "uninit_r1_": 8,
    }  # fmt: skip


def test_registers_in_conditions() -> None:
    """Threads are numbered through all grids."""
    toml = f'args = ["x"]\n{TWO}{X}[check]\ncondition = "forall (P1:%r1 == 1)"'
    text = module(STORES[0], entry("b", "ld.global.u32 %r1, [%rd0];", 1))
    assert check(launched(toml, text), model_named("ptx-8.5")).holds is True


def test_several_launches() -> None:
    """``[[launch]]`` takes grids of its own, or those of all launches."""
    first, second = parse_launches(
        '[[grids]]\nkernel = "a"\n[[grids]]\nkernel = "b"\n[[launch]]\nblock = 2\n'
        '[[launch]]\n[[launch.grids]]\nkernel = "c"\nblock = 3\n[[launch.grids]]\nkernel = "d"\ngpu = 1\n',
        "k.toml",
    )
    assert [(g.number, g.kernel, g.block, g.gpu) for g in first.grids] == [
        (0, "a", (2, 1, 1), 0),
        (1, "b", (2, 1, 1), 0),
    ]
    assert [(g.number, g.kernel, g.block, g.gpu) for g in second.grids] == [
        (0, "c", (3, 1, 1), 0),
        (1, "d", (1, 1, 1), 1),
    ]


def test_places_of_several_launches() -> None:
    launch = "[[launch]]\n[[launch.grids]]\n"
    text = f"block = 1\n{launch}{launch}block = 2\n[[launch.grids]]\nblock = 0\n"
    with pytest.raises(PtxmmError) as caught:
        parse_launches(text, "k.toml")
    assert caught.value.line == 8


def test_chosen_threads_are_those_of_every_grid(tmp_path: Path) -> None:
    toml = f'block = 2\nargs = ["x"]\n{TWO}{X}'
    comments = "".join(f"// ptxmm: {row}\n" for row in toml.splitlines())
    (test,) = parse_ptx(comments + module(*STORES), "k.ptx", threads="thread 1")
    assert [(t.placement.grid, t.name) for t in test.threads] == [(0, "P0"), (1, "P1")]


def test_whole_launches_have_all_kernels(tmp_path: Path) -> None:
    """One tuple for each launch, one kernel for each grid, and no threads chosen."""
    path = tmp_path / "k.ptx"
    toml = f'block = 600\nargs = ["x"]\n{TWO}gpu = 1\n{X}'
    path.write_text("".join(f"// ptxmm: {row}\n" for row in toml.splitlines()) + module(*STORES))
    (found,) = kernels(path)
    assert [(k.name, k.grid.number, k.grid.gpu, k.grid.size, k.grid.threads) for k in found] == [
        ("a", 0, 0, 600, ()), ("b", 1, 1, 600, ()),
    ]  # fmt: skip
    assert found[0].variables["x"] == found[1].variables["x"]


@pytest.mark.parametrize("name", ["programmatic_launch.wrong_stored_first", "gpu_all_reduce", "stream_order"])
def test_extracted(name: str) -> None:
    """As a litmus file the threads are in the same grids, and the final states are the same."""
    (test,) = read(ROOT / "tests" / "cuda" / f"{name}.ptx")
    (back,) = parse(skeleton(test), "k.litmus")
    assert [t.placement for t in back.threads] == [t.placement for t in test.threads]
    assert states(back) == states(test)
