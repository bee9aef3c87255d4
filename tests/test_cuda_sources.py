"""CUDA sources as input: which nvcc is asked for what, what it may answer, and what is done without it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ptxmm.errors import PtxmmError
from ptxmm.formats import Compiling, read
from tests.commands import Run
from tests.moments import wait_for
from tests.support import ROOT

NAME = "mp_release_acquire_gpu"
SOURCE = (ROOT / "tests" / "cuda" / f"{NAME}.cu").read_text(encoding="utf-8")
PRINTED = ROOT / "tests" / "cuda" / f"{NAME}.ptx"
SCRIPT = """#!/bin/sh
printf '%s\\n' "$*" > "$0.asked"
while [ "$1" != -o ]; do shift; done
{}
"""


class Bench:
    """A folder with a source, and an nvcc that does as it is told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.source = folder / f"{NAME}.cu"
        self.source.write_text(SOURCE)
        self.nvcc = folder / "bin" / "nvcc"
        self.nvcc.parent.mkdir()

    def install(self, does: str) -> None:
        """``does``: what the shell script does once ``$2`` is the file to write."""
        self.nvcc.write_text(SCRIPT.format(does))
        self.nvcc.chmod(0o755)

    def asked(self) -> list[str]:
        return (self.folder / "bin" / "nvcc.asked").read_text().split()

    def refused(self) -> PtxmmError:
        with pytest.raises(PtxmmError) as caught:
            read(self.source)
        return caught.value


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench(tmp_path)
    monkeypatch.setenv("PATH", f"{made.nvcc.parent}:/usr/bin:/bin")
    monkeypatch.setattr("shutil.which", lambda name: str(made.nvcc) if made.nvcc.exists() else None)
    return made


def test_the_command(bench: Bench) -> None:
    bench.install(f"cat {PRINTED} > $2")
    (test,) = read(bench.source)
    asked = bench.asked()
    assert asked[:3] == ["-ptx", "-lineinfo", "-arch=sm_90"]
    assert asked[-1] == f"./{NAME}.cu"
    assert test.file == str(bench.source) and test.claims is not None and test.claims.remarks == ()
    lines = {op.source.span.line for thread in test.threads for op in thread.body}
    assert lines <= set(range(1, SOURCE.count("\n") + 1)) and len(lines) > 3


@pytest.mark.parametrize(
    ("comment", "flags"),
    [
        ("// nvcc: -std=c++20 -DN='a b'", ["-arch=sm_90", "-std=c++20", "-DN=a", "b"]),
        ("// nvcc: -arch=sm_90a", ["-arch=sm_90a"]),
        ("  //nvcc:-gencode arch=compute_90,code=sm_90", ["-gencode=arch=compute_90,code=sm_90"]),
    ],
)
def test_flags_of_the_source(bench: Bench, comment: str, flags: list[str]) -> None:
    bench.install(f"cat {PRINTED} > $2")
    bench.source.write_text(f"{comment}\n{SOURCE}")
    read(bench.source)
    asked = bench.asked()
    assert asked[2 : asked.index("-o")] == flags


def test_flags_that_are_none(bench: Bench) -> None:
    bench.install("true")
    bench.source.write_text(f"{SOURCE}// nvcc: -D'A\n")
    error = bench.refused()
    line = SOURCE.count("\n") + 1
    assert (error.kind, error.line) == ("format", line)
    message = "these options of nvcc can't be read: no closing quotation"
    assert str(error).startswith(f"{bench.source}:{line}:10: error: {message}")


