"""Comparison of models and of versions of a program, and the search for a program that separates two models."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from functools import partial
from itertools import combinations
from pathlib import Path

import pytest

from ptxmm.analysis.compare import CompareResult, compare, compare_versions, model_names
from ptxmm.analysis.outcomes import check
from ptxmm.analysis.separate import SeparateResult, common_vocabulary, separate, try_
from ptxmm.analysis.words import Exit
from ptxmm.cat import Model, index, load, parse_model
from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError, Timeout
from ptxmm.formats import read
from ptxmm.formats.writer import same, write
from ptxmm.program.test import Test
from tests.commands import Run, steady
from tests.support import ROOT, model_named, parse_one

Golden = Callable[[str, str], None]


def bundled(name: str) -> Test:
    (test,) = read(ROOT / "litmus" / f"{name}.litmus")
    return test


def compared(name: str, one: str, other: str, most: int = 3) -> CompareResult:
    limits = Limits(deadline=time.monotonic() + 60)
    return compare(bundled(name), model_named(one), model_named(other), limits=limits, most=most)


# -- two models --


def test_the_execution_and_the_reason_against_it() -> None:
    result = compared("coherence/A3-D-SPL", "ptx-6.0", "ptx-7.5[scploc=none]")
    assert (result.differ, result.finding, result.status) == (True, True, "complete")
    assert (result.first.observation, result.second.observation) == ("never", "sometimes")
    assert result.first.only == ()
    for difference in result.second.only:
        assert difference.outcome.satisfies
        assert difference.execution is not None
        assert difference.axioms == ("SC-per-Location",)
        assert difference.reason is not None and difference.reason.axiom == "SC-per-Location"
        # The cycle of decision A3 through both threads, which the execution shown has.
        assert len(difference.reason.edges) == 5 and difference.reason.closed


def test_states_that_only_the_first_model_allows() -> None:
    result = compared("coherence/A5-coherence-transitive", "ptx-8.5[co=direct]", "ptx-8.5")
    assert result.first.only and not result.second.only
    assert result.first.only[0].reason is not None
    assert (result.first.name, result.second.name) == ("ptx-8.5[co=direct]", "ptx-8.5[co=transitive]")


def test_equal_models() -> None:
    result = compared("coherence/A3-D-SPL", "ptx-7.5", "ptx-8.5")
    assert (result.differ, result.finding) == (False, False)
    assert result.first.states == result.second.states


def test_no_more_executions_than_asked_for() -> None:
    result = compared("coherence/A3-D-SPL", "ptx-6.0", "ptx-7.5[scploc=none]", most=1)
    shown, rest = result.second.only
    assert shown.execution is not None
    assert (rest.execution, rest.reason) == (None, None)


def test_other_executions_have_no_violated_axioms() -> None:
    """A failing compare-and-swap that writes: the other reading has no such execution of events."""
    result = compared("rmw/A14-failing-cas", "ptx-8.5", "ptx-8.5[cas-failure=write]")
    assert result.differ
    assert all(d.axioms == () for d in result.second.only)
    assert result.second.only[0].reason is not None and result.second.only[1].impossible


def test_what_a_model_lacks_is_refused() -> None:
    with pytest.raises(PtxmmError) as refused:
        compared("cluster/A30-relaxed-arrive", "ptx-7.5", "ptx-8.5")
    assert refused.value.kind == "unsupported"


def test_no_time() -> None:
    test = bundled("coherence/A3-D-SPL")
    limits = Limits(deadline=time.monotonic() - 1)
    result = compare(test, load("sc"), load("ptx-8.5"), limits=limits)
    assert (result.status, result.differ, result.finding) == ("timeout", None, None)


@pytest.mark.parametrize("name", ["mp/MP+rel+acq", "sb/ISA-SB", "lb/A21-LB-false-dependency", "rmw/atom.add+st"])
def test_differences_are_those_of_the_lists_of_states(name: str) -> None:
    result = compared(name, "ptx-8.5", "sc", most=0)
    states = [
        {tuple(sorted((*o.registers.items(), *o.memory.items()))) for o in found.outcomes}
        for model in ("ptx-8.5", "sc")
        for found in [check(bundled(name), model_named(model), all_state=True)]
    ]
    sides = (result.first, result.second)
    for side, mine, others in zip(sides, states, states[::-1], strict=True):
        assert side.states == len(mine)
        only = {tuple(sorted((*d.outcome.registers.items(), *d.outcome.memory.items()))) for d in side.only}
        assert only == mine - others


# -- readings --


def told_apart() -> list[tuple[str, str, str, str]]:
    """From docs/readings.md: key, value, test and model, for each value but the default."""
    found = []
    for line in (ROOT / "docs" / "readings.md").read_text().splitlines():
        if not line.startswith("| `"):
            continue
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        for item in cells[-1].split("; "):
            value, name, *model = re.findall(r"`([^`]+)`", item)
            found.append((cells[0].split("`")[1], value, name, model[0] if model else "ptx-8.5"))
    return found


def test_there_is_a_test_for_every_value() -> None:
    listed = {(key, value) for key, value, _, _ in told_apart()}
    for key, reading in index().readings.items():
        default = load("ptx-8.5").readings[key]
        assert {value for k, value in listed if k == key} == set(reading.values) - {default}


@pytest.mark.parametrize(("key", "value", "name", "model"), told_apart())
def test_every_value_of_a_reading_is_separated_by_its_test(key: str, value: str, name: str, model: str) -> None:
    result = compared(name, model, f"{model}[{key}={value}]", most=0)
    # Under the default of this one a program has no meaning, not fewer final states.
    assert (result.differ, result.status) == (True, "undefined" if key == "wgmma-mov" else "complete")


OTHER_PAIRS = [
    (key, *pair)
    for key, reading in index().readings.items()
    for pair in combinations(reading.values, 2)
    if load("ptx-8.5").readings[key] not in pair
]


@pytest.mark.parametrize(("key", "one", "other"), OTHER_PAIRS)
def test_other_pairs_of_values_are_separated(key: str, one: str, other: str) -> None:
    """Pairs without the default: by a test of one of the values; by a program of three instructions where the two
    differ in ptx-6.0 only (from ptx-7.5 on, what a clique forbids is forbidden by Coherence and Causality)."""
    if key == "scploc":
        models = load(f"ptx-6.0[scploc={one}]"), load(f"ptx-6.0[scploc={other}]")
        assert separate(*models, common_vocabulary(*models), 3).finding
        return
    tests = [(name, model) for k, value, name, model in told_apart() if k == key and value in (one, other)]
    assert any(compared(n, f"{m}[{key}={one}]", f"{m}[{key}={other}]", most=0).differ for n, m in tests)


# -- two versions --

OLD = """PTX MP
{
  .global .u32 x = 0;
  .global .u32 y = 0;
}
 P0 @ cta 0                       | P1 @ cta 1                        ;
 st.global.u32 [x], 1             | ld.relaxed.gpu.global.u32 r0, [y] ;
 st.relaxed.gpu.global.u32 [y], 1 | ld.global.u32 r1, [x]             ;
exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""
NEW = OLD.replace("st.relaxed", "st.release").replace("ld.relaxed", "ld.acquire")


def test_lost_and_added_states() -> None:
    old, new = parse_one(OLD), parse_one(NEW)
    result = compare_versions(old, new, load("ptx-8.5"))
    assert (result.versions, result.differ) == (True, True)
    (lost,) = result.first.only
    assert lost.outcome.registers == {"P1:r0": 1, "P1:r1": 0} and lost.outcome.memory == {}
    assert lost.execution is not None
    assert lost.reason is not None and lost.reason.axiom == "Causality"
    assert result.second.only == ()
    back = compare_versions(new, old, load("ptx-8.5"))
    (added,) = back.second.only
    assert added.outcome == lost.outcome


def test_versions_with_other_instructions_and_names() -> None:
    """Threads and locations go by their names; what only one version has is left out and said."""
    new = NEW.replace("y = 0;", "y = 0;\n  .global .u32 z = 0;").replace("| ld.global.u32 r1", "| ld.global.u32 r7")
    new = new.replace("P1:r1 == 0", "P1:r7 == 0")
    result = compare_versions(parse_one(OLD), parse_one(new), load("ptx-8.5"))
    assert [note.kind for note in result.notes] == ["names"]
    assert "P1:r1" in result.notes[0].text and "P1:r7" in result.notes[0].text
    assert result.differ is False
    whole = compare_versions(parse_one(OLD), parse_one(NEW), load("ptx-8.5"), all_state=True)
    (lost,) = whole.first.only
    assert lost.outcome.memory == {"x": 1, "y": 1}


