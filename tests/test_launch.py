"""Launch specifications: what they may say, each mistake with its message and place, and what users see of a kernel."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ptxmm.analysis.outcomes import check as decide
from ptxmm.cli.app import run
from ptxmm.errors import PtxmmError
from ptxmm.formats import parse, read
from ptxmm.formats.modules.extract import skeleton
from ptxmm.formats.modules.launch import Launch, has_comments, parse_launches
from ptxmm.program.shared.refusals import ABSENT
from ptxmm.program.test import Test
from tests.support import ROOT, model_named

Golden = Callable[[str, str], None]

HEAD = ".version 8.5\n.target sm_90\n.address_size 64\n"
ENTRY = """.visible .entry k(.param .u64 k_x, .param .u32 k_n)
{
  .reg .b64 %rd<3>;
  .reg .b32 %r<4>;
  ld.param.u64 %rd1, [k_x];
  ld.param.u32 %r1, [k_n];
  cvta.to.global.u64 %rd2, %rd1;
  st.global.u32 [%rd2], %r1;
  ret;
}
"""
MODULE = HEAD + ".global .align 4 .u32 counter = 3;\n" + ENTRY
GOOD = 'args = ["x", 1]\nobjects.x = "u32"\n'


def entry(parameters: str, body: str, name: str = "k", before: str = "") -> str:
    """A module of one kernel."""
    return (
        f"{HEAD}{before}.visible .entry {name}({parameters})\n{{\n  .reg .pred %p<4>;\n  .reg .b64 %rd<8>;\n"
        f"  .reg .b32 %r<8>;\n  .reg .f32 %f<4>;\n{body}  ret;\n}}\n"
    )


POINTER = ".param .u64 p0"
STORE = "  ld.param.u64 %rd1, [p0];\n  cvta.to.global.u64 %rd2, %rd1;\n  st.global.u32 [%rd2], {};\n"
ONE = STORE.format(1)
OBJECT = 'args = ["x"]\nobjects.x = "u32"\n'


def launched(toml: str, module: str = MODULE) -> Test:
    """The only test of a module whose comments are ``toml``."""
    comments = "".join(f"// ptxmm: {row}\n" for row in toml.splitlines())
    (test,) = parse(comments + module, "k.ptx")
    return test


def program(toml: str, module: str = MODULE) -> list[str]:
    """The instructions of the threads as they are written in the skeleton, without the places of the threads."""
    rows = skeleton(launched(toml, module)).split("}\n", 1)[1].splitlines()
    return [re.sub(r"\s+", " ", row).strip(" ;") for row in rows if row.endswith(";") and " @ " not in row]


def one(text: str, file: str = "k.toml") -> Launch:
    """The only launch of a text."""
    (found,) = parse_launches(text, file)
    return found


# -- mistakes in the specification itself --------------------------------------------------------------------------

# The text; kind, line, column and width of the mistake; the message; the hint.
SPECIFICATION = [
    ("", "format", 0, 0, 0, "the file is empty", None),
    ("\n# nothing\n", "format", 1, 1, 1, "there is no launch specification here", None),
    ("args = [", "format", 1, 1, 1, "this is not TOML: invalid value", None),
    ("grid = 1\ngrid = 2", "format", 2, 1, 1, "this is not TOML: cannot overwrite a value", None),
    ("grd = 2", "format", 1, 1, 4, "`grd` is not part of a launch specification", "did you mean `grid`?"),
    (
        "zzz = 2", "format", 1, 1, 4, "`zzz` is not part of a launch specification",
        "known are args, assume, block, check, cluster, grid, grids, host, kernel, launch, name, "
        "objects, shared, threads",
    ),
    ("block = [1024, 2]", "format", 1, 1, 6, "a CTA has at most 1024 threads, not 2048", None),
    ("grid = 65537", "format", 1, 1, 5, "at most 65536 CTAs are supported, not 65537", None),
    ("grid = 3\ncluster = 2", "format", 2, 1, 8, "the grid is not made of whole clusters", None),
    *(
        (f"grid = {value}", "format", 1, 1, 5, "`grid` is one to three positive numbers",
         "as in grid = 2 or grid = [2, 1, 1]")
        for value in ("0", "-1", "true", '"2"', "[]", "[1, 1, 1, 1]", "[2, 0]", "1.5")
    ),
    ("check = 1", "format", 1, 1, 6, "`check` is a table", "write [check]"),
    ("objects = []", "format", 1, 1, 8, "`objects` is a table", "write [objects]"),
    ("host = 3", "format", 1, 1, 5, "`host` is a table", "write [host]"),
    ("name = 1", "format", 1, 1, 5, "`name` is a string", None),
    ('kernel = ["k"]', "format", 1, 1, 7, "`kernel` is a string", None),
    ("shared = -1", "format", 1, 1, 7, "`shared` is a number from 0 to 1048576", None),
    ("shared = 1048577", "format", 1, 1, 7, "`shared` is a number from 0 to 1048576", None),
    ('[check]\ncond = "x"', "format", 2, 1, 5, "`cond` is not something to check", "did you mean `condition`?"),
    (
        'check.races = "all"', "format", 1, 1, 12, '`races` can only be "none"',
        "leave it out where races are no matter",
    ),
    ("[check]\nrobust = 1", "format", 2, 1, 7, "`robust` is true or false", None),
    ("[check]\nunroll = 1001", "format", 2, 1, 7, "`unroll` is a number from 0 to 1000", None),
    ("[check]\nunroll = true", "format", 2, 1, 7, "`unroll` is a number from 0 to 1000", None),
    ("[check]\ncondition = 3", "format", 2, 1, 10, "`condition` is a string", None),
    ('[check]\ncondition = " "', "format", 2, 1, 10, "the condition is empty", 'as in "~exists (out[0] == 1)"'),
    (
        'check.condition = "x == 1"', "condition", 1, 20, 6,
        "the condition does not say in which executions it holds", "write `forall (x == 1)`, or `exists`, or `~exists`",
    ),
    (
        'check.condition = "never (x == 1)"', "syntax", 1, 20, 5,
        "`never` begins no condition",
        "write `~exists (...)`, or `Expect=MODEL:never` above the initial state",
    ),
    (
        'check.condition = "exists (x == )"', "syntax", 1, 33, 1,
        "expected a register, a location or an integer, found `)`", None,
    ),
    (
        "[check]\ncondition = '''\nexists (x ==\n  1 &&)'''", "syntax", 4, 5, 1,
        "expected `)`, `/\\` or `\\/`, found `&`", "`and` is written /\\",
    ),
    (
        'check.condition = "locations [x;]"', "condition", 1, 20, 14,
        "the condition is `exists`, `~exists` or `forall` and a proposition", None,
    ),
    (
        'check.condition = "filter (x == 1) exists (x == 1)"', "condition", 1, 20, 20,
        "the condition is `exists`, `~exists` or `forall` and a proposition", None,
    ),
    ("launch = 3", "format", 1, 1, 7, "`launch` is an array of tables", "write [[launch]]"),
    ("launch = []", "format", 1, 1, 7, "`launch` is empty", "write [[launch]] and what is said of it, or leave it out"),
    ("block = [2, 2, 65]", "format", 1, 1, 6, "`block` has at most 64 in the dimension z, not 65", None),
    ("grid = [1, 65536]", "format", 1, 1, 5, "`grid` has at most 65535 in the dimension y, not 65536", None),
    ("launch = [3]", "format", 1, 1, 7, "`launch` is an array of tables", "write [[launch]]"),
    (
        "grid = 2\n[[launch]]\nblock = 2\n[[launch]]\nblock = 0", "format", 5, 1, 6,
        "`block` is one to three positive numbers", "as in block = 2 or block = [2, 1, 1]",
    ),
    # Threads.
    *(
        (f"block = 40\nthreads = {value}", "format", 2, 1, 8, message, hint)
        for value, message, hint in (
            ('"lanes 0"', "`lanes 0` does not select threads", "write `cta 0-1 warp 0 lane 0` or `cta 0 thread 0,32`"),
            ('"lane 0 lane 1"', "`lane 0 lane 1` does not select threads",
             "write `cta 0-1 warp 0 lane 0` or `cta 0 thread 0,32`"),
            ('""', "`` does not select threads", "write `cta 0-1 warp 0 lane 0` or `cta 0 thread 0,32`"),
            ('"thread 0 warp 0"', "`thread` is the number in the CTA: it goes without `warp` and `lane`", None),
            ('"warp 2"', "there is no warp 2: they go from 0 to 1", None),
            ('"cta 1"', "there is no cta 1: they go from 0 to 0", None),
            ('"thread 40"', "there is no thread 40: they go from 0 to 39", None),
            ('"lane 3-1"', "`3-1` goes down", "write 1-3"),
            ('"lane 1-2-3"', "`1-2-3` is not a list of numbers", "as in 0,2-5"),
            ('"lane 0,,1"', "`0,,1` is not a list of numbers", "as in 0,2-5"),
            ('"thread 99999999999"', "`99999999999` is not a list of numbers", "as in 0,2-5"),
            ('"warp 1 lane 8"', "`warp 1 lane 8` selects no thread: a CTA has 40", None),
            ("[]", "`threads` is a selection or a list of them", 'as in "cta 0 warp 0-1 lane 0"'),
            ("3", "`threads` is a selection or a list of them", 'as in "cta 0 warp 0-1 lane 0"'),
            ('["all", 3]', "`threads` is a selection or a list of them", 'as in "cta 0 warp 0-1 lane 0"'),
        )
    ),
    (
        "grid = 4\nblock = 1024\nthreads = 'all'", "format", 3, 1, 8, "4096 threads run; at most 1024 are supported",
        'choose some: threads = "lane 0"',
    ),
    # Arguments.
    ("args = 3", "format", 1, 1, 5, "`args` is a list", 'as in args = ["data", 4]'),
    (
        'args = ["a b"]', "format", 1, 1, 5, "`a b` is neither an object nor an object and an offset",
        'as in "out+4"',
    ),
    ("args = [[1]]", "format", 1, 1, 5, "a value is a number or the name of an object", None),
    ("args = [2021-01-01]", "format", 1, 1, 5, "a value is a number or the name of an object", None),
    ("args = [{u32 = 1, u64 = 2}]", "format", 1, 1, 5, "a field is a type and its value", "as in { u32 = 5 }"),
    ("args = [{fields = [{}]}]", "format", 1, 1, 5, "a field is a type and its value", "as in { u32 = 5 }"),
    ("args = [{uint = 3}]", "format", 1, 1, 5, "`uint` is not a type of a variable", "as in u32, s64, f32, b8"),
    ("args = [{pred = 1}]", "format", 1, 1, 5, "`pred` is not a type of a variable", "as in u32, s64, f32, b8"),
    *(
        (f"args = [{{{key} = 3}}]", "format", 1, 1, 5, f"`{key}` is a list",
         "as in { bytes = [1, 2] } or { fields = [{ u32 = 5 }] }")
        for key in ("bytes", "fields")
    ),
    # Objects. The place is that of the object.
    ('[objects]\n"a b" = "u32"', "format", 2, 1, 6, "`a b` is not a name", None),
    (
        "[objects]\nx = 3", "format", 2, 1, 2, "an object is a type or a table",
        'as in data = { type = "u32", count = 2 }',
    ),
    ('objects.x = "int"', "format", 1, 1, 10, "`int` is not a type of a variable", "as in u32, s64, f32, b8"),
    ("objects.x.type = 3", "format", 1, 1, 15, "`3` is not a type of a variable", "as in u32, s64, f32, b8"),
    (
        "[objects.x]\nsize = 3", "format", 1, 1, 11, "an object has no `size`",
        "it has type, count, init, align or tensormap",
    ),
    (
        '[objects]\nx = "u32"\ny = { type = "u32", count = 0 }', "format", 3, 1, 2,
        "`count` is a number from 1 to 65536", None,
    ),
    (
        '[check]\ncondition = "exists (x == 1)"\n[objects]\nx = { type = "u32", count = 1, init = [1, 2] }',
        "format", 4, 1, 2, "2 values for 1 elements", None,
    ),
    (
        'objects.x = { type = "u32", init = "y z" }', "format", 1, 1, 10,
        "`y z` is neither an object nor an object and an offset", 'as in "out+4"',
    ),
    (
        'objects.x = { type = "u32", init = [[1]] }', "format", 1, 1, 10,
        "a value is a number or the name of an object", None,
    ),
    *(
        (f"objects.m = {{ tensormap = {value} }}", "format", 1, 1, 10, message, hint)
        for value, message, hint in (
            ("3", "a tensor map has target, type, box and perhaps dims, strides, steps", None),
            ('{ target = "x" }', "a tensor map has target, type, box and perhaps dims, strides, steps", None),
            ('{ target = "x", type = "u32", box = 4, size = 3 }',
             "a tensor map has target, type, box and perhaps dims, strides, steps", None),
            ('{ target = 3, type = "u32", box = 4 }', "the target of a tensor map is an object", None),
            ('{ target = "x", type = "u3", box = 4 }', "`u3` is not a type of a variable", "as in u32, s64, f32, b8"),
            ('{ target = "x", type = "u32", box = "4" }',
             "`box` of a tensor map is a list of numbers, innermost dimension first", None),
            ('{ target = "x", type = "u32", box = [4, 4] }', "a tensor of several dimensions needs `dims`",
             "as in box = [4, 2], dims = [8, 6]"),
            ('{ target = "x", type = "u32", box = [4, 4], dims = [4] }',
             "a box of 2 dimensions needs 2 of `dims`, not 1", None),
            ('{ target = "x", type = "u32", box = [4, 4], dims = [4, 4], strides = [1, 2] }',
             "a box of 2 dimensions needs 1 of `strides`, not 2", None),
            ('{ target = "x", type = "u32", box = [4], steps = [1, 2] }',
             "a box of 1 dimensions needs 1 of `steps`, not 2", None),
        )
    ),
    # Host threads.
    ("[host]\nH0 = 3", "format", 2, 1, 3, "a host thread is a name and its instructions", 'as in H0 = "..."'),
    ('[host]\n"1" = "x"', "format", 2, 1, 4, "a host thread is a name and its instructions", 'as in H0 = "..."'),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind", "line", "column", "width", "message", "hint"), SPECIFICATION)
def test_mistakes(text: str, kind: str, line: int, column: int, width: int, message: str, hint: str | None) -> None:
    with pytest.raises(PtxmmError) as caught:
        parse_launches(text, "k.toml")
    error = caught.value
    assert (error.kind, error.message, error.hint, error.file) == (kind, message, hint, "k.toml")
    assert (error.line or 0, error.column or 0) == (line, column)
    if line:
        assert error.width == width


# -- mistakes about the module -------------------------------------------------------------------------------------

# The specification, the module, the kind and the whole text of the error.
TWO = MODULE.replace(".visible .entry k(", ".visible .entry k2() { ret; }\n.visible .entry k(")
MEETING = [
    (
        'args = ["x", 1]', MODULE, "name",
        "1:19: error: the argument `x` is no object of this launch\n"
        '  // ptxmm: args = ["x", 1]\n                    ^^^\n  hint: [objects] x = { type = "u32" }',
    ),
    (
        'kernel = "kk"\n' + GOOD, MODULE, "name",
        "1:11: error: the module has no kernel `kk`\n"
        '  // ptxmm: kernel = "kk"\n            ^^^^^^^\n  hint: did you mean `k`?',
    ),
    (
        'kernel = "other"\n' + GOOD, MODULE, "name",
        "1:11: error: the module has no kernel `other`\n"
        '  // ptxmm: kernel = "other"\n            ^^^^^^^\n  hint: its kernels: k',
    ),
    (
        GOOD, TWO, "format",
        '1:1: error: the module has 2 kernels\n  // ptxmm: args = ["x", 1]\n  ^\n'
        '  hint: say which: kernel = "k2" or "k"',
    ),
    (
        GOOD, MODULE.partition(".visible")[0], "format",
        '1:1: error: the module has no kernel\n  // ptxmm: args = ["x", 1]\n  ^',
    ),
    (
        'kernel = "mp"\n' + OBJECT,
        entry(POINTER, ONE, "_Z2mpPj") + entry(POINTER, ONE, "_Z2mpPf").removeprefix(HEAD), "name",
        '1:11: error: 2 kernels are called `mp`\n  // ptxmm: kernel = "mp"\n            ^^^^^^^\n'
        "  hint: say which: mp(unsigned int*) or mp(float*)",
    ),
    (
        'args = ["x"]\nobjects.x = "u32"', MODULE, "format",
        "1:11: error: `k` has 2 parameters, 1 arguments are given\n"
        '  // ptxmm: args = ["x"]\n            ^^^^^\n  hint: its parameters: .u64, .u32',
    ),
    (
        'objects.x = "u32"\nargs = [1, "x"]', MODULE, "format",
        "2:22: error: argument 2 is an address, which has 8 bytes, but the parameter has 4\n"
        '  // ptxmm: args = [1, "x"]\n                       ^^^',
    ),
    (
        'args = ["x", "x"]\nobjects.x = "u32"',
        entry(".param .u32 p0, .param .u32 p1", "").replace(".address_size 64", ".address_size 32"), "format",
        "1:19: error: argument 1 is an address, which has 8 bytes, but the parameter has 4\n"
        '  // ptxmm: args = ["x", "x"]\n                    ^^^\n'
        "  hint: modules with `.address_size 32` are not supported",
    ),
    *(
        (
            f'args = ["x", {value}]\nobjects.x = "u32"', MODULE, "format",
            f"1:{24 if width else 11}: error: {message}\n"
            f'  // ptxmm: args = ["x", {value}]\n            {" " * 13 * bool(width)}{"^" * (width or 5)}',
        )
        for value, width, message in (
            ("4294967296", 10, "argument 2 does not fit its parameter (.u32)"),
            ("-2147483649", 11, "argument 2 does not fit its parameter (.u32)"),
            ("1.5", 3, "argument 2 does not fit its parameter (.u32)"),
            ("nan", 3, "argument 2 does not fit its parameter (.u32)"),
            ("{ u64 = 1 }", 0, "argument 2 does not fit its parameter (.u32)"),
            ("{ u32 = 4294967296 }", 0, "4294967296, in argument 2, is no number of the type u32"),
            ("{ bytes = [1, 999] }", 0, "999, in argument 2, is no number of the type u8"),
        )
    ),
    *(
        (
            OBJECT + f"objects.v = {spec}", entry(POINTER, "  st.global.u32 [v], 1;", before=".global .u32 v[2];\n"),
            "type",
            f"3:11: error: {message}\n  // ptxmm: objects.v = {spec}\n            ^^^^^^^^^^\n  hint: {hint}",
        )
        for spec, message, hint in (
            (text, "`v` has 2 elements of u32, not 3", "leave out `count`: the module declares how large it is")
            for text in ('{ type = "u32", count = 3 }', "{ count = 3 }")
        )
    ),
    (
        OBJECT + 'objects.v = { type = "u64" }', entry(POINTER, "  st.global.u32 [v], 1;", before=".global .u32 v;\n"),
        "type",
        "3:11: error: `v` has 4 bytes, less than one element of u64\n"
        '  // ptxmm: objects.v = { type = "u64" }\n            ^^^^^^^^^^\n  hint: the module declares it as u32',
    ),
    (
        "args = [3]", entry(".param .align 8 .b8 p0[16]", ""), "format",
        "1:19: error: parameter 1 is a structure of 16 bytes\n"
        "  // ptxmm: args = [3]\n                    ^\n"
        '  hint: write { fields = [{ u32 = 1 }, { u64 = "data" }] }',
    ),
    (
        "args = [{ bytes = [1, 2, 3] }]", entry(".param .b8 p0[2]", ""), "format",
        "1:11: error: argument 1 does not fit its parameter (.b8 [2])\n"
        "  // ptxmm: args = [{ bytes = [1, 2, 3] }]\n            ^^^^^",
    ),
    (
        GOOD + "objects.countr = { init = 1 }", MODULE, "name",
        "3:11: error: `countr` is no variable of the module\n"
        "  // ptxmm: objects.countr = { init = 1 }\n            ^^^^^^^^^^^^^^^\n  hint: did you mean `counter`?",
    ),
    (
        GOOD + "objects.y = { init = 1 }", MODULE, "name",
        "3:11: error: `y` is no variable of the module\n"
        '  // ptxmm: objects.y = { init = 1 }\n            ^^^^^^^^^^\n  hint: give it a type: { type = "u32" }',
    ),
    (
        GOOD + 'objects.p = { type = "u64", init = ["q"] }', MODULE, "name",
        "3:11: error: no variable is called `q`\n"
        '  // ptxmm: objects.p = { type = "u64", init = ["q"] }\n            ^^^^^^^^^^',
    ),
    (
        GOOD + 'objects.p = { type = "u8", init = 300 }', MODULE, "type",
        "3:11: error: 300 does not fit in 8 bits (.u8)\n"
        '  // ptxmm: objects.p = { type = "u8", init = 300 }\n            ^^^^^^^^^^',
    ),
    (
        GOOD + 'objects.p = { type = "u32", init = 1.5 }', MODULE, "type",
        "3:11: error: 1.5 is no value of .u32\n"
        '  // ptxmm: objects.p = { type = "u32", init = 1.5 }\n            ^^^^^^^^^^\n'
        "  hint: floating-point constants go with .f16, .f32, .f64, .b32 and .b64",
    ),
    (
        GOOD + 'objects.m = { tensormap = { target = "z", type = "u32", box = [4] } }', MODULE, "name",
        "3:11: error: no variable is called `z`\n"
        '  // ptxmm: objects.m = { tensormap = { target = "z", type = "u32", box = [4] } }\n            ^^^^^^^^^^',
    ),
    # Conditions that name nothing.
    *(
        (
            f'{GOOD}check.condition = "exists ({term} == 1)"', MODULE, kind,
            f'3:38: error: {message}\n  // ptxmm: check.condition = "exists ({term} == 1)"\n'
            f"{' ' * 39}{'^' * len(term)}",
        )
        for term, kind, message in (
            ("y", "name", "no variable is called `y`"),
            ("P3:%r1", "name", "there is no thread `P3`"),
            ("P0:%r9", "name", "P0 has no register `r9`"),
            ("x[3]", "type", "x is not an array"),
            ("cta 1:x", "name", "no variable is called `cta 1:x`"),
        )
    ),
    # Host threads.
    (
        GOOD + 'host.H0 = "st.bogus.sys.global.u32 [x], 1;"', MODULE, "isa",
        "3:24: error: `st` has no qualifier `.bogus`\n"
        '  // ptxmm: host.H0 = "st.bogus.sys.global.u32 [x], 1;"\n' + " " * 25 + "^^^^^^",
    ),
    (
        GOOD + 'host.H0 = "st.relaxed.sys.global.u64 [x], 1;"', MODULE, "type",
        "3:22: error: the access at x+0 of 8 bytes is outside x\n"
        '  // ptxmm: host.H0 = "st.relaxed.sys.global.u64 [x], 1;"\n' + " " * 23 + "^" * 32 + "\n"
        "  hint: x has 4 bytes",
    ),
    # What a kernel does that can't be modelled, and matters.
    (
        OBJECT, entry(POINTER, "  mov.u32 %r1, %smid;\n" + STORE.format("%r1")), "unsupported",
        "12:3: error: %smid matters here, but no launch decides its value\n    mov.u32 %r1, %smid;\n    " + "^" * 18,
    ),
    (
        OBJECT, entry(POINTER, "  vadd.u32.u32.u32 %r1, 1, 2;\n" + STORE.format("%r1")), "unsupported",
        "12:3: error: `vadd.u32` is not supported yet\n    vadd.u32.u32.u32 %r1, 1, 2;\n    " + "^" * 26,
    ),
    (
        OBJECT, entry(POINTER, ONE + "  call.uni foo;\n", before=".extern .func foo();\n"), "unsupported",
        "16:3: error: `foo` is not defined in this module\n    call.uni foo;\n    ^^^^^^^^^^^^\n"
        "  hint: inline the function, or leave the call out",
    ),
    (
        OBJECT, entry(POINTER, ONE + "  call.uni f;\n", before=".func f() { call.uni f; ret; }\n"), "unsupported",
        "6:13: error: `f` calls itself, which is not supported\n  .func f() { call.uni f; ret; }\n"
        "              ^^^^^^^^^^\n  hint: inline the function, or leave the call out",
    ),
    (
        OBJECT,
        entry(
            POINTER,
            ONE + "proto: .callprototype (.param .b32 _) _ ();\n  { .param .b32 r;\n  call (r), %rd3, (), proto; }\n",
        ),
        "unsupported",
        "17:3: error: calls through a pointer are not supported\n    call (r), %rd3, (), proto; }\n"
        "    ^^^^^^^^^^^^^^^^^^^^^^^^^\n  hint: inline the function, or leave the call out",
    ),
    (
        OBJECT, entry(POINTER, "  ld.param.u64 %rd3, [p0+8];\n  st.global.u64 [%rd3], 1;\n"), "unsupported",
        "12:3: error: this access to a parameter is not supported\n    ld.param.u64 %rd3, [p0+8];\n    " + "^" * 25,
    ),
    (
        "args = [{ fields = [{ u64 = 'x' }] }]\nobjects.x = 'u32'",
        entry(".param .b8 p0[8]", "  ld.param.u32 %r1, [p0+4];\n  mov.b64 %rd1, {%r1, %r1};\n"
              "  st.global.u32 [%rd1], 1;\n"), "unsupported",
        "12:3: error: this access to a parameter is not supported\n    ld.param.u32 %r1, [p0+4];\n    " + "^" * 24,
    ),
    (
        OBJECT,
        entry(POINTER, ONE + "ts: .branchtargets L1, L2;\n  @%p1 brx.idx %r1, ts;\nL1:\nL2:\n"), "unsupported",
        "16:3: error: `brx.idx` with a guard is not supported\n    @%p1 brx.idx %r1, ts;\n    " + "^" * 20,
    ),
    (
        OBJECT, entry(POINTER, ONE + "  mov.u32 %q1, 0;\n"), "name",
        "15:3: error: `%q1` is neither a register nor a variable\n    mov.u32 %q1, 0;\n    " + "^" * 14
        + "\n  hint: did you mean `%r1`?",
    ),
    (
        "args = [7]", entry(".param .u32 p0", "  ld.param.u32 %q1, [p0];\n"), "name",
        "11:3: error: `%q1` is neither a register nor a variable\n    ld.param.u32 %q1, [p0];\n    " + "^" * 22
        + "\n  hint: did you mean `%r1`?",
    ),
    (
        # The registers of a function that is inlined have other names then, which nobody has written.
        OBJECT,
        entry(
            POINTER, ONE + "  call f, (1);\n",
            before=".func f(.param .b32 count) "
            "{ .reg .b32 total; ld.param.b32 total, [count]; mov.b32 tota, total; }\n",
        ),
        "name",
        "6:76: error: `tota` is neither a register nor a variable\n"
        "  .func f(.param .b32 count) { .reg .b32 total; ld.param.b32 total, [count]; mov.b32 tota, total; }\n  "
        + " " * 75 + "^" * 19 + "\n  hint: did you mean `total`?",
    ),
    (
        OBJECT, entry(POINTER, "  mov.u64 %rd3, picture;\n" + STORE.format("%rd3").replace("u32", "u64"),
                      before=".global .texref picture;\n"),
        "unsupported",
        "13:3: error: addresses of textures, samplers and surfaces are not supported\n"
        "    mov.u64 %rd3, picture;\n    " + "^" * 21,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("toml", "module", "kind", "message"), MEETING)
def test_what_does_not_fit(toml: str, module: str, kind: str, message: str) -> None:
    with pytest.raises(PtxmmError) as caught:
        launched(toml, module)
    assert str(caught.value) == "k.ptx:" + message
    assert caught.value.kind == kind


def test_more_instructions_than_can_be_inlined() -> None:
    functions = ".func f0() { .reg .b32 %r; mov.u32 %r, 1; ret; }\n" + "".join(
        f".func f{n}() {{ {f'call.uni f{n - 1}; ' * 8}ret; }}\n" for n in range(1, 8)
    )
    with pytest.raises(PtxmmError) as caught:
        launched(OBJECT, entry(POINTER, ONE + "  call.uni f7;\n", before=functions))
    assert caught.value.message == "the kernel has more than 100000 instructions once its calls are inlined"
    assert caught.value.kind == "unsupported"


# -- where a specification may stand -------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "k.ptx").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_none(folder: Path) -> None:
    with pytest.raises(PtxmmError) as caught:
        read("k.ptx")
    assert str(caught.value) == (
        "k.ptx: error: nothing is said of a launch\n"
        "  hint: say how its kernel is launched: --launch FILE, k.toml, or comments `// ptxmm: grid = 2`"
    )


def test_the_order_of_places(folder: Path) -> None:
    def ctas() -> int:
        (test,) = read("k.ptx", launch=given)
        return len(test.threads)

    given = None
    comments = "".join(f"// ptxmm: {row}\n" for row in GOOD.splitlines())
    (folder / "k.cu").write_text(comments + "// ptxmm: grid = 2\n")
    assert ctas() == 2
    (folder / "k.toml").write_text("grid = 3\n" + GOOD)
    assert ctas() == 3
    (folder / "k.ptx").write_text(comments + "// ptxmm: grid = 4\n" + MODULE)
    assert ctas() == 4
    given = "other.cu"
    (folder / given).write_text(comments + "// ptxmm: grid = 5\nint main() {}\n")
    assert ctas() == 5


def test_a_source_without_comments_says_nothing(folder: Path) -> None:
    (folder / "k.cu").write_text("// ptxmm is a tool\n")
    with pytest.raises(PtxmmError, match="nothing is said of a launch"):
        read("k.ptx")


def test_a_launch_file_that_is_missing(folder: Path) -> None:
    with pytest.raises(PtxmmError) as caught:
        read("k.ptx", launch="gone.toml")
    assert str(caught.value) == "gone.toml: error: the file can't be read: No such file or directory"


def test_comments() -> None:
    assert has_comments("  //ptxmm:grid = 2")
    assert not has_comments("x; // ptxmm: grid = 2")
    assert not has_comments("/* ptxmm: grid = 2 */")
    launch = one("int x; // no\n\t// ptxmm: grid = [2,\n//ptxmm:  3]\n// other\n// ptxmm:\n//ptxmm: block = 4", "k.cu")
    assert (launch.grids[0].grid, launch.grids[0].block) == ((2, 3, 1), (4, 1, 1))


def test_places_in_comments() -> None:
    with pytest.raises(PtxmmError) as caught:
        parse_launches('int x;\n  // ptxmm: grid = 2\n  // ptxmm: check.condition = "exists (x == )"\n', "k.cu")
    assert (caught.value.line, caught.value.column) == (3, 45)


def test_a_launch_of_very_many_threads() -> None:
    """It is refused before anything is made for each of them."""
    most = "grid = 65536\nblock = 1024\n"
    for text, message in (
        (most, "67108864 threads run; at most 1024 are supported"),
        (most + 'threads = "lane 0"', "2097152 threads run; at most 1024 are supported"),
        (most + 'threads = ["cta 0 warp 0", "cta 0-40 lane 0"]', "1312 threads run; at most 1024 are supported"),
        (most + f'threads = "cta {",".join(["0-65535"] * 1000)}"', "names some cta twice"),
    ):
        with pytest.raises(PtxmmError, match=message):
            one(text)
    assert len(one(most + 'threads = "cta 7,65535 warp 31 lane 0-3"').grids[0].threads) == 8


# -- what it may say -----------------------------------------------------------------------------------------------


def test_defaults() -> None:
    launch = one("grid = 1")
    (grid,) = launch.grids
    assert (launch.name, grid.kernel, grid.grid, grid.block, grid.cluster) == (
        None, None, (1, 1, 1), (1, 1, 1), None,
    )  # fmt: skip
    assert (grid.shared, grid.threads, grid.args, launch.objects) == (0, ((0, 0),), (), ())
    assert (grid.number, grid.gpu, grid.after) == (0, 0, "stream")
    assert (launch.condition, launch.races, launch.robust, launch.unroll) == (None, False, False, None)


def test_everything_at_once() -> None:
    launch = one("""