@pytest.mark.parametrize(
    "option",
    [
        "-ccbin=./evil", "-ccbin ./evil", "--compiler-bindir=./evil", "-Xcompiler -fplugin=x", "-run", "-optf args",
        "--options-file=args", "-D'A=$(touch x)'", "-D'A=`touch x`'", "-I';touch x'", "-arch='sm_90;x'", "-o out",
        "-include other.h", "-keep-dir=x", "-dryrun", "other.cu", "-MD", "-D'A=\"x\"'", "-odir x", "-Wl,x",
    ],
)  # fmt: skip
def test_options_that_a_source_may_not_ask_for(bench: Bench, option: str) -> None:
    """They could run a program or write a file: nvcc hands what it is given to a shell."""
    bench.install(f"cat {PRINTED} > $2")
    bench.source.write_text(f"// nvcc: -std=c++17 {option}\n{SOURCE}")
    error = bench.refused()
    assert (error.kind, error.line) == ("usage", 1)
    assert error.message.startswith("a source may not ask nvcc for `")
    assert error.hint is not None and "--nvcc-option=" in error.hint
    assert not (bench.folder / "bin" / "nvcc.asked").exists()


def test_options_that_a_source_may_ask_for(bench: Bench) -> None:
    options = (
        "-arch=sm_90a -std=c++20 -Iinclude -I ../other -DN=4 -D M -UX --expt-relaxed-constexpr --expt-extended-lambda "
        "-O2 -O 1 -G -g -lineinfo --use_fast_math -ftz=true -maxrregcount=64 -rdc=true -w"
    )
    bench.install(f"cat {PRINTED} > $2")
    bench.source.write_text(f"// nvcc: {options}\n{SOURCE}")
    read(bench.source)
    joined = re.sub(r"(-[IDO]) ", r"\1", options)
    assert " ".join(bench.asked()[2:]).startswith(joined)


def test_options_of_the_user(bench: Bench) -> None:
    bench.install(f"cat {PRINTED} > $2")
    read(bench.source, compiling=Compiling(("-ccbin=/opt/gcc",)))
    assert bench.asked()[2:5] == ["-arch=sm_90", "-ccbin=/opt/gcc", "-o"]


def test_a_name_that_a_shell_would_run(bench: Bench) -> None:
    bench.install(f"cat {PRINTED} > $2")
    path = bench.folder / "$(touch x).cu"
    path.write_text(SOURCE)
    with pytest.raises(PtxmmError, match="nvcc would take a part of this name for a command") as caught:
        read(path)
    assert caught.value.kind == "usage"
    dashed = bench.folder / "-run.cu"
    dashed.write_text(SOURCE)
    read(dashed)
    assert bench.asked()[-1] == "./-run.cu"


def test_an_error_of_nvcc(bench: Bench) -> None:
    bench.install(f"echo 'warning: x' >&2; echo '{NAME}.cu(31): error: expected a \";\"' >&2; exit 1")
    error = bench.refused()
    assert (error.kind, error.line, error.message) == ("syntax", 31, 'nvcc: expected a ";"')
    bench.install("echo 'helper.cuh(3): error: no' >&2; exit 1")
    assert bench.refused().message == "nvcc: no (helper.cuh:3)"
    bench.install("printf 'fatal \\377\\n' >&2; exit 1")
    assert bench.refused().message.startswith("nvcc failed: fatal ")
    bench.install("exit 1")
    assert bench.refused().message == "nvcc failed: no message"
    bench.install("exit 0")
    assert bench.refused().message == "nvcc failed: no message"


def test_an_nvcc_that_never_ends(bench: Bench) -> None:
    bench.install("sleep 30 & echo $! > pid; wait")
    with pytest.raises(PtxmmError, match="nvcc took more than") as caught:
        read(bench.source, compiling=Compiling(seconds=0.5))
    assert caught.value.kind == "timeout"
    child = int((bench.folder / "pid").read_text())
    assert not list(wait_for([child]))


def test_an_nvcc_that_is_no_program(bench: Bench) -> None:
    bench.install("true")
    bench.nvcc.write_bytes(b"\0\1")
    error = bench.refused()
    assert error.kind == "io" and error.message.startswith("nvcc can't be run: ")


