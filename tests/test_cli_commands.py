"""The commands, as a user runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

import ptxmm.analysis.search as search_module
from tests.commands import Ran, Run, steady

Golden = Callable[[str, str], None]

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}

MP = """PTX MP
Expect=ptx-6.0:never ptx-8.5:never
{
  .global .u32 data = 0;
  .global .u32 flag = 0;
}
 P0 @ cta 0                          | P1 @ cta 1                           ;
 st.global.u32 [data], 1             | ld.acquire.gpu.global.u32 r0, [flag] ;
 st.release.gpu.global.u32 [flag], 1 | ld.global.u32 r1, [data]             ;
exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""
SB = """PTX SB
{
  .global .s32 x = -1;
  .global .u64 p = 0;
}
 P0 @ cta 0                     | P1 @ cta 1                        ;
 st.relaxed.gpu.global.s32 [x], -2 | ld.relaxed.gpu.global.s32 r0, [x] ;
 mov.u64 r1, x                     | ;
 st.relaxed.gpu.global.u64 [p], r1 | ;
exists (P1:r0 == -2)
locations [p;]
"""
LOOP = """PTX LOOP
{
  .global .u32 x = 0;
}
 P0 @ cta 0 {
 again:
   atom.add.relaxed.gpu.global.u32 r0, [x], 1;
   setp.lt.u32 p, r0, 100;
   @p bra again;
 }
exists (x == 101)
"""
BAD = MP.replace("st.release.gpu", "st.acquire.gpu")


@pytest.fixture
def ptxmm(tmp_path: Path, run_command: Run) -> Run:
    """Run a command line in an empty folder with a few tests, in this process."""
    for name, text in (("mp.litmus", MP), ("sb.litmus", SB), ("loop.litmus", LOOP), ("bad.litmus", BAD)):
        (tmp_path / name).write_text(text)
    return run_command


@pytest.mark.skipif(
    version("typer") >= "0.29", reason="typer 0.29 words its help differently, and is not what ptxmm asks for"
)
@pytest.mark.parametrize("command", ["", "check", "outcomes", "convert", "models", "serve", "site"])
def test_help(ptxmm: Run, golden: Golden, command: str) -> None:
    ran = ptxmm(*command.split(), "--help")
    assert (ran.code, ran.err) == (0, "")
    golden(f"help-{command or 'ptxmm'}.txt", ran.out)


def test_version(ptxmm: Run) -> None:
    assert ptxmm("--version").out == "ptxmm 0.1.0\n"


def test_check(ptxmm: Run, golden: Golden) -> None:
    ran = ptxmm("check", "mp.litmus", "--model", "ptx-6.0", "--model", "sc")
    assert (ran.code, ran.err) == (0, "")
    golden("check-mp.txt", steady(ran.out))


def test_check_takes_the_models_of_the_expectation(ptxmm: Run) -> None:
    ran = ptxmm("check", "mp.litmus")
    assert [line.split()[2] for line in ran.out.splitlines()[:2]] == ["ptx-6.0", "ptx-8.5"]


def test_outcomes(ptxmm: Run, golden: Golden) -> None:
    ran = ptxmm("outcomes", "mp.litmus", "sb.litmus", "--jobs", "1")
    assert (ran.code, ran.err) == (0, "")
    golden("outcomes.txt", steady(ran.out))


def test_outcomes_of_all_state(ptxmm: Run, golden: Golden) -> None:
    ran = ptxmm("outcomes", "sb.litmus", "--all-state")
    assert (ran.code, ran.err) == (0, "")
    golden("outcomes-all-state.txt", steady(ran.out))


def test_a_limited_list_has_what_decides_the_test(ptxmm: Run) -> None:
    ran = ptxmm("outcomes", "mp.litmus", "--model", "ptx-8.5", "--limit", "2", "--json")
    (result,) = json.loads(ran.out)["results"]
    assert (ran.code, result["listed"], result["holds"], result["status"]) == (0, False, False, "complete")
    assert len(result["outcomes"]) == 2
    assert "States 2+" in ptxmm("outcomes", "mp.litmus", "--model", "ptx-8.5", "--limit", "2").out
    whole = ptxmm("outcomes", "mp.litmus", "--model", "ptx-8.5", "--json").out
    many = ptxmm("outcomes", "mp.litmus", "--model", "ptx-8.5", "--json", "--limit", "50").out
    assert steady(many) == steady(whole)
    assert ptxmm("outcomes", "mp.litmus", "--limit", "0").code == 2