name = "all"
kernel = "k"
grid = [2, 2]
block = [16, 4, 1]
cluster = [2, 1]
shared = 64
threads = ["cta 0 warp 1 lane 0-1,3", "cta 3 thread 5"]
args = ["x", "x+4", 3, -1, 1.5, true, { u16 = 7 }, { bytes = [1, 2] }, { fields = [{ u8 = 1 }, { u64 = "x" }] }]
[objects]
x = "u32"
counter = { init = 3 }
[host]
H0 = "ld.relaxed.sys.global.u32 r0, [x];"
[check]
condition = "~exists (x == 1)"
races = "none"
robust = true
unroll = 5
""")
    (grid,) = launch.grids
    assert (grid.grid, grid.block, grid.cluster, grid.shared) == ((2, 2, 1), (16, 4, 1), (2, 1, 1), 64)
    assert grid.threads == ((0, 32), (0, 33), (0, 35), (3, 5))
    assert [[(p.offset, p.value) for p in argument.pieces] for argument in grid.args] == [
        [(0, "x")], [(0, "x+4")], [(0, 3)], [(0, -1)], [(0, 1.5)], [(0, 1)], [(0, 7)], [(0, 1), (1, 2)],
        [(0, 1), (8, "x")],
    ]  # fmt: skip
    assert (launch.races, launch.robust, launch.unroll) == (True, True, 5)
    assert launch.condition is not None and list(launch.host) == ["H0"]


@pytest.mark.parametrize(
    ("selection", "threads"),
    [
        ("all", [(c, t) for c in range(2) for t in range(40)]),
        ("lane 0", [(0, 0), (0, 32), (1, 0), (1, 32)]),
        ("cta 1 warp 1", [(1, t) for t in range(32, 40)]),
        ("  cta 0-1   lane 3 , 5 warp 0 ", [(0, 3), (0, 5), (1, 3), (1, 5)]),
        ("lane 8", [(0, 8), (1, 8)]),
        ("thread 0,39", [(0, 0), (0, 39), (1, 0), (1, 39)]),
        ("cta 0", [(0, t) for t in range(40)]),
    ],
)
def test_selections(selection: str, threads: list[tuple[int, int]]) -> None:
    assert list(one(f'grid = 2\nblock = 40\nthreads = "{selection}"').grids[0].threads) == threads


def test_several_launches() -> None:
    first, second = parse_launches(
        'kernel = "k"\ngrid = 2\n[[launch]]\nname = "a"\n'
        '[[launch]]\nname = "b"\ngrid = 3\n[launch.check]\nunroll = 2\n',
        "k.toml",
    )
    assert (first.name, first.grids[0].kernel, first.grids[0].grid, first.unroll) == ("a", "k", (2, 1, 1), None)
    assert (second.name, second.grids[0].kernel, second.grids[0].grid, second.unroll) == ("b", "k", (3, 1, 1), 2)


def test_a_launch_adds_to_the_tables_of_all() -> None:
    first, second = parse_launches(
        'host = { H = "ret;" }\nobjects = { x = "u32", y = "u32" }\ncheck = { races = "none", unroll = 2 }\n'
        '[[launch]]\n[[launch]]\nobjects = { y = "u64", z = "u8" }\n'
        'check = { condition = "forall (x == 1)", unroll = 3 }\n',
        "k.toml",
    )
    assert [item.name for item in first.objects] == ["x", "y"]
    types = {item.name: item.type.name for item in second.objects if item.type is not None}
    assert types == {"x": "u32", "y": "u64", "z": "u8"}
    assert (first.races, first.unroll, first.condition) == (True, 2, None)
    assert (second.races, second.unroll) == (True, 3) and second.condition is not None
    assert list(second.host) == ["H"]


def test_textures_that_do_not_matter() -> None:
    body = "  mov.u64 %rd3, picture;\n" + ONE
    assert program(OBJECT, entry(POINTER, body, before=".global .texref picture;\n")) == ["st.global.u32 [x], 1"]


@pytest.mark.parametrize(
    ("name", "shown"), [("_Z2mpPj", "mp"), ("_ZN2ns2mpEPj", "ns::mp"), ("_Z2mpILi2EEvPj", "mp<2>")]
)
def test_names_of_cuda(name: str, shown: str) -> None:
    assert launched('kernel = "mp"\n' + OBJECT, entry(POINTER, ONE, name)).name == shown


def test_a_longer_name_is_another_kernel() -> None:
    with pytest.raises(PtxmmError, match="the module has no kernel `mp`"):
        launched('kernel = "mp"\n' + OBJECT, entry(POINTER, ONE, "_Z3ampPj"))


def test_arguments_are_bytes_of_parameters() -> None:
    take = "  ld.param.u64 %rd1, [p0];\n  ld.param.u32 %r1, [p0+{}];\n" + STORE.format("%r1").partition("\n")[2]
    structure = ".param .align 8 .b8 p0[16]"
    for offset, value in ((8, 5), (12, 4294967295)):
        toml = (
            'args = [{ fields = [{ u64 = "x+4" }, { u32 = 5 }, { s32 = -1 }] }]\n'
            'objects.x = { type = "u32", count = 2 }'
        )
        assert program(toml, entry(structure, take.format(offset))) == [f"st.global.u32 [x+4], {value}"]
    body = "  ld.param.u32 %r1, [p1];\n" + STORE.format("%r1")
    pieces = (("{ bytes = [1, 2, 0, 1] }", 16777729), ("{ f32 = 1.5 }", 0x3FC00000), ("{ s16 = -2 }", 65534))
    for given, value in pieces:
        toml = f'args = ["x", {given}]\nobjects.x = "u32"'
        assert program(toml, entry(POINTER + ", .param .align 4 .b8 p1[4]", body)) == [f"st.global.u32 [x], {value}"]


def test_floats() -> None:
    body = "  ld.param.f32 %f1, [p1];\n" + STORE.format("%f1").replace("u32", "f32")
    toml = 'args = ["x", 1.5]\nobjects.x = "f32"'
    assert program(toml, entry(POINTER + ", .param .f32 p1", body)) == ["st.global.f32 [x], 0f3FC00000"]


def test_objects() -> None:
    test = launched(
        'args = ["a"]\n[objects]\na = { type = "u32", count = 3, init = [7] }\n'
        'b = { type = "u64", init = ["a+4", "c"] }\n'
        'c = { type = "s16", count = 2, init = -1 }\ncounter = { init = 9 }\n',
        entry(POINTER, ONE, before=".global .align 4 .u32 counter = 3;\n"),
    )
    text = skeleton(test)
    for line in (
        ".global .u32 a[3] = {7};", ".global .u64 b[2] = {a+4, c};", ".global .s16 c[2] = {-1, -1};",
        ".global .align 4 .u32 counter = 9;",
    ):  # fmt: skip
        assert line in text


def test_a_tensor_map() -> None:
    body = """  .shared .align 128 .b8 s[16];
  .shared .align 8 .b64 b;
  mov.b64 %rd1, p0;
  cvta.param.u64 %rd2, %rd1;
  mov.u32 %r1, s;
  mov.u32 %r2, b;
  cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd2, {0}], [%r2];