def test_without_nvcc(bench: Bench) -> None:
    error = bench.refused()
    assert (error.kind, error.message) == ("io", "nvcc was not found, and CUDA needs it")
    assert error.hint == (f"put nvcc on the PATH, or compile it elsewhere: nvcc -ptx -lineinfo -arch=sm_90 {NAME}.cu")
    bench.source.with_suffix(".ptx").write_bytes(PRINTED.read_bytes())
    (test,) = read(bench.source)
    assert test.claims is not None and test.claims.remarks == (f"nvcc was not found: {NAME}.ptx was checked",)


def test_what_nvcc_prints_can_be_wrong(bench: Bench) -> None:
    """An error of the PTX names the PTX."""
    bench.install("printf '.version 9.0\\n.target sm_90\\n.address_size 64\\n.visible .entry mp(\\n' > $2")
    error = bench.refused()
    assert error.file == str(bench.source.with_suffix(".ptx")) and error.line is not None


@pytest.mark.parametrize(("old", "new"), [
    (r"\.loc\s+1 \d+ \d+(?!,)", ".loc 1 0 0"), (r"\.loc\s+(\d) 2\d \d+", r".loc \1 0 0"),
    (r"\.loc\s+1 (\d+)", r".loc 1 99\1"), (r"inlined_at 1 \d+", "inlined_at 1 0"), (r"\.loc[^\n]*\n", "\n"),
    (r"(?m)^\s*\.file[^\n]*$", ""), (r"\.loc\s+1", ".loc 7"),
])  # fmt: skip
def test_places_are_lines_of_the_source(bench: Bench, old: str, new: str) -> None:
    """Whatever the line information is: `.loc 1 0` is what compilers write of an instruction that has no line."""
    text = PRINTED.read_text(encoding="utf-8")
    changed = re.sub(old, new, text)
    assert changed != text
    bench.source.with_suffix(".ptx").write_text(changed)
    (test,) = read(bench.source)
    rows = SOURCE.split("\n")
    spans = [op.source.span for thread in test.threads for op in thread.body]
    assert all(0 < span.line <= len(rows) and span.column <= len(rows[span.line - 1]) + 1 for span in spans)
    calls = re.findall(r"called on line ([0-9, ]+)", " ".join(op.source.text for t in test.threads for op in t.body))
    assert all(0 < int(line) <= len(rows) for found in calls for line in found.split(","))


def test_places_of_a_kernel_of_another_file(bench: Bench) -> None:
    """A kernel that an included file defines has its places there: beside the instruction, with those of calls."""
    text = PRINTED.read_text(encoding="utf-8")
    said = []
    for other in (text, re.sub(r'(\.file\s+1 ")[^"]*"', r'\1include/other.cuh"', text)):
        bench.source.with_suffix(".ptx").write_text(other)
        (test,) = read(bench.source)
        said.append([op.source for thread in test.threads for op in thread.body])
    for here, there in zip(*said, strict=True):
        bare, _, calls = here.text.partition(" (")
        assert there.text == f"{bare} (in other.cuh:{here.span.line}{', ' + calls if calls else ')'}"
    assert any(", called on line" in there.text for there in said[1])


ADDED = """\
// ptxmm: block = 65
// ptxmm: args = ["x"]
// ptxmm: objects = { x = "f32" }
// ptxmm: [check]
// ptxmm: condition = "forall (x == 2.0)"
"""
ADDS = """\
.version 8.5
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p)
{
    .reg .pred %p<2>;
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p1, %r1, 63;
    @%p1 bra L;
    red.relaxed.gpu.global.add.f32 [%rd1], 0f3F800000;
L:
    ret;
}
"""


def test_a_source_is_compiled_once(bench: Bench, run_command: Run) -> None:
    """Where one execution of all threads does not decide, all are listed, of the same PTX."""
    bench.source.write_text(ADDED)
    (bench.folder / "printed").write_text(ADDS)
    bench.install(f"echo once >> {bench.folder}/times; cat {bench.folder}/printed > $2")
    assert run_command("check", "--whole", str(bench.source)).code == 3
    ran = run_command("check", str(bench.source))
    assert ran.code == 0 and "all of them was asked" not in ran.out, ran
    assert (bench.folder / "times").read_text().split() == ["once", "once"]
