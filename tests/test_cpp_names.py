"""Names of C++ in modules: what they stand for, and that launches and results use them."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from ptxmm.analysis.outcomes import check
from ptxmm.errors import PtxmmError
from ptxmm.formats import parse
from ptxmm.formats.modules.demangle import demangled, parameters, qualified
from ptxmm.formats.modules.extract import skeleton
from ptxmm.formats.modules.names import matching, titles
from ptxmm.program.test import Test
from tests.support import ROOT, model_named

NAMES = {
    # What nvcc 13.0 makes of templates over types, values, packs, templates, lambdas, pointers; of static and unnamed.
    "_Z1kPi": "k",
    "_ZN2ns6kernelIfLi4ELb1EJidEEEvPT_DpT2_": "ns::kernel<float, 4, true, int, double>",
    "_ZN2ns6kernelImLi8ELb0EJEEEvPT_DpT2_": "ns::kernel<unsigned long, 8, false>",
    "_ZN2ns2k2ILNS_1EE1ENS_2Op2InEEEvT0_IiE": "ns::k2<(ns::E)1, ns::Op::In>",
    "_ZN2ns5applyIZ4hostPiEUliE_EEvT_S1_": "ns::apply<host::{lambda(int)#1}>",
    "_ZN36_GLOBAL__N__81c2f8b8_4_k_cu_884ad2bb4anonEPFiiERA4_i": "(anonymous namespace)::anon",
    "_ZN34_INTERNAL_81c2f8b8_4_k_cu_884ad2bb2ns6hiddenE": "ns::hidden",
    "_Z3ptrIXadL_Z2glEEEvv": "ptr<&gl>",
    "_ZZN2ns6kernelIfLi4ELb1EJidEEEvPT_DpT2_E1s": "ns::kernel<float, 4, true, int, double>::s",
    "_ZZ9lastBlockPKfPfi4PairE4part": "lastBlock::part",
    "_ZZ1kvE1s_0": "k::s",
    "_ZZ1kvE1s__11_": "k::s",
    "_ZN3FooclIiEEvT_": "Foo::operator()<int>",
    "_Z1kILin3ELj7ELm2ELc65EEvv": "k<-3, 7u, 2ul, (char)65>",
    "_Z1kIPKcRViOfS1_EvT_": "k<char const*, int volatile&, float&&, char const*>",
    "_Z1kISt4pairIiN1a1bEES2_ES2_v": "k<std::pair<int, a::b>, a::b>",
    "_Z1kI13__nv_bfloat16N4cute5tupleIJNS1_1CILi8EEES4_EEEEvv":
        "k<__nv_bfloat16, cute::tuple<cute::C<8>, cute::C<8>>>",
    "_ZN1aB3v121kEv": "a[abi:v12]::k",
}  # fmt: skip
NOT_READ = [
    "k", "_Zk", "_Z", "_ZN", "_ZN1a", "_Z5kPi", "_Z1kILi3E", "_Z1kIXplLi1ELi2EEEvv", "_Z1kIT_Evv",
    "_Z1kIPFviEEvv", "_ZplRK1AS1_", "_Z" + "N" * 5000, "_Z1kI" + "P" * 4000, "_ZZ1kvE", "_Z0a", "_ZS_", "_Z1kIS_",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_names(name: str) -> None:
    assert demangled(name) == NAMES[name]


@pytest.mark.parametrize("name", NOT_READ)
def test_names_that_stay(name: str) -> None:
    assert demangled(name) is None


@pytest.mark.parametrize(
    ("name", "types"),
    [
        ("_Z1kPi", "int*"), ("_Z1kv", ""), ("_ZN2ns6kernelIfLi4ELb1EJidEEEvPT_DpT2_", "float*, int, double"),
        ("_ZN2ns6kernelImLi8ELb0EJEEEvPT_DpT2_", "unsigned long*"), ("_Z1kIPKcRViOfS1_EvT_", "char const*"),
        ("_Z1kISt4pairIiN1a1bEES2_ES2_v", ""), ("_ZZ9lastBlockPKfPfi4PairE4part", "float const*, float*, int, Pair"),
        ("_ZN1AIiE1fEPS0_i", "A<int>*, int"), ("_Z1kPFviE", None), ("_Z1kRA4_i", None), ("k", None), ("_Z1kP", None),
    ],
)  # fmt: skip
def test_types_of_parameters(name: str, types: str | None) -> None:
    assert parameters(name) == types


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("ns::v == 1", 5), ("::v == 1", 3), ("v == 1", 0), ("k<float>::tile[0]", 14), ("k<a::b, 2>(int*)::tile", 22),
        ("k()::tile", 9), ("k(int)", 0), ("(anonymous namespace)::v)", 24), ("(a == 1)", 0), ("counter<3> == 4", 10),
        ("x<y>z", 0), ("ns::v<3", 5), ("ns::v<3 /\\ w>2", 5), ("cta 1:s", 0), ("P0:r1", 0), ("ns:: v", 0),
        ("a::operator()<int>::s", 21), ("k<((((", 0), ("", 0),
    ],
)  # fmt: skip
def test_where_a_qualified_name_ends(text: str, length: int) -> None:
    assert qualified(text) == length
    assert qualified(f"~{text}", 1) == 1 + length


@pytest.mark.skipif(shutil.which("c++filt") is None, reason="no c++filt")
def test_the_names_of_all_modules() -> None:
    """They are what binutils make of them, but for parameters, and blanks between closing brackets."""
    texts = [path.read_text() for folder in ("cuda", "modules") for path in (ROOT / "tests" / folder).rglob("*.ptx")]
    names = sorted({name for text in texts for name in re.findall(r"\b_Z\w+", text) if "_param_" not in name})
    answer = subprocess.run(["c++filt", "-p"], input="\n".join(names), capture_output=True, text=True, check=True)
    read = 0
    for name, known in zip(names, answer.stdout.splitlines(), strict=True):
        found = demangled(name)
        if found is None:
            assert re.search(r"[CD][0-9]", name), name  # constructors are not read
            continue
        read += 1
        inside = re.sub(r"(?<=\w|>)\((?!anonymous)[^()]*\)(?=::)", "", known)  # parameters of what a name is local to
        assert found.replace(" ", "") == re.sub(r"_INTERNAL_\w+::", "", inside).replace(" ", ""), name
    assert read > 100


ENTRIES = ["_ZN1a1kIfEEvPT_", "_ZN1b1kIfEEvPT_", "_ZN1b1kIiLj4EEEvPT_", "plain", "_Z1gPi", "_Z1gPf"]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("plain", [3]), ("_Z1gPf", [5]), ("g", [4, 5]), ("a::k<float>", [0]), ("::a::k<float>", [0]), ("a::k", [0]),
        ("k<float>", [0, 1]), ("b::k", [1, 2]), ("k", [0, 1, 2]), ("b::k<int, 4u>", [2]), ("b::k<int,4>", [2]),
        ("k< int , 4 >", [2]), ("g(int *)", [4]), ("g(float*)", [5]), ("g(double*)", [4, 5]),
        ("a::k<float>(float*)", [0]), ("::b::k<int, 4u>()", [2]),
        ("k<int>", []), ("K", []), ("::k", [0, 1, 2]), ("", []), ("c::k", []),
    ],
)  # fmt: skip
def test_what_a_launch_may_call_a_kernel(given: str, found: list[int]) -> None:
    assert matching(given, ENTRIES) == [ENTRIES[number] for number in found]


def test_other_ways_to_write_a_name() -> None:
    names = ["_Z1kPKj", "_Z1kPj", "_ZN12_GLOBAL__N_11vE", "_ZN1a12_GLOBAL__N_11vE", "_ZN1b2x1E", "_ZN1b3x1uE"]
    assert matching("k(const unsigned*)", names) == names[:1]
    assert matching("k(unsigned *)", names) == names[1:2]
    assert matching("v", names) == names[2:4]
    assert matching("::v", names) == names[2:3]
    assert matching("a::v", names) == matching("a::(anonymous namespace)::v", names) == names[3:4]
    assert matching("b::x1", names) == names[4:5]
    assert list(titles([*names[:2], "_Z1kPFviE"]).values()) == ["k(unsigned int const*)", "k(unsigned int*)", "k"]


# -- in a launch ---------------------------------------------------------------------------------------------------

HEAD = ".version 8.5\n.target sm_90\n.address_size 64\n"


def kernel(name: str, body: str) -> str:
    return f".visible .entry {name}(.param .u64 {name}_p)\n{{\n.reg .b32 %r<4>; .reg .b64 %rd<4>;\n{body}\nret;\n}}\n"


def stores(name: str, variable: str, value: int) -> str:
    body = f"st.shared.u32 [{variable}], {value}; ld.shared.u32 %r1, [{variable}];\n"
    take = f"ld.param.u64 %rd1, [{name}_p]; st.global.u32 [%rd1], %r1;"
    return kernel(name, f".shared .align 4 .b8 {variable}[4];\n{body}{take}")


def launched(toml: str, text: str) -> Test:
    comments = "".join(f"// ptxmm: {row}\n" for row in toml.splitlines())
    (test,) = parse(comments + HEAD + text, "k.ptx")
    return test


ONE = stores("_Z1kIfEvPT_", "_ZZ1kIfEvPT_E4tile", 5)
OUT = 'args = ["out"]\nobjects.out = "u32"\n'


@pytest.mark.parametrize("called", ["tile", "_ZZ1kIfEvPT_E4tile"])
def test_variables_in_claims_and_objects(called: str) -> None:
    """Both names mean the variable, and results have the short one."""
    toml = f'kernel = "k<float>"\n{OUT}objects.{called} = {{ type = "u32" }}\n'
    toml += f'[check]\ncondition = "forall ({called} == 5)"'
    test = launched(toml, ONE)
    assert test.name == "k<float>"
    assert list(test.objects) == ["out", "tile"] or list(test.objects) == ["tile", "out"]
    result = check(test, model_named("ptx-8.5"))
    assert result.holds is True
    assert [dict(item.memory) for item in result.outcomes] == [{"tile": 5}]


def test_objects_of_the_launch_keep_their_name() -> None:
    """An object that an argument points to is no variable of the module, which has a longer name then."""
    toml = 'args = ["tile"]\nobjects.tile = "u32"\n[check]\ncondition = "forall (tile == 5 /\\\\ {} == 5)"'
    for called in ("_ZZ1kIfEvPT_E4tile", "k::tile", "k<float>(float*)::tile"):
        test = launched(toml.format(called), ONE)
        assert {name: item.space for name, item in test.objects.items()} == {"tile": "global", "k::tile": "shared"}


def test_arguments_and_addresses() -> None:
    """Arguments, initial values and conditions point to variables by either name."""
    before = ".global .align 4 .u32 _ZN2ns1vE = 3;\n.global .align 8 .u64 _ZN2ns1pE = _ZN2ns1vE;\n"
    body = "ld.param.u64 %rd1, [_Z1kPj_p]; ld.global.u64 %rd2, [_ZN2ns1pE]; ld.global.u32 %r1, [%rd2];"
    body += "ld.global.u64 %rd3, [q]; st.global.u32 [%rd3], %r1; st.global.u32 [%rd1+4], 9;"
    text = before + ".global .align 8 .u64 q;\n.global .align 4 .b8 _ZN2ns1oE[8];\n" + kernel("_Z1kPj", body)
    toml = 'args = ["o"]\nobjects.q = { init = ["v"] }\nobjects.v = { init = 4 }\n'
    test = launched(toml + '[check]\ncondition = "forall (v == 4 /\\\\ p == &v /\\\\ q == &v)"', text)
    assert {"v", "p", "q"} <= test.objects.keys()
    assert check(test, model_named("ptx-8.5")).holds is True


def test_two_of_one_name() -> None:
    """Where two variables of a kernel would be called the same, more of their names is said."""
    text = ".global .u32 _ZN1a1vE;\n.global .u32 _ZN1b1vE;\n.global .u32 w;\n.global .u32 _ZN1a1wE;\n"
    body = (
        "st.global.u32 [_ZN1a1vE], 1; st.global.u32 [_ZN1b1vE], 2; st.global.u32 [w], 3; st.global.u32 [_ZN1a1wE], 4;"
    )
    test = launched(OUT, text + kernel("k", body))
    assert set(test.objects) == {"a::v", "b::v", "w", "a::w", "out"}
    claim = OUT + '[check]\ncondition = "forall (a::v == 1 /\\\\ ::b::v == 2 /\\\\ w == 3 /\\\\ a::w == 4)"'
    assert check(launched(claim, text + kernel("k", body)), model_named("ptx-8.5")).holds is True
    with pytest.raises(PtxmmError, match=r"2 variables are called `v`\n(.|\n)*say which: a::v or b::v"):
        launched(OUT + '[check]\ncondition = "exists (v == 1)"', text + kernel("k", body))


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ('args = ["a::x"]', "no variable is called `a::x`(.|\n)*did you mean `a::v`"),
        ('args = ["out"]\nobjects."c::d::zz" = "u32"', "no variable is called `c::d::zz`(.|\n)*there are a::v, b::v"),
        ('args = ["out"]\nobjects.v = { init = 3 }', "2 variables are called `v`"),
        ('args = ["v"]', "2 variables are called `v`"),
    ],
)
def test_names_that_mean_none_or_several(toml: str, message: str) -> None:
    text = ".global .u32 _ZN1a1vE;\n.global .u32 _ZN1b1vE;\n" + kernel("k", "st.global.u32 [_ZN1a1vE], 1;")
    with pytest.raises(PtxmmError, match=message) as caught:
        launched(toml, text)
    assert caught.value.line in (1, 2) and caught.value.source


def test_qualified_names_in_arguments_and_objects() -> None:
    text = ".global .u32 _ZN1a1vE;\n.global .u32 _ZN1b1vE;\n.global .align 8 .u64 _Z1pILi3EE;\n"
    text += kernel("k", "ld.param.u64 %rd1, [k_p]; st.global.u32 [%rd1], 7;")
    toml = 'args = ["a::v"]\nobjects."b::v" = { init = 5 }\nobjects."p<3>" = { init = ["::b::v"] }\n[check]\n'
    test = launched(toml + 'condition = "forall (a::v == 7 /\\\\ b::v == 5 /\\\\ p<3> == &b::v)"', text)
    assert set(test.objects) == {"a::v", "b::v", "p"}
    assert check(test, model_named("ptx-8.5")).holds is True


def test_two_kernels_with_variables_of_one_name() -> None:
    text = stores("_Z1aPj", "_ZZ1aPjE1s", 1) + stores("_Z1bPj", "_ZZ1bPjE1s", 2)
    assert "s" in launched(f'kernel = "a"\n{OUT}', text).objects
    both = 'args = ["out"]\n[[grids]]\nkernel = "a"\n[[grids]]\nkernel = "b"\n[objects]\nout = "u32"\n[check]\n'
    test = launched(both + 'condition = "forall (s_grid0 == 1 /\\\\ s_grid1 == 2 /\\\\ out == 2)"', text)
    assert check(test, model_named("ptx-8.5")).holds is True
    with pytest.raises(PtxmmError, match="there are 2 variables `s`"):
        launched(both + 'condition = "forall (_ZZ1aPjE1s == 1)"', text)


def test_a_variable_of_the_module_is_one_for_two_kernels() -> None:
    """It has one name, although one of the kernels has another variable of that name."""
    text = ".global .u32 _ZN2ns1sE;\n" + stores("_Z1aPj", "_ZZ1aPjE1s", 1)
    text += kernel("_Z1bPj", "st.global.u32 [_ZN2ns1sE], 3;")
    toml = 'args = ["out"]\n[[grids]]\nkernel = "b"\n[[grids]]\nkernel = "a"\n[objects]\nout = "u32"\n'
    assert set(launched(toml, text).objects) == {"ns::s", "a::s", "out"}


def test_a_host_thread_has_the_names_that_it_uses() -> None:
    text = ".global .u32 _ZN2ns1vE;\n" + kernel("k", "st.relaxed.sys.global.u32 [_ZN2ns1vE], 1;")
    for called in ("v", "_ZN2ns1vE"):
        toml = f'{OUT}[host]\nH0 = "ld.relaxed.sys.u32 r0, [{called}];"\n[check]\ncondition = "forall (H0:r0 <= 1)"'
        assert called in launched(toml, text).objects


def test_the_mistakes_name_kernels_as_they_are_called() -> None:
    text = kernel("_ZN1a1kEPj", "") + kernel("_ZN1b1kEPj", "")
    for toml, message in (
        ('kernel = "k"', "hint: say which: a::k or b::k"),
        ('kernel = "a::q"', "hint: did you mean `a::k`?"),
        ('kernel = "nothing"', "hint: its kernels: a::k, b::k"),
        ("grid = 1", 'hint: say which: kernel = "a::k" or "b::k"'),
        ('kernel = "a::k"', "`a::k` has 1 parameters, 0 arguments are given"),
    ):
        with pytest.raises(PtxmmError, match=re.escape(message)):
            launched(toml, text)


def test_extracted() -> None:
    """The title is the name in C++, and registers are not called as a variable is."""
    text = stores("_ZN1a1kIfLi2EEEvPT_", "_ZZN1a1kIfLi2EEEvPT_E2r0", 5)
    test = launched(
        'kernel = "a::k<float, 2>"\n' + OUT + '[check]\ncondition = "forall (out == 5 /\\\\ r0 == 5)"', text
    )
    (back,) = parse(skeleton(test), "k.litmus")
    assert back.name == "a::k<float, 2>"
    assert check(back, model_named("ptx-8.5")).holds is True


def test_extracted_names_of_several_parts() -> None:
    """A litmus test has words for them."""
    text = ".global .u32 _ZN1a1vE;\n.global .u32 _ZN1b1vE;\n.global .u32 a_v;\n"
    text += kernel("k", "st.global.u32 [_ZN1a1vE], 1; st.global.u32 [_ZN1b1vE], 2; st.global.u32 [a_v], 3;")
    claim = '[check]\ncondition = "forall (a::v == 1 /\\\\ b::v == 2 /\\\\ a_v == 3)"'
    (back,) = parse(skeleton(launched(OUT + claim, text)), "k.litmus")
    assert {"_a_v", "b_v", "a_v"} <= back.objects.keys()
    assert check(back, model_named("ptx-8.5")).holds is True
