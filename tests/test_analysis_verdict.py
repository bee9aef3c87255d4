"""Verdicts and expectations, from made-up searches."""

from __future__ import annotations

import pytest

from ptxmm.analysis.expectation import Expectation, conclude, expectation_for, expectations
from ptxmm.analysis.verdict import decide
from ptxmm.engines.result import Found, Search, Witness
from ptxmm.errors import PtxmmError
from ptxmm.program.condition import Condition, Conjunction, State
from ptxmm.program.test import Test

KNOWN = ("ptx-6.0", "ptx-7.5", "ptx-8.5", "sc")
NO_WITNESS = Witness({}, {}, frozenset(), frozenset(), {}, ())


def search(*states: bool, cut: str = "", deadlock: bool = False) -> tuple[Search, bool, bool]:
    found = [Found(State({}, {}), NO_WITNESS) for _ in states]
    result = Search(
        found,
        exhausted=cut != "timeout",
        bounded=cut == "bounded",
        timeout=cut == "timeout",
        deadlock=deadlock,
        undefined="because" if cut == "undefined" else None,
    )
    return result, True in states, False in states


@pytest.mark.parametrize(
    ("quantifier", "states", "cut", "observation", "holds"),
    [
        ("exists", (True, False), "", "sometimes", True),
        ("exists", (False,), "", "never", False),
        ("exists", (True,), "", "always", True),
        ("~exists", (True, False), "", "sometimes", False),
        ("~exists", (False,), "", "never", True),
        ("~exists", (True,), "", "always", False),
        ("forall", (True, False), "", "sometimes", False),
        ("forall", (False,), "", "never", False),
        ("forall", (True,), "", "always", True),
        # A cut search settles only what one state settles.
        ("exists", (True, False), "bounded", "sometimes", True),
        ("exists", (True,), "bounded", None, True),
        ("exists", (False,), "bounded", None, None),
        ("~exists", (True,), "timeout", None, False),
        ("~exists", (False,), "timeout", None, None),
        ("forall", (False,), "timeout", None, False),
        ("forall", (True,), "bounded", None, None),
        ("forall", (), "timeout", None, None),
        # Nothing is settled of a program without meaning.
        ("exists", (True, False), "undefined", None, None),
        # Of nothing, only `exists` is settled.
        ("exists", (), "", None, False),
        ("~exists", (), "", None, None),
        ("forall", (), "", None, None),
        (None, (), "", None, None),
    ],
)
def test_decide(
    quantifier: str | None, states: tuple[bool, ...], cut: str, observation: str | None, holds: bool | None
) -> None:
    verdict = decide(*_split(search(*states, cut=cut), quantifier))
    assert (verdict.observation, verdict.holds) == (observation, holds)
    assert verdict.status == (cut or "complete")


def _split(found: tuple[Search, bool, bool], quantifier: str | None) -> tuple[Search, str | None, bool, bool]:
    return found[0], quantifier, found[1], found[2]


def test_no_final_state() -> None:
    assert decide(*_split(search(), "exists")).flags == ("vacuous",)
    assert decide(*_split(search(deadlock=True), "exists")).flags == ("deadlock",)
    assert decide(*_split(search(cut="timeout"), "exists")).flags == ()
    assert decide(*_split(search(True, deadlock=True), "exists")).flags == ("deadlock",)


@pytest.mark.parametrize(("states", "observation"), [((True, False), "sometimes"), ((False,), "never")])
def test_a_search_for_the_proposition_settles_it(states: tuple[bool, ...], observation: str) -> None:
    found, sat, unsat = search(*states)
    found.exhausted = False  # it did not look for all states
    verdict = decide(found, "exists", sat, unsat)
    assert (verdict.observation, verdict.status) == (observation, "complete")


@pytest.mark.parametrize(
    ("word", "states", "cut", "deadlock", "conclusion"),
    [
        ("never", (False,), "", False, "expected"),
        ("never", (True, False), "", False, "contradicted"),
        ("never", (False,), "bounded", False, "inconclusive"),
        ("never", (True,), "bounded", False, "contradicted"),
        ("always", (False,), "timeout", False, "contradicted"),
        ("always", (True,), "timeout", False, "inconclusive"),
        ("sometimes", (True, False), "bounded", False, "expected"),
        ("sometimes+deadlock", (True, False), "bounded", False, "inconclusive"),
        ("sometimes", (True, False), "bounded", True, "contradicted"),
        ("sometimes+deadlock", (True, False), "bounded", True, "expected"),
        ("never", (False,), "", True, "contradicted"),
        ("never+deadlock", (False,), "", True, "expected"),
        ("never+deadlock", (False,), "", False, "contradicted"),
        ("none", (), "", False, "expected"),
        ("none+deadlock", (), "", True, "expected"),
        ("none", (False,), "", False, "contradicted"),
        ("none", (), "timeout", False, "inconclusive"),
        ("never", (), "", False, "contradicted"),
        ("undefined", (False,), "undefined", False, "expected"),
        ("undefined", (False,), "", False, "contradicted"),
        ("undefined", (False,), "bounded", False, "inconclusive"),
        ("never", (False,), "undefined", False, "contradicted"),
    ],
)
def test_conclude(word: str, states: tuple[bool, ...], cut: str, deadlock: bool, conclusion: str) -> None:
    text, plus, _ = word.partition("+")
    verdict = decide(*_split(search(*states, cut=cut, deadlock=deadlock), "exists"))
    assert conclude(Expectation(text, bool(plus)), verdict, states) == conclusion