def test_json(ptxmm: Run, golden: Golden) -> None:
    ran = ptxmm("outcomes", "mp.litmus", "sb.litmus", "bad.litmus", "missing.litmus", "--jobs", "1", "--json")
    assert (ran.code, ran.err) == (2, "")
    golden("outcomes.json", steady(ran.out))


def test_check_and_outcomes_list_the_same(ptxmm: Run) -> None:
    documents = [json.loads(ptxmm(command, "mp.litmus", "--json").out) for command in ("check", "outcomes")]
    for document in documents:
        for result in document["results"]:
            result["seconds"] = 0
    assert documents[0] == documents[1]


@pytest.mark.parametrize("engine", ["auto", "z3", "enumerate", "both"])
def test_engines(ptxmm: Run, engine: str) -> None:
    ran = ptxmm("outcomes", "mp.litmus", "--model", "ptx-8.5", "--engine", engine, "--json")
    (result,) = json.loads(ran.out)["results"]
    assert result["engine"] == ("z3" if engine == "auto" else engine)
    assert [list(o["registers"].values()) for o in result["outcomes"]] == [[0, 0], [0, 1], [1, 1]]


def test_bounded(ptxmm: Run, golden: Golden) -> None:
    ran = ptxmm("check", "loop.litmus")
    assert ran.code == 3
    golden("check-bounded.txt", ran.out)
    assert ptxmm("outcomes", "loop.litmus").code == 3


def test_undefined_is_inconclusive_unless_it_is_expected(ptxmm: Run) -> None:
    """Every command, in text and JSON: what has no meaning settles nothing."""
    program = (
        "PTX u\n{}{{ .global .u32 x = 0; }}\nP0 @ cta 0 {{ bar.arrive 0, 64; bar.arrive 0, 64; }}\n"
        "P1 @ cta 1 {{ ld.global.u32 r0, [x]; }}\n{}\n"
    )
    Path("open.litmus").write_text(program.format("", "exists (P1:r0 == 1)"))
    Path("met.litmus").write_text(program.format("Expect=ptx-8.5:undefined\n", "exists (P1:r0 == 1)"))
    Path("contradicted.litmus").write_text(program.format("Expect=ptx-8.5:never\n", "exists (P1:r0 == 1)"))
    Path("claimed.litmus").write_text(program.format("", "~exists (P1:r0 == 1)"))
    for options in ([], ["--json"]):
        for command in ("check", "outcomes", "explain", "races", "fences", "robust", "scopes", "progress"):
            assert ptxmm(command, "open.litmus", *options).code == 3, command
        assert ptxmm("compare", "--models", "ptx-8.5", "sc", "open.litmus", *options).code == 3
        assert ptxmm("compare", "open.litmus", "met.litmus", *options).code == 3
        for command in ("check", "outcomes"):
            codes = [ptxmm(command, f"{name}.litmus", *options).code for name in ("met", "contradicted", "claimed")]
            assert codes == [0, 1, 1], command
        for command in ("explain", "races", "fences", "robust", "scopes", "progress"):
            assert ptxmm(command, "met.litmus", *options).code == 3, command


def test_pool_and_process_agree(ptxmm: Run) -> None:
    files = ["sb.litmus", "loop.litmus", "mp.litmus", "bad.litmus"]
    alone, together = (ptxmm("check", *files, "--jobs", n) for n in "12")
    assert steady(alone.out) == steady(together.out)
    assert (alone.err, alone.code) == (together.err, together.code)
    assert alone.code == 2


def test_a_folder_is_searched(ptxmm: Run, tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "b.litmus").write_text(MP)
    (tmp_path / "deep" / "er" / "a.litmus").write_text(MP)
    (tmp_path / "deep" / "notes.txt").write_text("no test")
    ran = ptxmm("check", "deep", "deep/b.litmus", "--model", "sc", "--jobs", "1")
    assert [line.split()[1] for line in ran.out.splitlines()[:-1]] == ["deep/b.litmus", "deep/er/a.litmus"]
    assert ran.out.splitlines()[-1].startswith("2 checked in ")


