"""``ptxmm lint``: files, options, settings, forms of the output, exit codes, mends."""

from __future__ import annotations

import io
import json
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import ptxmm
from ptxmm.analysis.lint import RULES
from ptxmm.cli.app import run
from tests.support import ROOT

WRONG = """\
__device__ int ld_acquire(const int* p) {
  int v;
  asm("ld.relaxed.gpu.s32 %0, [%1];" : "=r"(v) : "l"(p));
  return v;
}
"""
RIGHT = '__device__ void fence_gpu() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }\n'


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def lint(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as end:
        run(["lint", *arguments])
    out, err = capsys.readouterr()
    return int(end.value.code or 0), out, err


def rules(out: str) -> list[str]:
    return [f["rule"]["id"] for file in json.loads(out)["results"] for f in file.get("findings", ())]


def test_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.cu").write_text(WRONG)
    (tmp_path / "b.cuh").write_text(RIGHT)
    code, out, err = lint(capsys, ".")
    assert (code, err) == (1, "")
    assert out.split("\n")[:4] == [
        "a.cu:3:3: warning: PTX101 `ld.relaxed.gpu.s32` loads from memory that may change, but the asm is not "
        "volatile: the compiler may delete, merge or move it [missing-volatile]",
        '    asm("ld.relaxed.gpu.s32 %0, [%1];" : "=r"(v) : "l"(p));',
        "    ^~~",
        '  mend: write asm volatile, with a "memory" clobber',
    ]
    assert "a.cu:3:10: warning: PTX502" in out
    assert out.split("\n")[6] == "           ^~~~~~~~"
    assert out.endswith("2 warnings (2 asm statements in 2 files); --fix mends 1\n")


def test_nothing_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "b.cuh").write_text(RIGHT)
    assert lint(capsys, "b.cuh") == (0, "nothing found (1 asm statement in 1 file)\n", "")


def test_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(WRONG.encode())))
    code, out, _ = lint(capsys, "-")
    assert code == 1
    assert out.startswith("<stdin>:3:3: warning: PTX101")


def test_what_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.cu").write_text(WRONG)
    (tmp_path / "empty").mkdir()
    code, out, err = lint(capsys, "missing.cu", "a.cu", "empty")
    assert code == 2
    assert "a.cu:3:3" in out
    assert "missing.cu: error: the file can't be read: No such file or directory" in err
    assert "empty: error: no CUDA or C++ source in this folder" in err