def test_conclude_without_an_expectation() -> None:
    settled = decide(*_split(search(False), "exists"))
    assert conclude(None, settled, (False,)) == "unchecked"
    open_ = decide(*_split(search(False, cut="bounded"), "exists"))
    assert conclude(None, open_, (False,)) == "inconclusive"
    unconditional = decide(*_split(search(), None))
    assert conclude(None, unconditional, ()) == "unchecked"


def a_test(*lines: str, kind: str = "exists") -> Test:
    text = "PTX t\n" + "".join(f"Expect={line}\n" for line in lines)
    condition = Condition(kind, Conjunction(()), "true")  # type: ignore[arg-type]
    return Test("t", (), {}, condition, info=tuple(("Expect", line) for line in lines), file="t.litmus", text=text)


def test_expectations() -> None:
    stated = expectations(a_test("ptx-6.0:never ptx-8.5:sometimes+deadlock"), KNOWN)
    assert stated == {"ptx-6.0": Expectation("never", False), "ptx-8.5": Expectation("sometimes", True)}
    assert expectations(a_test("none"), KNOWN) == {"ptx-8.5": Expectation("none", False)}
    assert expectations(a_test("holds sc:holds"), KNOWN) == {
        "ptx-8.5": Expectation("holds", None),
        "sc": Expectation("holds", None),
    }
    assert expectations(a_test(), KNOWN) == {}


def test_a_slip_in_the_key_is_not_passed_over() -> None:
    test = Test("t", (), {}, None, info=(("Expected", "never"),), file="t.litmus", text="PTX t\nExpected=never\n")
    with pytest.raises(PtxmmError, match=r"t\.litmus:2:1: error: `Expected=` is not checked"):
        expectations(test, KNOWN)


def test_expectation_for() -> None:
    assert expectation_for(a_test(), "sc", {}) is None
    assert expectation_for(a_test(kind="forall"), "sc", {}) == Expectation("holds", None)
    stated = {"ptx-6.0": Expectation("never", False)}
    assert expectation_for(a_test("ptx-6.0:never", kind="~exists"), "sc", stated) is None


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "ptx-6.0:nevr",
            "t.litmus:2:8: error: 'nevr' is not an expectation\n  Expect=ptx-6.0:nevr\n         ^^^^^^^^^^^^\n"
            "  hint: one of never, sometimes, always, undefined, none, with an optional +deadlock; or holds",
        ),
        (
            "sc:never ptx-8:never",
            "t.litmus:2:17: error: unknown model 'ptx-8' in `Expect=`\n  Expect=sc:never ptx-8:never\n"
            "                  ^^^^^^^^^^^\n  hint: did you mean ptx-8.5?",
        ),
        (
            "holds+deadlock",
            "t.litmus:2:8: error: 'holds+deadlock' is not an expectation\n  Expect=holds+deadlock\n"
            "         ^^^^^^^^^^^^^^\n"
            "  hint: one of never, sometimes, always, undefined, none, with an optional +deadlock; or holds",
        ),
        (
            "sc:never+dead",
            "t.litmus:2:8: error: 'never+dead' is not an expectation\n  Expect=sc:never+dead\n         ^^^^^^^^^^^^^\n"
            "  hint: one of never, sometimes, always, undefined, none, with an optional +deadlock; or holds",
        ),
        (
            "sc:never sc:always",
            "t.litmus:2:17: error: two expectations for the model sc\n  Expect=sc:never sc:always\n"
            "                  ^^^^^^^^^",
        ),
        (
            "",
            "t.litmus:2:1: error: `Expect=` says nothing\n  Expect=\n  ^\n"
            "  hint: write for instance `Expect=ptx-8.5:never`",
        ),
    ],
)
def test_wrong_expectations(line: str, message: str) -> None:
    with pytest.raises(PtxmmError) as caught:
        expectations(a_test(line), KNOWN)
    assert str(caught.value) == message