def test_nothing_in_common() -> None:
    new = OLD.replace("P0 @", "Q0 @").replace("P1 @", "Q1 @").replace("P1:", "Q1:")
    with pytest.raises(PtxmmError) as refused:
        compare_versions(parse_one(OLD), parse_one(new), load("ptx-8.5"))
    assert refused.value.kind == "usage"


def test_a_value_that_no_write_has() -> None:
    new = OLD.replace("[y], 1", "[y], 2").replace("r0 == 1", "r0 == 2")
    result = compare_versions(parse_one(OLD), parse_one(new), load("ptx-8.5"))
    assert all(d.impossible for side in (result.first, result.second) for d in side.only)
    assert len(result.first.only) == len(result.second.only) == 2


# -- a program that separates two models --


def searched(one: Model, other: Model, most: int, **words: object) -> SeparateResult:
    vocabulary = common_vocabulary(one, other, **words)  # type: ignore[arg-type]
    return separate(one, other, vocabulary, most, limits=Limits(deadline=time.monotonic() + 300))


def changed(old: str, new: str) -> Model:
    """ptx-7.5 with one piece of its text changed."""
    text = (ROOT / "ptxmm" / "models" / "ptx-7.5.cat").read_text()
    assert old in text
    return parse_model(text.replace(old, new), "changed.cat", load("ptx-7.5").readings)


EQUIVALENT = {
    "A2 Fence-SC order over causality order": lambda: changed(
        "empty (([FSC]; bc; [FSC]) & ms) \\ fsc as Fence-SC", "irreflexive (fsc; cause) as Fence-SC"
    ),
    "A16 one step of observation": lambda: changed(
        "let cause = ppbc | (obs; ppbc)", "let step = (ms & rf) | rmw\nlet cause = ppbc | (step; ppbc)"
    ),
    "A20 Causality with co": lambda: changed(
        "irreflexive ((rf | fr); precedes)", "irreflexive ((rf | co | fr)?; cause)"
    ),
    "A22 base causality without program order": lambda: load("ptx-6.0"),
}


@pytest.mark.parametrize("name", EQUIVALENT)
def test_nothing_separates_equivalent_models(name: str) -> None:
    result = searched(EQUIVALENT[name](), load("ptx-7.5"), 3)
    assert (result.finding, result.searched, result.status, result.program) == (False, 3, "complete", None)


@pytest.mark.slow
@pytest.mark.parametrize("name", EQUIVALENT)
def test_nothing_up_to_six_instructions_separates_equivalent_models(name: str) -> None:
    one, other = EQUIVALENT[name](), load("ptx-7.5")
    words = common_vocabulary(one, other, kinds=("ld", "st", "atom", "red", "fence"))
    result = separate(one, other, words, 6)
    assert (result.finding, result.searched) == (False, 6)


def test_few_programs_need_to_be_compared() -> None:
    """An execution that only the Fence-SC axiom forbids is left out with the order of the fences that it allows: else
    each program with three fences would be compared (decision A2)."""
    one, other = EQUIVALENT["A2 Fence-SC order over causality order"](), load("ptx-7.5")
    words = common_vocabulary(one, other, kinds=("st", "atom", "fence"), orders=("relaxed", "sc"), locations=1)
    tried = try_(one, other, words, (3, 2), Limits())
    assert tried.found is None and tried.compared <= 2


@pytest.mark.slow
def test_sc_per_location_with_a_program_no_larger_than_its_test() -> None:
    """D-SPL has seven instructions (decision A3); nothing smaller of its kind separates the models."""
    result = searched(
        load("ptx-6.0"),
        load("ptx-7.5[scploc=none]"),
        7,
        kinds=("ld", "st"),
        orders=("weak", "relaxed"),
        threads=3,
        locations=1,
    )
    assert result.searched == 6
    program = result.program
    assert program is not None and sum(len(t.body) for t in program.threads) == 7
    assert program.condition is not None
    for model, observation in (("ptx-6.0", "never"), ("ptx-7.5[scploc=none]", "sometimes")):
        assert check(program, model_named(model), engine="both").observation == observation


