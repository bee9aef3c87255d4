"""What the launch of a kernel assumes: readings of the text of the model. Every verdict names it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ptxmm
from ptxmm.analysis.outcomes import timed_out
from ptxmm.analysis.readings import Variation, decided_by
from ptxmm.cli.app import run
from tests.support import ROOT

VECTOR = ROOT / "tests" / "cuda" / "mp_packed_flag.wrong_vector.ptx"


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    """A module whose launch assumes that vectors are in one piece."""
    return written(tmp_path, 'assume = ["vector=whole"]')


def written(folder: Path, *rows: str) -> Path:
    """The module with ``rows`` in its launch."""
    launch = [line for line in VECTOR.with_suffix(".cu").read_text().splitlines() if line.startswith("// ptxmm:")]
    launch[1:1] = [f"// ptxmm: {row}" for row in rows]
    path = folder / "k.ptx"
    path.write_text("\n".join([*launch, VECTOR.read_text()]))
    return path


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """The exit code, and what is printed."""
    with pytest.raises(SystemExit) as ended:
        run(list(arguments))
    captured = capsys.readouterr()
    return int(ended.value.code or 0), captured.out, captured.err


def test_a_reading_is_part_of_the_model(vectors: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = told(capsys, "check", str(vectors))
    assert (code, out.count("ok "), out.count("ptx-8.5[vector=whole]")) == (0, 2, 2)
    code, out, _ = told(capsys, "check", str(vectors), "--json")
    entries = json.loads(out)["results"]
    assert {(entry["model"], entry["holds"]) for entry in entries} == {("ptx-8.5[vector=whole]", True)}
    assert all("reading vector=whole" in [note["text"] for note in entry["notes"]] for entry in entries)


@pytest.mark.parametrize("command", ["outcomes", "races", "explain", "fences", "robust"])
def test_every_command_is_asked_under_it(command: str, vectors: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, err = told(capsys, command, str(vectors))
    assert "Model ptx-8.5[vector=whole]\n" in out, err


def test_a_wrong_kernel_names_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, 'assume = ["vector=whole", "cas-failure=write"]')
    path.write_text(path.read_text().replace("out == 42", "out == 41"))
    for format in ("text", "github"):
        code, out, _ = told(capsys, "check", str(path), "--format", format)
        assert (code, "ptx-8.5[cas-failure=write,vector=whole]" in out.replace("%2C", ",")) == (1, True)


def test_the_command_line_comes_first(vectors: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = told(capsys, "check", str(vectors), "--reading", "vector=elements")
    assert (code, "[vector" in out, out.splitlines()[0].startswith("FAIL")) == (1, False, True)
    code, out, _ = told(capsys, "check", str(vectors), "--model", "ptx-8.5[vector=elements]")
    assert (code, "ptx-8.5[vector=elements]" in out) == (1, True)
    code, out, _ = told(capsys, "check", str(vectors), "--model", "ptx-8.5", "--reading", "tear=off")
    assert (code, "ptx-8.5[vector=whole]" in out) == (0, True)


def test_what_has_no_effect_on_a_model_is_not_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, 'assume = ["proxy-war=free"]')
    _, out, _ = told(capsys, "outcomes", str(path), "--model", "sc")
    assert "Model sc\n" in out


def test_in_python(vectors: Path) -> None:
    (test,) = ptxmm.read(vectors)
    assert [test.check(model).model for model in (None, "ptx-8.5")] == ["ptx-8.5[vector=whole]"] * 2
    assert test.check().holds
    assert not test.check(ptxmm.load_model("ptx-8.5")).holds  # exactly that one


@pytest.mark.parametrize(
    ("assumed", "message", "width"),
    [
        ('["vector=half"]', "reading `vector` has no value `half`", 13),
        ('["no-timeout", "vectors=whole"]', "unknown reading `vectors`", 15),
    ],
)
def test_what_is_no_reading(
    assumed: str, message: str, width: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, f"assume = {assumed}")
    code, _, err = told(capsys, "check", str(path))
    rows = err.splitlines()
    assert (code, message in rows[0], rows[0].startswith(f"{path}:2:")) == (2, True, True)
    assert rows[1] == f"  // ptxmm: assume = {assumed}"
    assert rows[2].strip() == "^" * width


@pytest.mark.parametrize("name", ["mp_packed_flag.wrong_vector"])
def test_what_a_reading_alone_decides_is_told(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = told(capsys, "check", str(ROOT / "tests" / "cuda" / f"{name}.ptx"))
    assert "rests on vector: vector=whole gives holds" in " ".join(out.split())


def test_that_there_was_no_time_is_told() -> None:
    (test,) = ptxmm.read(VECTOR)
    late = timed_out(test, "ptx-8.5", "z3", None, 1.0)
    (note,) = decided_by(test.check(), [Variation("vector", "whole", late)])
    assert note.text == "vector=whole could not be decided: the time limit ended the search"


def test_in_sarif(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is contradicted, with the model that it is under, and the line that the refutation names."""
    path = written(tmp_path, 'assume = ["cas-failure=write"]')
    code, out, _ = told(capsys, "check", str(path), "--format", "sarif")
    ((log,), (result,)) = (json.loads(out)["runs"], json.loads(out)["runs"][0]["results"])
    assert (code, result["ruleId"], result["level"]) == (1, "contradicted", "error")
    assert [rule["id"] for rule in log["tool"]["driver"]["rules"]] == ["contradicted", "inconclusive"]
    assert result["message"]["text"].startswith("mp under ptx-8.5[cas-failure=write]: sometimes, expected holds")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("changed_flag.wrong_values", "under ptx-8.5: no data races: no: data race: P0:"),
        (
            "same_block_result.wrong_no_barrier",
            "block_sum (assuming same-value-races) under ptx-8.5: no data races: no",
        ),
        ("early_exit.wrong_return", "under ptx-8.5: convergent barriers: no: P"),
    ],
)
def test_where_a_claim_is_refuted(name: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = ROOT / "tests" / "cuda" / f"{name}.ptx"
    _, out, _ = told(capsys, "check", str(path), "--format", "sarif")
    found = [item for item in json.loads(out)["runs"][0]["results"] if words in item["message"]["text"]]
    line = found[0]["locations"][0]["physicalLocation"]["region"]["startLine"]
    row = path.read_text().splitlines()[line - 1]
    assert row.split()[0].startswith(("st.global", "ld.shared", "st.shared", "bar")), row
    _, out, _ = told(capsys, "check", str(path), "--format", "github")
    assert any(f",line={line},title=" in row for row in out.splitlines())


@pytest.mark.parametrize("format", ["sarif", "github"])
def test_lines_of_the_host_may_be_of_another_file(
    format: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The lines of host threads are those of the launch: they are none of the kernel."""
    path = tmp_path / "k.ptx"
    path.write_text(VECTOR.read_text())
    launch = tmp_path / "k.toml"
    given = [line.removeprefix("// ptxmm:") for line in VECTOR.with_suffix(".cu").read_text().splitlines()]
    rows = [row for row in given if row and not row.startswith(("//", " condition", " races"))]
    launch.write_text(
        "\n".join(rows[: next(i for i, row in enumerate(rows) if "[check]" in row)])
        + '\n[host]\nH0 = "mov.u64 rd1, out; st.u32 [rd1+64], 1;"\n[check]\nbounds = "none outside"\n'
    )
    code, out, err = told(capsys, "check", str(path), "--format", format)
    assert code == 1 and "access outside every object" in out, err
    assert "startLine" not in out and ",line=" not in out


def test_no_reading_is_named_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, 'assume = ["vector=whole"]')
    path.write_text(path.read_text().replace('races = "none"', 'bounds = "none outside"'))
    _, out, _ = told(capsys, "check", str(path), "--json")
    for entry in json.loads(out)["results"]:
        assert [note["text"] for note in entry["notes"]].count("reading vector=whole") == 1, entry


def test_what_one_launch_assumes_is_not_assumed_by_another(tmp_path: Path) -> None:
    path = written(tmp_path)
    lines = path.read_text().splitlines()
    checks = next(number for number, line in enumerate(lines) if "[check]" in line)
    races = next(number for number, line in enumerate(lines) if 'races = "none"' in line)
    assert races > checks
    lines[races + 1 : races + 1] = [
        '// ptxmm: [[launch]]\n// ptxmm: name = "a"',
        '// ptxmm: assume = ["vector=whole", "same-value-races"]',
        '// ptxmm: [[launch]]\n// ptxmm: name = "b"',
        '// ptxmm: [[launch]]\n// ptxmm: name = "c"\n// ptxmm: assume = ["same-value-races"]',
    ]
    path.write_text("\n".join(lines))
    found = [(test.name, test.check().model, test.check().holds) for test in ptxmm.read(path)]
    assert found == [
        ("mp (a, assuming same-value-races)", "ptx-8.5[vector=whole]", True),
        ("mp (b)", "ptx-8.5", False),
        ("mp (c, assuming same-value-races)", "ptx-8.5", False),
    ]