"""
    toml = (
        'args = ["m"]\nobjects.x = { type = "u32", count = 4 }\n'
        'objects.m = { tensormap = { target = "x", type = "u32", box = [4], dims = [4] } }'
    )
    test = launched(toml, entry(".param .align 64 .b8 p0[128]", body))
    assert ".param .b8 m[128] = tensormap(x, u32, 4);" in skeleton(test)


def test_dynamic_shared_memory() -> None:
    module = entry("", "  st.shared.u32 [dyn+4], 1;\n", before=".extern .shared .align 16 .b8 dyn[];\n")
    toml = 'shared = 16\ncheck.condition = "exists (dyn[1] == 1)"'
    assert ".shared .align 16 .b32 dyn[4] @ cta 0, gpu 0;" in skeleton(launched(toml, module))


def test_shared_memory_of_several_ctas() -> None:
    module = entry("", "  st.shared.u32 [s], 1;\n", before=".shared .u32 s;\n")
    text = skeleton(launched('grid = 2\ncheck.condition = "exists (cta 1:s == 1)"', module))
    assert "exists (cta 1:s == 1)\n" in text


def test_a_host_thread() -> None:
    toml = (
        OBJECT + '[host]\nH0 = "ld.relaxed.sys.global.u32 r0, [x]; add.u32 r1, r0, 1;"\n'
        '[check]\ncondition = "exists (H0:r1 == 2)"'
    )
    text = skeleton(launched(toml, entry(POINTER, ONE)))
    assert "H0 @ host" in text and "exists (H0:r1 == 2)" in text


def test_places_of_threads() -> None:
    toml = 'grid = 4\nblock = 96\ncluster = 2\nthreads = ["cta 1 warp 0,2 lane 0", "cta 2 thread 33"]\n' + OBJECT
    test = launched(toml, entry(POINTER, ONE))
    assert [(t.name, t.placement.cluster, t.placement.cta, t.placement.warp) for t in test.threads] == [
        ("P0", 0, 1, 0), ("P1", 0, 1, 2), ("P2", 1, 0, 1),
    ]  # fmt: skip
    assert test.claims is not None
    assert test.claims.remarks == (
        "3 of 384 threads run: P0 is thread 0 of CTA 1, P1 is thread 64 of CTA 1, P2 is thread 33 of CTA 2",
    )


def test_special_registers() -> None:
    body = "  mov.u32 %r1, {};\n" + STORE.format("%r1")
    toml = 'grid = [2, 2]\nblock = [8, 8]\ncluster = [2, 1]\nthreads = "cta 3 thread 37"\n' + OBJECT
    for register, value in (
        ("%tid.x", 5), ("%tid.y", 4), ("%tid.z", 0), ("%ntid.x", 8), ("%ctaid.x", 1), ("%ctaid.y", 1), ("%nctaid.y", 2),
        ("%laneid", 5), ("%clusterid.x", 0), ("%clusterid.y", 1), ("%nclusterid.x", 1),
        ("%cluster_ctaid.x", 1), ("%cluster_ctarank", 1), ("%cluster_nctarank", 2), ("%lanemask_eq", 32),
        ("%lanemask_lt", 31), ("%lanemask_le", 63), ("%lanemask_ge", 4294967264), ("%lanemask_gt", 4294967232),
        ("%clock", 0), ("WARP_SZ", 32), ("%dynamic_smem_size", 0),
    ):  # fmt: skip
        assert program(toml, entry(POINTER, body.format(register))) == [f"st.global.u32 [x], {value}"], register


@pytest.mark.parametrize("register", ["warpid", "nwarpid", "smid", "gridid", "total_smem_size"])
def test_what_the_launch_does_not_decide(register: str) -> None:
    """%warpid may change, %nwarpid is a limit of the machine, %total_smem_size is in units (PTX ISA 10.4, .5, .30)."""
    body = f"  mov.u32 %r1, %{register};\n" if register != "gridid" else "  mov.u64 %rd3, %gridid;\n"
    stored = STORE.format("%r1") if register != "gridid" else "  st.global.u32 [%rd2], %rd3;\n"
    with pytest.raises(PtxmmError, match=f"%{register} matters here, but no launch decides its value"):
        program(OBJECT, entry(POINTER, body + stored))


def test_what_does_not_matter_is_not_refused() -> None:
    harmless = "  mov.u32 %r1, %smid;\n  sin.approx.f32 %f1, 0f3F800000;\n  add.s32 %r3, %r1, 1;\n"
    assert program(OBJECT, entry(POINTER, harmless + ONE)) == ["st.global.u32 [x], 1"]


REMARKS = [
    ("", "  st.global.u32 [%rd2], %r1;\n", "%r1 may be read before it is written: its value is unknown then"),
    ("", "  trap;\n", "`trap` is taken for the end of its thread"),
    (
        "",
        "  mov.u64 %rd3, %clock64;\n  st.global.u64 [%rd2], %rd3;\n",
        "a clock decides what is executed: only executions in which no time passes were looked at",
    ),
    (
        ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n",
        "  { .param .b64 a; .param .b64 b; .param .b32 r; st.param.b64 [a], 0; st.param.b64 [b], 0;\n"
        "  call.uni (r), vprintf, (a, b); ld.param.b32 %r1, [r]; }\n",
        "`vprintf` is taken to do nothing",
    ),
    (
        ".extern .func __assertfail(.param .b64 a);\n",
        "  { .param .b64 a; st.param.b64 [a], 0; call.uni __assertfail, (a); }\n",
        "a call of `__assertfail` is taken for the end of its thread",
    ),
    (
        "",
        "  add.s32 %r1, %r1, 6442450944;\n",
        "line 15: `add.s32 %r1, %r1, 6442450944`: 6442450944 does not fit in 32 bits (.s32): ptxas takes its last 32 "
        "bits, -2147483648, and says nothing: write that, or a wider type",
    ),
]


@pytest.mark.parametrize(
    ("text", "value"),
    [("4294967297", "1"), ("-4294967295", "1"), ("0x1FFFFFFFF", "4294967295"), ("-1", "-1"), ("4294967295", None)],
)
def test_a_constant_is_cut(text: str, value: str | None) -> None:
    found = program(OBJECT, entry(POINTER, STORE.format(text)))
    assert found == [f"st.global.u32 [x], {value or text}"]


def test_the_operands_of_a_barrier_are_cut() -> None:
    body = ONE + "  bar.sync 4294967297, 4294967328;\n"
    assert "barrier.cta.sync.aligned 1, 32" in program(OBJECT, entry(POINTER, body))


@pytest.mark.parametrize(("before", "body", "remark"), REMARKS)
def test_remarks(before: str, body: str, remark: str) -> None:
    test = launched(OBJECT, entry(POINTER, ONE + body, before=before))
    assert test.claims is not None and test.claims.remarks == (remark,)


FIRST = "the lanes that run are not the first ones of their warp"
OTHERS = " of the 32 lanes of this warp run, but this asks others too"


@pytest.mark.parametrize(
    ("lanes", "instruction", "message"),
    [
        ("1", "elect.sync _|%p1, 0xffffffff", FIRST),
        ("0,2", "shfl.sync.idx.b32 %r1, 1, 2, 31, 0xffffffff", FIRST),
        ("3", "bar.warp.sync 0x8", FIRST),
        ("0-1", "vote.sync.ballot.b32 %r1, 1, %r2", "2" + OTHERS),
        ("0-1", "vote.sync.ballot.b32 %r1, 1, 0xffffffff", None),
        ("0", "activemask.b32 %r1", "1" + OTHERS),
        ("0-1", "elect.sync _|%p1, 0xffffffff", None),
        ("0-1", "redux.sync.add.u32 %r1, 1, 3", None),
        ("0-1", "shfl.sync.idx.b32 %r1, 1, 1, 31, 0xffffffff", None),
        ("3", "bar.warp.sync 0xffffffff", None),
    ],
)
def test_lanes_that_a_warp_needs(lanes: str, instruction: str, message: str | None) -> None:
    """An instruction of a warp needs its first lanes, and one that gathers values all those that its mask names."""
    toml = f'block = 64\nthreads = "warp 1 lane {lanes}"\n' + OBJECT
    module = entry(POINTER, f"  {instruction};\n" + STORE.format("%r1" if "%r1" in instruction else "1"))
    if message is None:
        assert len(launched(toml, module).threads) == (2 if "-" in lanes else 1)
        return
    with pytest.raises(PtxmmError) as caught:
        launched(toml, module)
    assert (caught.value.kind, caught.value.message, caught.value.line) == ("unsupported", message, 14)


@pytest.mark.parametrize("engine", ["z3", "enumerate", "both"])
@pytest.mark.parametrize(
    "name", ["redux.sync.add.u32 %r1, 1", "vote.sync.ballot.b32 %r1, 1", "match.any.sync.b32 %r1, 1"]
)
def test_what_lanes_give_that_do_not_run_is_not_known(name: str, engine: str) -> None:
    """Races do not depend on it, the stored value does."""
    toml = 'block = 64\nthreads = "warp 1 lane 0-1"\nargs = ["x"]\nobjects.x = { type = "u32", count = 2 }\n'
    module = entry(
        POINTER,
        f"  {name}, 0xffffffff;\n  ld.param.u64 %rd1, [p0];\n  st.global.u32 [%rd1+4], %r1;\n" + STORE.format("1"),
    )
    test = launched(toml + '[check]\ncondition = "forall (x[0] == 1)"\n', module)
    result = decide(test, model_named("ptx-8.5"), engine=engine)
    assert result.holds and result.flags == ("data-race",)
    for wrong in ("x[1] == 3", "P0:%r1 == 3"):
        test = launched(toml + f'[check]\ncondition = "exists ({wrong})"\n', module)
        with pytest.raises(PtxmmError) as caught:
            decide(test, model_named("ptx-8.5"), engine=engine)
        assert caught.value.message == ABSENT
        assert caught.value.line is not None


def test_calls_and_indexed_branches_are_inlined() -> None:
    module = entry(
        POINTER,
        "  mov.u32 %r1, %ctaid.x;\n  { .param .b32 a; .param .b32 r; st.param.b32 [a], %r1;\n"
        "  call.uni (r), twice, (a); ld.param.b32 %r2, [r]; }\n"
        + STORE.format("%r2")
        + "ts: .branchtargets L1, L2;\n  brx.idx %r1, ts;\nL1:\n  st.global.u32 [%rd2], 8;\n  ret;\nL2:\n"
        "  st.global.u32 [%rd2], 9;\n",
        before=".func (.param .b32 r) twice(.param .b32 a)\n{\n  .reg .b32 %r<3>;\n  ld.param.b32 %r1, [a];\n"
        "  add.s32 %r2, %r1, %r1;\n  st.param.b32 [r], %r2;\n  ret;\n}\n",
    )
    assert program("grid = 2\n" + OBJECT, module) == [
        "st.global.u32 [x], 0 | st.global.u32 [x], 2",
        "st.global.u32 [x], 8 | st.global.u32 [x], 9",
    ]


INDEXED = """  ld.param.u64 %rd1, [p0];
  ld.global.u32 %r1, [%rd1];
