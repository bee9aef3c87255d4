"""What a verdict rests on: definitions in vain, definitions overridden, rules left out, readings without effect."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ptxmm.analysis.outcomes import check
from ptxmm.cat import index, left_out_of, load, parse_model, text_of
from ptxmm.cat.leave_out import parts
from ptxmm.cli.app import run
from ptxmm.errors import PtxmmError
from tests.support import ROOT, parse_one

MP = (ROOT / "litmus" / "mp" / "MP+rel+acq.litmus").read_text(encoding="utf-8")
LB = (ROOT / "litmus" / "lb" / "LB+ctrl+ctrl.litmus").read_text(encoding="utf-8")


def observation(text: str, model: object) -> str | None:
    result = check(parse_one(text), model, engine="both")  # type: ignore[arg-type]
    return result.observation


def warnings(text: str) -> list[str]:
    return [w.split("\n")[0].partition("warning: ")[2] for w in parse_model(text, "mine.cat").warnings]


LATE = "defined too late for `ptx-8.5.cat`: its check `{}` keeps the earlier definition"
VAIN = "nothing after this uses `{}`: the definition changes nothing"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('include "ptx-8.5.cat"\nlet cause = ppbc\n', ["`cause` is " + LATE.format("Coherence")]),
        ('include "ptx-8.5.cat"\nlet cause = ppbc\nirreflexive cause as Mine\n',
         ["`cause` is " + LATE.format("Coherence")]),
        ('include "ptx-8.5.cat"\nlet ppbc = bc and sync = 0\n',
         ["`ppbc` is " + LATE.format("Coherence"), "`sync` is " + LATE.format("Fence-SC")]),
        ('include "ptx-8.5.cat"\nlet rec cause = ppbc | (cause; ppbc)\n', ["`cause` is " + LATE.format("Coherence")]),
        # A base name that the checks rest on, and a function.
        ('include "ptx-8.5.cat"\nlet po = 0\n', ["`po` is " + LATE.format("FenceSC-total")]),
        ('include "ptx-8.5.cat"\nlet on(x) = x\n', ["`on` is " + LATE.format("Coherence")]),
        ("let a = po\nlet b = a\nacyclic rf as X\n", [VAIN.format("b")]),
        ("let a = po\nlet a = rf\nacyclic a as X\n", [VAIN.format("a")]),
        ("let f(x) = x | po\nacyclic rf as X\n", [VAIN.format("f")]),
        # Nothing to warn of.
        ("let co = co+\nacyclic co as X\n", []),
        ("acyclic co as X\nlet co = co+\nacyclic co | po as Y\n", []),
        ("let f(x) = x | po\nacyclic f(rf) as X\n", []),
        ("let a = po\nshow a\nacyclic rf as X\n", []),
        ('include "ptx-8.5.cat"\nlet mine = cause | po\nacyclic mine as Mine\n', []),
        ('let same-proxy = _*_\nlet complete = loc\ninclude "ptx-common.cat"\nacyclic com-ms as X\n', []),
        ('override let cause = ppbc\ninclude "ptx-8.5.cat"\n', []),
        ('let helper = ppbc0\n', None),
    ],
)  # fmt: skip
def test_definitions_in_vain(text: str, expected: list[str] | None) -> None:
    if expected is None:
        with pytest.raises(PtxmmError):
            parse_model(text)
        return
    assert warnings(text) == expected


def test_shipped_models_define_nothing_in_vain() -> None:
    for name in index().models:
        assert load(name).warnings == ()


def test_the_warning_names_the_mend() -> None:
    (warning,) = parse_model('"M"\ninclude "ptx-8.5.cat"\nlet cause = ppbc\n', "mine.cat").warnings
    assert warning.split("\n") == [
        "mine.cat:3:5: warning: `cause` is " + LATE.format("Coherence"),
        "  let cause = ppbc",
        "      ^^^^^",
        '  hint: to change that, write `override let cause = ...` before `include "ptx-8.5.cat"`',
    ]


# -- overrides -----------------------------------------------------------------------------------------------------


def test_what_does_not_work_and_what_does() -> None:
    """Message passing needs what synchronizes; without that it is allowed."""
    assert observation(MP, load("ptx-8.5")) == "never"
    assert observation(MP, parse_model('include "ptx-8.5.cat"\nlet sync-pattern = 0\n')) == "never"
    assert observation(MP, parse_model('override let sync-pattern = 0\ninclude "ptx-8.5.cat"\n')) == "sometimes"
    # The name stands for what is replaced.
    assert observation(MP, parse_model('override let sync-pattern = sync-pattern\ninclude "ptx-8.5.cat"\n')) == "never"
    text = 'override let cause = cause \\ cause\ninclude "ptx-8.5.cat"\n'
    assert observation(MP, parse_model(text)) == "sometimes"


def test_overrides_of_files_in_files(tmp_path: Path) -> None:
    """The outermost has the last word; a function and one of a `let rec` can be overridden too."""
    (tmp_path / "inner.cat").write_text('override let sync-pattern = 0\ninclude "ptx-8.5.cat"\n')
    (tmp_path / "outer.cat").write_text('override let sync-pattern = sync-pattern | po\ninclude "inner.cat"\n')
    (tmp_path / "keep.cat").write_text('override let sync-pattern = ms & (release-pattern; obs; acquire-pattern)\n'
                                       'include "inner.cat"\n')  # fmt: skip
    assert observation(MP, load(tmp_path / "inner.cat")) == "sometimes"
    assert observation(MP, load(tmp_path / "outer.cat")) == "sometimes"
    assert observation(MP, load(tmp_path / "keep.cat")) == "never"
    assert observation(MP, parse_model('override let observed(x) = 0\ninclude "ptx-8.5.cat"\n')) == "sometimes"
    assert observation(MP, parse_model('override let obs = 0\ninclude "ptx-8.5.cat"\n')) == "sometimes"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ('override let caus = 0\ninclude "ptx-8.5.cat"\n',
         "this overrides nothing: no file included after it defines `caus`", "did you mean `cause`?"),
        ('include "ptx-8.5.cat"\noverride let cause = 0\n',
         "this overrides nothing: no file included after it defines `cause`",
         "write it before the include: it is for the files that are included after it"),
        ('override let observed = 0\ninclude "ptx-8.5.cat"\n',
         "the `observed` that this overrides is a function of 1 argument", None),
        ('override let cause(x) = x\ninclude "ptx-8.5.cat"\n', "the `cause` that this overrides is no function", None),
        ('override let cause = W\ninclude "ptx-8.5.cat"\n',
         "the `cause` that this overrides is a relation, this is a set", None),
        ('override let cause = later\ninclude "ptx-8.5.cat"\nlet later = po\n', "unknown name `later`", None),
        ('override acyclic po\n', "unexpected `acyclic`", "`let` is expected here"),
        ('override let a = po and a = rf\ninclude "ptx-8.5.cat"\n', "`a` is defined twice in one `let`", None),
    ],
)  # fmt: skip
def test_wrong_overrides(text: str, message: str, hint: str | None) -> None:
    with pytest.raises(PtxmmError) as caught:
        parse_model(text, "mine.cat")
    assert (caught.value.message, caught.value.file) == (message, "mine.cat")
    assert hint is None or caught.value.hint == hint


# -- rules left out ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("test", "item", "expected"),
    [
        (MP, "Causality", "sometimes"), (MP, "No-Thin-Air", "never"), (MP, "sync-all:1", "sometimes"),
        (MP, "sync-all:sync-pattern", "sometimes"), (MP, "sync-all:barphase", "never"), (MP, "cause:2", "never"),
        (MP, "cause: (obs;   ppbc)", "never"), (MP, "cause:1", "sometimes"), (MP, "acquire-pattern:1", "sometimes"),
        (MP, "acquire-pattern:2", "never"), (MP, "data-race", "never"), (LB, "No-Thin-Air", "sometimes"),
        (LB, "dep:ctrl", "sometimes"), (LB, "dep:addr", "never"), (LB, "Causality", "never"),
    ],
)  # fmt: skip
def test_which_rule_a_verdict_needs(test: str, item: str, expected: str) -> None:
    name = left_out_of("ptx-8.5", [item])
    model = load(name)
    assert model.left_out and observation(test, model) == expected
    # The text that is printed is that model.
    again = parse_model(text_of(name), "printed.cat")
    assert observation(test, again) == expected
    assert {a.name for a in again.axioms} == {a.name for a in model.axioms}


def test_every_check_and_every_disjunct_can_be_left_out() -> None:
    for name in index().models:
        text = text_of(name)
        known = parts(text)
        whole = load(name)
        assert set(known.checks) == {a.name for a in whole.axioms}
        for check_name in known.checks:
            less = load(left_out_of(name, [check_name]))
            assert {a.name for a in less.axioms} == {a.name for a in whole.axioms} - {check_name}
        for definition, disjuncts in known.definitions.items():
            for number in range(1, len(disjuncts) + 1) if len(disjuncts) > 1 else ():
                try:
                    item = left_out_of(name, [f"{definition}:{number}"])
                except PtxmmError:
                    continue
                assert load(item).left_out == (f"{definition}:{number}",)


def test_several_at_once() -> None:
    name = left_out_of("ptx-8.5", ["Causality", "sync-all:2", "sync-all:1", "Coherence"])
    assert name == "ptx-8.5[without=Causality+sync-all:2+sync-all:1+Coherence]"
    assert load(name).left_out == ("Causality", "sync-all:2", "sync-all:1", "Coherence")
    assert "let sync-all =\n  barphase | warp" in text_of(name)
    assert left_out_of(left_out_of("sc", ["Atomicity"]), ["Coherence"]) == "sc[without=Atomicity+Coherence]"


@pytest.mark.parametrize(
    ("item", "message", "hint"),
    [
        ("Causalty", "ptx-8.5 has no check or definition `Causalty`", "did you mean `Causality`? checks: FenceSC-or"),
        ("causality", "ptx-8.5 has no check or definition `causality`", "did you mean `Causality`?"),
        ("cause", "`cause` of ptx-8.5 is a definition: leave out one of its disjuncts",
         "cause:1 is `ppbc`, cause:2 is `(obs; ppbc)`"),
        ("cause:4", "`cause` of ptx-8.5 has no disjunct `4`", "cause:1 is `ppbc`, cause:2 is `(obs; ppbc)`"),
        ("po-vloc:1", "the definition of `po-vloc` in ptx-8.5 is no disjunction", "leave out a check, or a disjunct"),
        ("Causality:1", "`Causality` of ptx-8.5 is a check: it has no disjuncts", "--without Causality"),
    ],
)  # fmt: skip
def test_nothing_to_leave_out(item: str, message: str, hint: str) -> None:
    with pytest.raises(PtxmmError) as caught:
        left_out_of("ptx-8.5", [item])
    assert caught.value.message == message
    assert (caught.value.hint or "").startswith(hint)


# -- the command line ----------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mp.litmus").write_text(MP)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _ptxmm(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        run(list(arguments))
    captured = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, captured.out, captured.err


def test_check_says_what_is_left_out(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = _ptxmm(capsys, "check", "mp.litmus", "--without", "SingleCopyAtomicity", "--json")
    models = {entry["model"]: entry for entry in json.loads(out)["results"]}
    # Where a model has nothing of the kind, it is as it is.
    assert list(models) == ["ptx-6.0", "ptx-7.5", "ptx-8.5[without=SingleCopyAtomicity]", "sc"]
    assert (code, err) == (0, "")
    notes = models["ptx-8.5[without=SingleCopyAtomicity]"]["notes"]
    assert {"kind": "model", "text": "without SingleCopyAtomicity"} in notes
    code, out, _ = _ptxmm(capsys, "check", "mp.litmus", "--model", "ptx-8.5", "--without", "cause:1")
    assert code == 1 and "ptx-8.5[without=cause:1]" in out and "without cause:1" in out


@pytest.mark.parametrize("command", ["outcomes", "explain", "races", "robust", "scopes", "fences", "progress"])
def test_the_other_commands(folder: Path, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = _ptxmm(capsys, command, "mp.litmus", "--model", "ptx-8.5", "--without", "No-Thin-Air")
    assert "Model ptx-8.5[without=No-Thin-Air]" in out and "Note without No-Thin-Air" in out


def test_models_prints_what_check_uses(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, item in enumerate(("Causality", "obs:2", "sync-all:fsc")):
        name = f"less-{number}.cat"
        code, out, _ = _ptxmm(capsys, "models", "--without", item)
        assert code == 0 and out.startswith("(* without ")
        (folder / name).write_text(out)
        _, one, _ = _ptxmm(capsys, "outcomes", "mp.litmus", "--model", name, "--all-state")
        _, two, _ = _ptxmm(capsys, "outcomes", "mp.litmus", "--model", "ptx-8.5", "--without", item, "--all-state")
        rows = [[line for line in text.splitlines() if "=" in line and "without" not in line] for text in (one, two)]
        assert rows[0] == rows[1]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--model", "ptx-6.0", "--reading", "proxy-locality=path"], 2,
         "error: --reading proxy-locality=path has no effect on ptx-6.0\n  hint: readings of ptx-6.0: scploc, "),
        (["--model", "ptx-6.0[proxy-locality=path]"], 2,
         "error: the reading proxy-locality has no effect on ptx-6.0\n"),
        (["--model", "sc", "--reading", "stasync=async"], 2, "error: --reading stasync=async has no effect on sc\n"),
        (["--model", "sc", "--model", "ptx-6.0", "--reading", "stasync=async"], 2,
         "error: --reading stasync=async has no effect on sc and ptx-6.0\n"),
        (["--model", "ptx-6.0", "--model", "ptx-8.5", "--reading", "proxy-locality=path"], 0, ""),
        (["--reading", "proxy-locality=path"], 0, ""),
        (["--model", "ptx-6.0", "--reading", "dep=syn"], 0, ""),
        (["--without", "Causalty"], 2, "error: ptx-8.5 has no check or definition `Causalty`\n  hint: did you mean "),
        (["--model", "sc", "--without", "Causality"], 2, "error: sc has no check or definition `Causality`\n"),
        (["--model", "sc[without=Causality]"], 2, "error: sc has no check or definition `Causality`\n"),
    ],
)  # fmt: skip
def test_refusals(folder: Path, arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    found, _, err = _ptxmm(capsys, "check", "mp.litmus", *arguments)
    assert (found, err[: len(said)]) == (code, said)
    assert said or err == ""


def test_a_reading_without_effect_is_noted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = _ptxmm(capsys, "check", "mp.litmus", "--reading", "proxy-locality=path", "--json")
    noted = {e["model"]: [n["text"] for n in e["notes"]] for e in json.loads(out)["results"]}
    assert noted["ptx-6.0"] == ["reading proxy-locality=path has no effect on ptx-6.0"]
    assert noted["ptx-8.5"] == ["reading proxy-locality=path"]


def test_an_expectation_names_only_readings_that_matter(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "t.litmus").write_text(MP.replace("Expect=", "Expect=ptx-6.0[stasync=async]:never ", 1))
    code, _, err = _ptxmm(capsys, "check", "t.litmus")
    assert code == 2 and "the reading stasync has no effect on ptx-6.0" in err


def test_warnings_are_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "mine.cat").write_text('include "ptx-8.5.cat"\nlet cause = ppbc\n')
    code, out, err = _ptxmm(capsys, "check", "mp.litmus", "--model", "mine.cat", "--json")
    assert code == 0 and err.startswith("mine.cat:2:5: warning: `cause` is defined too late")
    (entry,) = json.loads(out)["results"]
    assert [n["kind"] for n in entry["notes"]] == ["model"]
    _, _, err = _ptxmm(capsys, "models", "mine.cat")
    assert "warning" in err