def test_bad_files(ptxmm: Run, tmp_path: Path, golden: Golden) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "latin.litmus").write_bytes(b"PTX caf\xe9\n")
    names = ["bad.litmus", "missing.litmus", "litmus/", "empty", "latin.litmus", "mp.litmus"]
    ran = ptxmm("check", *names, "--model", "sc", "--jobs", "1")
    assert ran.code == 2
    golden("check-bad-files.txt", steady(ran.out) + "--- stderr\n" + ran.err)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("check",), "error: no file given\n  hint: give files or folders, or --bundled\n"),
        (
            ("check", "mp.litmus", "--model", "ptx-9"),
            "error: unknown model `ptx-9`\n  hint: did you mean `ptx-8.5`? "
            "models: ptx-6.0, ptx-7.5, ptx-8.5, sc, or a file FILE.cat\n",
        ),
        (
            ("check", "mp.litmus", "--model", "sc", "--reading", "dep"),
            "error: --reading dep: expected KEY=VALUE\n  hint: e.g. --reading dep=syn\n",
        ),
        (
            ("check", "mp.litmus", "--model", "sc", "--reading", "dep=sin"),
            "error: reading `dep` has no value `sin`\n  hint: values: value, sem, syn\n",
        ),
        (("check", "mp.litmus", "--timeout", "nan"), "error: --timeout nan: at most 100000000 seconds\n"),
    ],
)
def test_bad_usage(ptxmm: Run, arguments: tuple[str, ...], message: str) -> None:
    assert ptxmm(*arguments) == Ran(2, "", message)