ts: .branchtargets L1, L2;
  brx.idx %r1, ts;
L1:
  st.global.u32 [%rd1+4], 8;
  ret;
L2:
  st.global.u32 [%rd1+4], 9;
"""


@pytest.mark.parametrize(("index", "status"), [(0, "complete"), (1, "complete"), (2, "undefined"), (7, "undefined")])
def test_an_index_beyond_the_targets_has_no_meaning(index: int, status: str) -> None:
    toml = f'args = ["x"]\n[objects]\nx = {{ type = "u32", init = [{index}, 0] }}\n'
    result = decide(launched(toml, entry(POINTER, INDEXED)), model_named("ptx-8.5"), engine="both")
    assert result.status == status
    if status == "complete":
        assert [outcome.memory["x[1]"] for outcome in result.outcomes] == [8 + index]


@pytest.mark.parametrize(("toml", "body", "message"), [
    (OBJECT, "  brx.idx %r1;\n", "`brx.idx` has an index and a list of targets"),
    (OBJECT, "  brx.idx %r1, nowhere;\n", "no `.branchtargets` is called `nowhere`"),
    ('args = ["x+' + "9" * 5000 + '"]\nobjects.x = "u32"\n', "", "is neither an object nor an object and an offset"),
])  # fmt: skip
def test_what_is_wrong_is_said(toml: str, body: str, message: str) -> None:
    with pytest.raises(PtxmmError, match=re.escape(message)) as caught:
        launched(toml, entry(POINTER, body))
    assert caught.value.line


@pytest.mark.parametrize("what", ["kernel", "register", "variable", "label", "object"])
def test_long_names(what: str) -> None:
    name = "v" * 3000
    body = f"  .reg .b32 %{name}; mov.u32 %{name}, 4; {name}: ld.param.u64 %rd1, [p0]; st.global.u32 [%rd1], %{name};\n"
    module = entry(POINTER, body, name if what == "kernel" else "k", f".global .u32 {name}0;\n")
    toml = OBJECT if what != "object" else f'args = ["{name}"]\nobjects.{name} = "u32"\n'
    assert decide(launched(toml, module), model_named("ptx-8.5")).status == "complete"


def test_long_initial_values() -> None:
    before = f".global .b8 big[60000] = {{{', '.join(['1'] * 60000)}}};\n"
    body = "  ld.param.u64 %rd1, [p0]; ld.global.u32 %r1, [big+59996]; st.global.u32 [%rd1], %r1;\n"
    result = decide(launched(OBJECT, entry(POINTER, body, before=before)), model_named("ptx-8.5"))
    assert [outcome.memory["x"] for outcome in result.outcomes] == [0x01010101]


# -- the commands --------------------------------------------------------------------------------------------------

KERNELS = ("mp_fence_relaxed.wrong_no_producer_fence", "host_flag.wrong_relaxed", "cluster_histogram")


def _ptxmm(*arguments: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        run(list(arguments))
    captured = capsys.readouterr()
    return ended.value.code if isinstance(ended.value.code, int) else 0, captured.out, captured.err


def _steady(text: str) -> str:
    text = re.sub(r"in [0-9.]+ s:", "in T s:", text)
    return re.sub(r'"seconds": [0-9.e-]+', '"seconds": 0', text)


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT / "tests" / "cuda")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "argv", ["ptxmm"])


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize("name", KERNELS)
def test_check(name: str, golden: Golden, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = _ptxmm("check", f"{name}.ptx", "--jobs", "1", capsys=capsys)
    assert (code, err) == (int("wrong" in name), "")
    golden(f"kernel-check-{name}.txt", _steady(out))


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize("name", KERNELS)
def test_check_as_json(name: str, golden: Golden, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = _ptxmm("check", f"{name}.ptx", "--jobs", "1", "--json", capsys=capsys)
    assert (code, err) == (int("wrong" in name), "")
    golden(f"kernel-check-{name}.json", _steady(out))
    for entry_ in json.loads(out)["results"]:
        assert entry_["expected"] == "holds"
        assert (entry_["execution"] is not None) == ("wrong" in name)


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize("name", KERNELS)
def test_extract(name: str, golden: Golden, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = _ptxmm("extract", f"{name}.ptx", capsys=capsys)
    assert (code, err) == (0, "")
    golden(f"kernel-extract-{name}.txt", out)


@pytest.mark.usefixtures("cuda")
def test_help_of_extract(golden: Golden, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = _ptxmm("extract", "--help", capsys=capsys)
    assert (code, err) == (0, "")
    golden("help-extract.txt", out)


def test_a_mistake_is_bad_input(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "k.toml").write_text("grd = 2\n")
    message = (
        "k.toml:1:1: error: `grd` is not part of a launch specification\n  grd = 2\n  ^^^^\n"
        "  hint: did you mean `grid`?\n"
    )
    code, out, err = _ptxmm("check", "k.ptx", capsys=capsys)
    assert (code, err) == (2, message)
    assert _ptxmm("extract", "k.ptx", capsys=capsys) == (2, "", message)
    code, out, _ = _ptxmm("check", "k.ptx", "--json", capsys=capsys)
    (found,) = json.loads(out)["results"]
    assert code == 2
    assert found["error"] == {
        "kind": "format",
        "message": "`grd` is not part of a launch specification",
        "line": 1,
        "column": 1,
        "hint": "did you mean `grid`?",
    }


def test_every_property_has_a_verdict(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "k.toml").write_text(
        GOOD + 'check = { condition = "forall (x == 1)", races = "none", robust = true }\n[[launch]]\nname = "one"\n'
        '[[launch]]\nname = "two"\ngrid = 2\n'
    )
    code, out, err = _ptxmm("check", "k.ptx", "--jobs", "1", capsys=capsys)
    assert (code, err) == (1, "")
    lines = [line for line in out.splitlines() if line[:4] in ("ok  ", "FAIL")]
    assert [re.sub(r"\s+", " ", line) for line in lines] == [
        "ok k.ptx ptx-8.5 always forall: yes [k (one)]",
        "ok k.ptx ptx-8.5 holds no data races: yes [k (one)]",
        "ok k.ptx ptx-8.5 holds robust: yes [k (one)]",
        "ok k.ptx ptx-8.5 always forall: yes [k (two)] data-race",
        "FAIL k.ptx ptx-8.5 fails no data races: no [k (two)] expected holds",
        "ok k.ptx ptx-8.5 holds robust: yes [k (two)]",
    ]


BARRIERS = {
    "deadlock": "  bar.sync 0, 64;\n",
    "vacuous": "  .shared .align 8 .b64 b;\n  mbarrier.init.shared.b64 [b], 32;\n  bar.sync 0;\n"
    "  mbarrier.arrive.shared.b64 %rd3, [b];\nL:\n  mbarrier.try_wait.shared.b64 %p1, [b], %rd3;\n  @!%p1 bra L;\n",
}


@pytest.mark.parametrize("flag", BARRIERS)
def test_threads_that_are_missing_at_a_barrier(folder: Path, flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A condition does not hold for lack of executions, and nothing is said of races."""
    (folder / "k.ptx").write_text(entry(POINTER, BARRIERS[flag] + ONE))
    for check, code in (('condition = "forall (x == 1)"', 1), ('races = "none"', 3)):
        (folder / "k.toml").write_text(
            'args = ["x"]\nblock = 64\nthreads = "warp 0 lane 0"\nobjects.x = "u32"\n[check]\n' + check
        )
        found, out, _ = _ptxmm("check", "k.ptx", "--json", capsys=capsys)
        (result,) = json.loads(out)["results"]
        assert (found, flag in result["flags"]) == (code, code == 1)