PLAIN_READINGS = [
    pytest.param("ptx-7.5", "fence-proxy=none", 4, marks=pytest.mark.slow),
    ("ptx-8.5", "co=direct", 4),
    ("ptx-7.5", "pattern-location=physical", 4),
    ("ptx-7.5", "sc-acqrel=off", 4),
    pytest.param("ptx-7.5", "red=read", 5, marks=pytest.mark.slow),
    pytest.param("ptx-7.5", "middle=scope", 5, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("model", "reading", "size"), PLAIN_READINGS)
def test_readings_are_separated_by_programs_no_larger_than_their_tests(model: str, reading: str, size: int) -> None:
    one, other = load(model), load(f"{model}[{reading}]")
    kinds = ("ld", "st", "alias") if "location" in reading else ("ld", "st", "atom", "red", "fence")
    result = searched(one, other, size, kinds=kinds)
    assert (result.finding, result.searched) == (True, size - 1)
    program = result.program
    assert program is not None
    (name,) = {n for key, value, n, _ in told_apart() if f"{key}={value}" == reading}
    assert size <= sum(len(thread.body) for thread in bundled(name).threads)
    assert same(parse_one(write(program)), program)
    assert {check(program, m, engine="both").observation for m in (one, other)} in (
        {"never", "sometimes"},
        {"never", "always"},
    )


def test_the_smallest_of_all() -> None:
    result = searched(load("ptx-8.5"), load("sc"), 3)
    assert result.finding and result.searched == 1
    assert (result.model, result.other) == ("ptx-8.5", "sc")


def test_a_model_is_not_separated_from_itself() -> None:
    result = searched(load("ptx-8.5"), load("ptx-8.5"), 3)
    assert (result.finding, result.searched, result.compared) == (False, 3, 0)


def test_the_time_limit_of_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = load("ptx-6.0"), load("ptx-7.5")
    asked = 0

    def check(limits: Limits) -> None:
        nonlocal asked
        asked += 1
        if asked > 300:
            raise Timeout

    monkeypatch.setattr(Limits, "check", check)
    result = separate(one, other, common_vocabulary(one, other), 8)
    assert (result.status, result.finding, result.program) == ("timeout", None, None)
    assert 1 <= result.searched < 8
    assert [note.kind for note in result.notes] == ["timeout"]


def test_vocabularies() -> None:
    words = common_vocabulary(load("ptx-6.0"), load("ptx-8.5"))
    assert words.scopes == ("cta", "gpu") and not words.aliases
    assert common_vocabulary(load("ptx-7.5"), load("ptx-8.5")).aliases
    for options, kind in (
        ({"scopes": ("cta", "cluster")}, "unsupported"),
        ({"kinds": ("alias",)}, "unsupported"),
        ({"kinds": ("mul",)}, "usage"),
        ({"scopes": ("warp",)}, "usage"),
        ({"orders": ("seq",)}, "usage"),
        ({"kinds": ("ld",), "orders": ("sc",)}, "usage"),
    ):
        with pytest.raises(PtxmmError) as refused:
            common_vocabulary(load("ptx-6.0"), load("ptx-8.5"), **options)
        assert refused.value.kind == kind, options


def test_a_model_that_names_scopes_gets_all_of_them() -> None:
    """Where a model asks for the scope itself, a wide scope is not the same as a narrow one around the same threads."""
    model = parse_model('"no GPU scope"\nempty GPU as none', "own.cat")
    words = common_vocabulary(model, load("sc"))
    assert not words.narrow
    result = separate(model, load("sc"), words, 2)
    assert result.finding


def test_names_of_models() -> None:
    assert model_names(load("ptx-6.0"), load("sc")) == ("ptx-6.0", "sc")
    one, other = load("ptx-8.5[dep=syn,red=read]"), load("ptx-8.5[red=read]")
    assert model_names(one, other) == ("ptx-8.5[dep=syn]", "ptx-8.5[dep=value]")


# -- the command --


@pytest.fixture
def ptxmm(tmp_path: Path, run_command: Run) -> Run:
    """Run a command line in a folder with a few tests, in this process."""
    (tmp_path / "old.litmus").write_text(OLD)
    (tmp_path / "new.litmus").write_text(NEW)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mp.litmus").write_text(OLD.replace("weak.", ""))
    (tmp_path / "folder" / "cluster.litmus").write_text(OLD.replace("relaxed.gpu", "relaxed.cluster"))
    (tmp_path / "folder" / "spl.litmus").write_text((ROOT / "litmus/coherence/A3-D-SPL.litmus").read_text())
    return partial(run_command, "compare")


def test_help(ptxmm: Run, golden: Golden) -> None:
    ran = ptxmm("--help")
    assert (ran.code, ran.err) == (0, "")
    golden("help-compare.txt", ran.out)


def test_two_models_on_a_test(ptxmm: Run, golden: Golden) -> None:
    ran = ptxmm("--models", "ptx-6.0", "ptx-7.5[scploc=none]", "folder/spl.litmus", "--most", "1")
    assert (ran.code, ran.err) == (Exit.FOUND, "")
    golden("compare-models.txt", steady(ran.out))


def test_two_models_on_a_folder(ptxmm: Run, golden: Golden) -> None:
    ran = ptxmm("--models", "ptx-6.0", "ptx-7.5[scploc=none]", "folder", "--jobs", "1")
    assert (ran.code, ran.err) == (Exit.FOUND, "")
    golden("compare-folder.txt", steady(ran.out))


def test_two_versions(ptxmm: Run, golden: Golden) -> None:
    ran = ptxmm("old.litmus", "new.litmus")
    assert (ran.code, ran.err) == (Exit.FOUND, "")
    golden("compare-versions.txt", steady(ran.out))
    assert ptxmm("old.litmus", "old.litmus").code == Exit.OK


def test_generate(ptxmm: Run, golden: Golden) -> None:
    ran = ptxmm("--models", "ptx-8.5", "sc", "--generate", "4", "--kinds", "ld,st,fence", "--orders", "relaxed,sc")
    assert (ran.code, ran.err) == (Exit.FOUND, "")
    golden("compare-generate.txt", steady(ran.out))


def test_generate_nothing(ptxmm: Run) -> None:
    ran = ptxmm("--models", "ptx-7.5", "ptx-8.5", "--generate", "2")
    assert (ran.code, ran.err) == (Exit.OK, "")
    assert "No program of at most 2 instructions separates them" in ran.out
    ran = ptxmm("--models", "ptx-6.0", "ptx-7.5", "--generate", "8", "--timeout", "0.2")
    assert ran.code == Exit.INCONCLUSIVE


def test_processes_do_not_change_the_answer(ptxmm: Run) -> None:
    models = ("--models", "ptx-7.5", "ptx-7.5[sc-acqrel=off]", "--kinds", "ld,st,fence")
    for orders in (("--orders", "relaxed"), ("--orders", "weak,relaxed,acquire,release,sc", "--threads", "2")):
        options = (*models, "--generate", "5", *orders, "--json")
        results = [json.loads(ptxmm(*options, "--jobs", jobs).out)["results"][0] for jobs in ("1", "2")]
        # Which program of that size is found may depend on how busy the machine is.
        told = [[entry[key] for key in ("status", "separated", "size", "searched")] for entry in results]
        assert told[0] == told[1]
        for entry in results:
            if entry["separated"]:
                parse_one(entry["program"])
    assert told[0] == ["complete", True, 5, 4]


def test_documents(ptxmm: Run, golden: Golden) -> None:
    ran = ptxmm("old.litmus", "new.litmus", "--json")
    assert (ran.code, ran.err) == (Exit.FOUND, "")
    golden("compare.json", steady(ran.out))
    ran = ptxmm("--models", "ptx-6.0", "ptx-7.5", "folder", "--json", "--jobs", "1")
    results = json.loads(ran.out)["results"]
    assert [entry["compared"] for entry in results] == [False, True, True]
    assert [entry["differ"] for entry in results] == [False, False, False]
    ran = ptxmm("--models", "ptx-8.5", "sc", "--generate", "2", "--json")
    (entry,) = json.loads(ran.out)["results"]
    assert (entry["analysis"], entry["separated"], entry["size"], entry["searched"]) == ("separate", True, 2, 1)
    parse_one(entry["program"])


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("old.litmus",),
        ("folder", "old.litmus"),
        ("--generate", "3"),
        ("--models", "ptx-8.5", "sc"),
        ("--models", "ptx-8.5", "nothing", "old.litmus"),
        ("--models", "ptx-8.5", "sc", "--model", "sc", "old.litmus"),
        ("--models", "ptx-8.5", "sc", "--generate", "3", "old.litmus"),
        ("--models", "ptx-8.5", "sc", "--generate", "99"),
        ("--models", "ptx-8.5", "sc", "--generate", "0"),
        ("--models", "ptx-8.5", "sc", "--generate", "2", "--kinds", "nop"),
        ("--models", "ptx-6.0", "ptx-7.5", "folder/cluster.litmus"),
        ("old.litmus", "nowhere.litmus"),
    ],
)
def test_wrong_use(ptxmm: Run, arguments: tuple[str, ...]) -> None:
    ran = ptxmm(*arguments)
    assert ran.code == Exit.BAD_INPUT
    assert "error" in ran.err and "internal" not in ran.err