@pytest.mark.parametrize("arguments", [("chek",), ("check", "--frobnicate"), ("check", "a", "--unroll", "x")])
def test_usage_errors_of_the_parser(ptxmm: Run, arguments: tuple[str, ...]) -> None:
    ran = ptxmm(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert "Error: " in ran.err


def test_a_model_that_lacks_something(ptxmm: Run, tmp_path: Path) -> None:
    (tmp_path / "cluster.litmus").write_text(MP.replace(".release.gpu", ".release.cluster"))
    ran = ptxmm("check", "cluster.litmus", "--model", "ptx-6.0")
    assert ran.code == 2
    assert ran.err == (
        "cluster.litmus:9:2: error: ptx-6.0 has no scope .cluster\n"
        "   st.release.cluster.global.u32 [flag], 1 | ld.global.u32 r1, [data]             ;\n"
        "   " + "^" * 39 + "\n"
        "  hint: use --model ptx-8.5 or --model sc\n"
    )


def test_names_that_are_no_text(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9\x1b.litmus")
    (tmp_path / name).write_text(BAD)
    ran = process("check", name, cwd=tmp_path, PYTHONIOENCODING="ascii")
    assert ran.returncode == 2
    assert ran.stderr.startswith("caf\\ufffd\\ufffd.litmus:9:4: error: ")
    ran = process("check", name, "--json", cwd=tmp_path)
    assert json.loads(ran.stdout)["results"][0]["file"] == name


def test_a_contradiction(ptxmm: Run, tmp_path: Path) -> None:
    (tmp_path / "wrong.litmus").write_text(MP.replace("ptx-8.5:never", "ptx-8.5:sometimes"))
    ran = ptxmm("check", "wrong.litmus")
    assert ran.code == 1
    assert "expected sometimes" in ran.out.splitlines()[1]


def test_readings_are_noted(ptxmm: Run) -> None:
    ran = ptxmm("outcomes", "mp.litmus", "--model", "ptx-8.5", "--reading", "dep=syn")
    assert "Note reading dep=syn\n" in ran.out


def test_the_time_limit(ptxmm: Run) -> None:
    ran = ptxmm("check", "loop.litmus", "--unroll", "900", "--timeout", "0.05", "--json")
    (result,) = json.loads(ran.out)["results"]
    assert (ran.code, result["status"], result["holds"]) == (3, "timeout", None)
    assert result["listed"] is False


def test_an_unconfirmed_witness_is_told(ptxmm: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from ptxmm.engines.explicit.witness import Confirmer, Unconfirmed

    def never(*arguments: object) -> None:
        raise Unconfirmed("the moon is full")

    monkeypatch.setattr(Confirmer, "confirm", never)
    ran = ptxmm("check", "mp.litmus", "--model", "ptx-8.5")
    assert ran.code == 4
    assert "mp.litmus: error: a witness under ptx-8.5 is not confirmed: the moon is full" in ran.err
    assert ran.out.startswith("error mp.litmus")


def test_engines_that_disagree_are_told(ptxmm: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    real = search_module._confirmed

    def lossy(name: str, *arguments: object) -> object:
        for found in real(name, *arguments):  # type: ignore[arg-type]
            if name == "enumerate":
                found.found.pop()
            yield found

    monkeypatch.setattr(search_module, "_confirmed", lossy)
    ran = ptxmm("check", "mp.litmus", "--model", "ptx-8.5", "--engine", "both")
    assert ran.code == 4
    assert "the engines disagree: 1 final states only in z3 and 0 final states only in enumerate" in ran.err


def test_no_traceback_reaches_the_user(ptxmm: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> None:
        raise KeyError("oops")

    monkeypatch.setattr(search_module, "_confirmed", broken)
    ran = ptxmm("check", "mp.litmus", "--model", "sc")
    assert ran.code == 4
    assert "mp.litmus: error: internal error: KeyError: 'oops'" in ran.err
    assert "Traceback" not in ran.err


def test_models(ptxmm: Run, golden: Golden) -> None:
    ran = ptxmm("models")
    assert (ran.code, ran.err) == (0, "")
    golden("models.txt", ran.out)
    assert "acyclic" in ptxmm("models", "sc").out


def test_convert_back_and_forth(ptxmm: Run) -> None:
    text = ptxmm("convert", "mp.litmus").out
    assert text.startswith("PTX MP\n")
    assert ptxmm("convert", "mp.litmus", "-o", "again.litmus").out == ""
    assert Path("again.litmus").read_text() == text
    assert ptxmm("convert", "again.litmus").out == text


def process(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ptxmm", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, env={**ENVIRONMENT, **environment})


def test_the_reader_of_the_output_goes_away(tmp_path: Path) -> None:
    (tmp_path / "mp.litmus").write_text(MP)
    command = f"{sys.executable} -m ptxmm outcomes mp.litmus --model sc | true; exit ${{PIPESTATUS[0]}}"
    ran = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, env=ENVIRONMENT)
    assert (ran.returncode, ran.stdout, ran.stderr) == (141, "", "")


def test_no_colour_in_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "mp.litmus").write_text(MP)
    ran = process("check", "mp.litmus", "--model", "sc", cwd=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "\x1b" not in ran.stdout


def test_a_pipe_is_no_litmus_test(ptxmm: Run, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.litmus")
    ran = ptxmm("check", "pipe.litmus", "/dev/zero")
    assert ran.code == 2
    assert ran.err == (
        "pipe.litmus: error: the file can't be read: Not a regular file\n"
        "/dev/zero: error: the file can't be read: Not a regular file\n"
    )


@pytest.mark.parametrize(
    ("redirection", "code", "err"),
    [
        (">&-", 0, ""),
        ("2>&-", 0, ""),
        (">/dev/full", 2, "error: No space left on device\n"),
        ("--engine=none 2>/dev/full", 2, ""),
    ],
)
def test_output_that_cannot_be_written(tmp_path: Path, redirection: str, code: int, err: str) -> None:
    (tmp_path / "mp.litmus").write_text(MP)
    command = f"{sys.executable} -m ptxmm check mp.litmus --model sc {redirection}"
    ran = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, env=ENVIRONMENT)
    assert (ran.returncode, ran.stderr) == (code, err)


def test_a_model_of_the_users_own_is_called_by_its_path(ptxmm: Run, tmp_path: Path) -> None:
    (tmp_path / "ptx-8.5.cat").write_text('"Nothing is forbidden"\n')
    ran = ptxmm("check", "mp.litmus", "--model", "ptx-8.5.cat", "--model", "ptx-8.5", "--json")
    found = [(r["model"], r["observation"], r["expected"]) for r in json.loads(ran.out)["results"]]
    assert found == [("ptx-8.5.cat", "sometimes", None), ("ptx-8.5", "never", "never")]


def test_a_wrong_reading_is_one_error(ptxmm: Run) -> None:
    """And not one of every model that is named in Expect=."""
    for reading, message in (("foo=bar", "unknown reading `foo`"), ("dep=foo", "reading `dep` has no value `foo`")):
        ran = ptxmm("check", "mp.litmus", "--reading", reading)
        assert ran.code == 2 and ran.err.count("error: ") == 1 and message in ran.err and ran.out == ""