# -- what docs/modules.md shows ------------------------------------------------------------------------------------

PAGE = (ROOT / "docs" / "modules.md").read_text(encoding="utf-8")
OUTSIDE = """// ptxmm: args = ["x"]
// ptxmm: objects.x = "u32"
// ptxmm: check.races = "none"
.version 8.5
.target sm_90
.address_size 64
.visible .entry k(.param .u64 a)
{
  .reg .b64 %rd<3>;
  .reg .b32 %r<3>;
  ld.param.u64 %rd1, [a];
  st.global.u32 [%rd1+64], 1;
  ret;
}
"""
LOOP = """// ptxmm: args = ["lock", "n"]
// ptxmm: [objects]
// ptxmm: lock = "u32"
// ptxmm: n = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (n == 51)"
.version 8.5
.target sm_90
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b)
{
  .reg .pred %p<2>;
  .reg .b32 %r<4>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [a];
  ld.param.u64 %rd2, [b];
again:
  atom.relaxed.gpu.global.cas.b32 %r1, [%rd1], 0, 1;
  setp.ne.s32 %p1, %r1, 0;
  @%p1 bra again;
more:

  atom.relaxed.gpu.global.add.u32 %r2, [%rd2], 1;
  setp.lt.u32 %p1, %r2, 50;
  @%p1 bra more;
  st.release.gpu.global.u32 [%rd1], 0;
  ret;
}
"""


@pytest.mark.parametrize(("name", "text"), [("oob.ptx", OUTSIDE), ("loop.ptx", LOOP)])
def test_inconclusive_answers(folder: Path, name: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / name).write_text(text)
    code, out, err = _ptxmm("check", name, capsys=capsys)
    assert (code, err) == (3, "")
    assert f"```\n{out}```\n" in PAGE


def test_the_specifications_of_the_page() -> None:
    """Each TOML block is one that is read; with the objects that the others leave to a module."""
    blocks = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 6
    assert [len(parse_launches(block, "page.toml")) for block in blocks] == [1, 1, 1, 1, 1, 2]