@pytest.mark.parametrize("options", [[], ["--fix"], ["--jobs", "2"]])
def test_a_file_that_takes_too_long_or_too_much(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told of, and the others are reported."""
    from ptxmm.analysis import lint as package
    from ptxmm.cli import workers

    linted = package.lint_text

    def patched(text: str, file: str, options: package.Options) -> package.LintResult:
        if file == "slow.cu":
            threading.Event().wait()
        if file == "large.cu":
            raise MemoryError
        if file == "wrong.cu":
            raise AssertionError("this can't be")
        return linted(text, file, options)

    monkeypatch.setattr(package, "lint_text", patched)
    monkeypatch.setattr(workers, "GRACE", 0.1)
    for name in ("a.cu", "slow.cu", "large.cu", "z.cu"):
        (tmp_path / name).write_text(WRONG)
    code, out, err = lint(capsys, ".", "--timeout", "0.3", "--output-format", "json", *options)
    document = json.loads(out)
    assert code == 1
    assert [(entry["analysis"], entry["file"]) for entry in document["results"]] == [
        ("lint", "a.cu"), ("lint", "z.cu"), ("error", "large.cu"), ("error", "slow.cu")
    ]  # fmt: skip
    assert "slow.cu: error: the time limit of 0.3 s ended the check of this file\n  hint: --timeout takes" in err
    assert "large.cu: error: " in err and "memory" in err
    assert lint(capsys, "slow.cu", "--timeout", "0.3", *options)[0] == 3
    (tmp_path / "wrong.cu").write_text(RIGHT)
    code, _, err = lint(capsys, "wrong.cu", *options)
    assert code == 4 and "wrong.cu: error: internal error" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no file given"),
        (["--select", "PTX999", "a.cu"], "no rule is called PTX999"),
        (["--disable", "missing-volatil", "a.cu"], "did you mean missing-volatile?"),
        (["--arch", "volta", "a.cu"], "--arch volta: not a target"),
        (["--isa", "8", "a.cu"], "--isa 8: not a version"),
        (["--fix", "-"], "standard input can't be mended"),
    ],
)
def test_bad_usage(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    code, _, err = lint(capsys, *arguments)
    assert code == 2
    assert message in err


def test_choice_of_rules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.cu").write_text(WRONG)

    def found(*arguments: str) -> list[str]:
        return rules(lint(capsys, "a.cu", "--output-format", "json", *arguments)[1])

    assert found() == ["PTX101", "PTX502"]
    assert found("--disable", "PTX101") == ["PTX502"]
    assert found("--select", "PTX5") == ["PTX502"]
    assert found("--select", "ALL", "--disable", "order-of-name") == ["PTX101"]
    assert found("--isa", "5.0") == ["PTX101", "PTX601", "PTX502"]
    assert found("--arch", "sm_60") == ["PTX101", "PTX602", "PTX502"]


@pytest.mark.parametrize(
    "text",
    [
        WRONG.replace("  asm", "  // ptxmm: ignore\n  asm"),
        WRONG.replace('"l"(p));', '"l"(p));  // ptxmm: ignore[PTX101, order-of-name]'),
        WRONG.replace('"ld', '// why: ptxmm: ignore\n      "ld'),
    ],
)
def test_comments_that_turn_rules_off(text: str) -> None:
    result = ptxmm.lint(text)
    assert result.findings == ()
    assert result.suppressed == 2


def test_a_comment_turns_off_what_it_names() -> None:
    text = WRONG.replace("  asm", "  // ptxmm: ignore[PTX502]\n  asm")
    assert [r.rule.id for r in ptxmm.lint(text).findings] == ["PTX101"]
    assert len(ptxmm.lint("// ptxmm: ignore\n" + WRONG).findings) == 2


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ptxmm.toml", '[lint]\ndisable = ["PTX101"]\nexclude = ["third_*.cu"]\n'),
        ("pyproject.toml", '[tool.ptxmm.lint]\ndisable = ["missing-volatile"]\nexclude = ["third_*.cu"]\n'),
    ],
)
def test_settings(name: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / name).write_text(text)
    (tmp_path / "a.cu").write_text(WRONG)
    (tmp_path / "third_party.cu").write_text(WRONG)
    assert rules(lint(capsys, ".", "--output-format", "json")[1]) == ["PTX502"]
    assert rules(lint(capsys, ".", "--output-format", "json", "--enable", "PTX101")[1]) == ["PTX101", "PTX502"]
    assert rules(lint(capsys, "a.cu", "--output-format", "json", "--select", "PTX101")[1]) == ["PTX101"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[lint]\ndisabled = []\n", "has no key `disabled`"),
        ('[lint]\ndisable = "PTX101"\n', "`disable` is a list of texts"),
        ("[lint]\nisa = 8.5\n", '`isa` is a text, such as "9.0"'),
        ("[lint\n", "not read"),
        ('[lint]\ndisable = ["PTX1010"]\n', "no rule is called PTX1010"),
    ],
)
def test_wrong_settings(text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ptxmm.toml").write_text(text)
    (tmp_path / "a.cu").write_text(RIGHT)
    code, _, err = lint(capsys, "a.cu")
    assert code == 2
    assert message in err


def test_mends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.cu"
    file.write_text(
        "__device__ void f(int* p, int x, int& y) {\r\n"
        '  asm("atom.relaxed.gpu.add.s32 %0, [%1], 1;" : "=r"(y) : "l"(p));\r\n'
        '  asm volatile("fence.acq_rel.gpu;");\r\n'
        '  asm volatile("bar.sync 0;" :::);\r\n'
        '  asm volatile("st.release.gpu.s32 [%0], %1;" :: "l"(p), "r"(x));\r\n'
        '  asm("add.s32 %0, %0, %1;" : "=r"(y) : "r"(x));\r\n'
        "}\r\n",
        newline="",
    )
    code, out, _ = lint(capsys, "a.cu", "--fix")
    assert file.read_bytes().decode() == (
        "__device__ void f(int* p, int x, int& y) {\r\n"
        '  asm volatile("atom.relaxed.gpu.add.s32 %0, [%1], 1;" : "=r"(y) : "l"(p) : "memory");\r\n'
        '  asm volatile("fence.acq_rel.gpu;" ::: "memory");\r\n'
        '  asm volatile("bar.sync 0;" ::: "memory");\r\n'
        '  asm volatile("st.release.gpu.s32 [%0], %1;" :: "l"(p), "r"(x) : "memory");\r\n'
        '  asm("add.s32 %0, %0, %1;" : "+r"(y) : "r"(x));\r\n'
        "}\r\n"
    )
    assert code == 0
    assert out == "nothing found (5 asm statements in 1 file); 6 mended\n"


def test_sarif(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the schema of SARIF 2.1.0 requires, and that the places are right."""
    (tmp_path / "a b.cu").write_text(WRONG)
    code, out, _ = lint(capsys, "a b.cu", "--output-format", "sarif")
    assert code == 1
    log: dict[str, Any] = json.loads(out)
    assert set(log) == {"$schema", "version", "runs"}
    assert log["version"] == "2.1.0"
    assert log["$schema"].startswith("https://") and log["$schema"].endswith("sarif-schema-2.1.0.json")
    (run_,) = log["runs"]
    driver = run_["tool"]["driver"]
    assert driver["name"] == "ptxmm"
    assert [rule["id"] for rule in driver["rules"]] == [rule.id for rule in RULES]
    for rule in driver["rules"]:
        assert rule["shortDescription"]["text"] and rule["help"]["text"]
        assert rule["defaultConfiguration"]["level"] in ("none", "note", "warning", "error")
    assert run_["columnKind"] in ("utf16CodeUnits", "unicodeCodePoints")
    assert run_["invocations"] == [{"executionSuccessful": True, "toolExecutionNotifications": []}]
    assert [r["ruleId"] for r in run_["results"]] == ["PTX101", "PTX502"]
    for result in run_["results"]:
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("none", "note", "warning", "error")
        assert result["message"]["text"]
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"] == {"uri": "a%20b.cu"}
        region = place["region"]
        assert all(isinstance(region[key], int) and region[key] >= 1 for key in region if key != "snippet")
        line = WRONG.split("\n")[region["startLine"] - 1]
        assert region["snippet"]["text"] == line
        assert line[region["startColumn"] - 1 : region["endColumn"] - 1] in ("asm", ".relaxed")
    (fix,) = run_["results"][0]["fixes"]
    (change,) = fix["artifactChanges"]
    assert change["artifactLocation"] == {"uri": "a%20b.cu"}
    assert [r["insertedContent"]["text"] for r in change["replacements"]] == [" volatile", ' : "memory"']
    assert change["replacements"][0]["deletedRegion"] == {
        "startLine": 3, "startColumn": 6, "endLine": 3, "endColumn": 6
    }  # fmt: skip


def test_sarif_of_files_that_cannot_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = lint(capsys, "missing.cu", "--output-format", "sarif")
    assert code == 2
    (invocation,) = json.loads(out)["runs"][0]["invocations"]
    assert invocation["executionSuccessful"] is False
    text = invocation["toolExecutionNotifications"][0]["message"]["text"]
    assert text == "missing.cu: the file can't be read: No such file or directory"


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.cu").write_text(WRONG)
    document = json.loads(lint(capsys, "a.cu", "missing.cu", "--output-format", "json")[1])
    assert document["schema"] == "ptxmm/2"
    message = "the file can't be read: No such file or directory"
    file, missing = document["results"]
    assert (missing["file"], missing["error"]["message"], missing["error"]["hint"]) == ("missing.cu", message, None)
    assert (file["file"], file["statements"], file["suppressed"]) == ("a.cu", 1, 0)
    first = file["findings"][0]
    assert (first["rule"]["id"], first["rule"]["severity"], first["line"], first["column"]) == (
        "PTX101",
        "warning",
        3,
        3,
    )
    start = first["edits"][0]["start"]
    assert WRONG[start - 3 : start] == "asm"


def test_github(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.cu").write_text(WRONG)
    out = lint(capsys, "a.cu", "--output-format", "github", "--select", "PTX502")[1]
    assert out == (
        "::warning file=a.cu,line=3,endLine=3,col=10,title=PTX502::PTX502 `ld.relaxed.gpu.s32` is relaxed, and the "
        "name `ld_acquire` says acquire (write .acquire)\n"
    )
    code, out, _ = lint(capsys, "no.cu", "--output-format", "github")
    assert (code, out) == (2, "::error file=no.cu,title=io::the file can't be read: No such file or directory\n")


def test_verbose(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.cu").write_text('#define BAR(x) asm volatile("bar.sync " #x ";" ::: "memory")\n')
    assert "not checked" not in lint(capsys, "a.cu")[1]
    assert "a.cu:1: not checked: a macro" in lint(capsys, "a.cu", "-v")[1]


def test_several_processes_find_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (ROOT / "tests" / "lint").glob("*.cu"):
        (tmp_path / path.name).write_text(path.read_text())
    one = lint(capsys, ".", "--jobs", "1")
    assert lint(capsys, ".", "--jobs", "2") == one
    assert one[0] == 1


def test_where_processes_are_not_forked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In a process with other threads, and on other systems than Linux, a process gets its work pickled."""
    path = tmp_path / "a.cu"
    path.write_text(RIGHT)
    alone = lint(capsys, str(path), "--jobs", "1")
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        assert lint(capsys, str(path), "--jobs", "1") == alone
    finally:
        done.set()
        thread.join()


def test_the_list_of_rules(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = lint(capsys, "--list-rules")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == [rule.id for rule in RULES]


def test_every_rule_has_a_page_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text()
    index = (ROOT / "docs" / "lint" / "index.md").read_text()
    for rule in RULES:
        page = (ROOT / "docs" / "lint" / f"{rule.id}.md").read_text()
        assert page.startswith(f"# {rule.id}: {rule.name}\n")
        for part in (rule.summary, rule.section, rule.severity, "## Wrong", "## Right", f"ignore[{rule.id}]"):
            assert part in page, (rule.id, part)
        assert f"lint/{rule.id}.md" in navigation
        assert f"[{rule.id}]({rule.id}.md)" in index


def test_the_examples_of_the_pages() -> None:
    """Of each rule: its wrong example is reported, its right one is not reported at all."""
    for rule in RULES:
        page = (ROOT / "docs" / "lint" / f"{rule.id}.md").read_text()
        wrong, right = (part.split("```")[1].removeprefix("cuda\n") for part in page.split("\n## ")[1:3])
        options = ptxmm.analysis.lint.Options(enable=(rule.id,), isa=(7, 0) if rule.id == "PTX601" else None)
        assert rule.id in {r.rule.id for r in ptxmm.lint(wrong, options).findings}, rule.id
        assert [r.rule.id for r in ptxmm.lint(right, options).findings] == [], rule.id


def test_api() -> None:
    path = ROOT / "tests" / "lint" / "right_data.cu"
    result = ptxmm.lint(path)
    assert isinstance(result, ptxmm.LintResult)
    assert (result.file, result.findings) == (str(path), ())
    assert ptxmm.lint(WRONG, file="x.cu").findings[0].file == "x.cu"
    with pytest.raises(ptxmm.PtxmmError) as error:
        ptxmm.lint(Path("missing.cu"))
    assert error.value.kind == "io"
