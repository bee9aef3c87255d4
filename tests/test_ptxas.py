"""Syntax judged by NVIDIA's own assembler: ptxmm and ptxas accept and refuse the same instructions.

``ptxas_forms.py`` makes the instructions. Where the two differ, a rule of ``ptxas_differences.toml`` says why; a
difference without a rule and a rule without a difference are failures. Needs ``ptxas`` on PATH or in the package
``nvidia-cuda-nvcc``; the list of differences is for release 13.0.
"""

from __future__ import annotations

import itertools
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from msgspec import Struct

from ptxmm.ptx.table import FORMS, Version
from tests.ptxas_assembler import assemble, assembler, release
from tests.ptxas_forms import BASE, Case, Judgement, case_of, cases_of_line, cases_of_row, judge
from tests.ptxas_syntax import Target, syntax_lines
from tests.tally import TALLY

RULES = Path(__file__).with_name("ptxas_differences.toml")
RELEASE = "13.0"
BATCH = 20_000


# -- the differences that are known --------------------------------------------------------------------------------


class Rule(Struct, frozen=True):
    """A class of differences. It covers a form if one of ``rows`` has its opcode and only words that it has (or is
    ANY), all of ``given`` and at least one of ``one_of`` (if any) are among the qualifiers, none of ``absent`` is,
    ``refuses`` is who refuses, with a message that has ``says`` (a regular expression) in it, and for ``moved`` the
    order of the qualifiers is not that of the syntax line."""

    name: str
    rows: tuple[str, ...]
    refuses: str
    reason: str
    isa: str
    says: str
    kind: str
    example: Case
    given: frozenset[str] = frozenset()
    one_of: frozenset[str] = frozenset()
    absent: frozenset[str] = frozenset()
    moved: bool = False

    def covers(self, difference: Difference) -> bool:
        """Whether this rule explains ``difference``."""
        words = set(difference.case.words)
        return (
            difference.refuses == self.refuses
            and any(_is_row(row, difference.case.words) for row in self.rows)
            and (difference.case.moved or not self.moved)
            and self.given <= words
            and (not self.one_of or not self.one_of.isdisjoint(words))
            and self.absent.isdisjoint(words)
            and re.search(self.says, difference.says) is not None
        )


class Difference(Struct, frozen=True):
    """A form that ``refuses`` (ptxas or ptxmm) refuses with the message ``says``, though the other one accepts it or a
    syntax line of the ISA has it."""

    case: Case
    refuses: str
    says: str

    def __str__(self) -> str:
        allowed = " (in a syntax line of the ISA)" if self.case.legal else ""
        return f"{self.case.row}: {self.refuses} refuses `{self.case.text}`{allowed}: {self.says}"


def _is_row(row: str, words: Sequence[str]) -> bool:
    """Whether an instruction has the opcode and the words of ``row``; all have those of ``ANY``."""
    opcode, *more = row.split(".")
    return row == "ANY" or (opcode == words[0] and set(more) <= set(words))


def _target(text: str) -> Target:
    """The target that ``text``, such as ``8.6 sm_90``, names; that of most forms if it is empty."""
    if not text:
        return BASE
    version, name = text.split()
    major, minor = version.split(".")
    return Target((int(major), int(minor)), name)


def load_rules(kind: str) -> list[Rule]:
    """The rules of ``ptxas_differences.toml`` of this kind: ``syntax``, or ``version`` (first version or target)."""
    entries = tomllib.loads(RULES.read_text(encoding="utf-8")).get("difference", [])
    rules = [
        Rule(
            name=entry["name"],
            rows=tuple(entry["rows"]),
            refuses=entry["refuses"],
            reason=entry["reason"],
            isa=entry["isa"],
            says=entry["says"],
            kind=entry.get("kind", "syntax"),
            example=case_of(entry["example"], _target(entry.get("target", ""))),
            given=frozenset(entry.get("given", ())),
            one_of=frozenset(entry.get("one_of", ())),
            absent=frozenset(entry.get("absent", ())),
            moved=entry.get("moved", False),
        )
        for entry in entries
    ]
    return [rule for rule in rules if rule.kind == kind]


# -- the comparison ------------------------------------------------------------------------------------------------


class Comparison(Struct, frozen=True):
    """What came of all forms: how many ptxmm accepts, refuses and calls unsupported, by row, and the differences."""

    accepted: Counter[str]
    refused: Counter[str]
    unsupported: Counter[str]
    differences: list[Difference]

    def __str__(self) -> str:
        judged = f"{self.accepted.total()} accepted and {self.refused.total()} refused forms judged"
        lacking = ", ".join(f"{row} {count}" for row, count in self.unsupported.most_common(12))
        return f"{judged}; {self.unsupported.total()} more not supported ({lacking})"


def target_of(case: Case, needs: Version) -> Target:
    """Where a form is assembled: for its own target, or a later one if ptxmm says that it needs that."""
    name = case.target.name
    if needs.sm > case.target.sm:
        name = f"sm_{needs.sm}"
    return Target(max(case.target.ptx, needs.ptx), name)


def compare(cases: Iterable[Case], folder: Path) -> Comparison:
    """Judge all ``cases`` with both. What the ISA's syntax allows and both refuse is a difference, too."""
    result = Comparison(Counter(), Counter(), Counter(), [])
    rest = iter(cases)
    while batch := list(itertools.islice(rest, BATCH)):
        _compare_batch(batch, folder, result)
    return result


def _compare_batch(cases: Iterable[Case], folder: Path, result: Comparison) -> None:
    modules: dict[Target, dict[str, tuple[Case, Judgement]]] = defaultdict(dict)
    for case in cases:
        judgement = judge(case)
        modules[target_of(case, judgement.needs)].setdefault(case.text, (case, judgement))
    for target, members in modules.items():
        refused = assemble(list(members), target, folder)
        for text, (case, judgement) in members.items():
            counts = {True: result.accepted, False: result.refused, None: result.unsupported}
            counts[judgement.accepts][case.row] += 1
            if text in refused and (judgement.accepts or case.legal):
                result.differences.append(Difference(case, "ptxas", refused[text]))
            elif text not in refused and judgement.accepts is False:
                result.differences.append(Difference(case, "ptxmm", judgement.says))


def all_cases(limit: int, per_line: int, mutants: int) -> Iterator[Case]:
    """The forms of the ISA's syntax lines and of the rows of ptxmm's table; see ``ptxas_forms.py``."""
    for line in syntax_lines():
        yield from cases_of_line(line, per_line, mutants)
    for form in FORMS.values():
        yield from cases_of_row(form, limit, mutants)


def unexplained(differences: Iterable[Difference], rules: Iterable[Rule]) -> tuple[list[Difference], list[str]]:
    """The differences that none of ``rules`` covers, and the rules whose example is not among the differences that
    they cover."""
    idle = {rule.name for rule in rules}
    left: list[Difference] = []
    for difference in differences:
        covering = [rule for rule in rules if rule.covers(difference)]
        if not covering:
            left.append(difference)
        idle -= {rule.name for rule in covering if rule.example.text == difference.case.text}
    return left, sorted(idle)


def check(differences: list[Difference], rules: list[Rule]) -> None:
    """Fail on differences without a rule and, for the release that the list is for, on rules without a difference."""
    left, idle = unexplained(differences, rules)
    assert not left, f"{len(left)} differences without a rule:\n" + "\n".join(map(str, left))
    assert not idle or release() != RELEASE, f"rules whose example is no difference: {idle}"


# -- first versions and targets ------------------------------------------------------------------------------------

VERSIONS = tuple((6, n) for n in range(3, 6)) + tuple((7, n) for n in range(9)) + tuple((8, n) for n in range(9))
# The targets that ptxas 13 assembles for, and their first versions (PTX ISA, release notes).
TARGETS: Mapping[int, tuple[int, int]] = {75: (6, 3), 80: (7, 0), 90: (7, 8), 100: (8, 6)}


def version_trials(case: Case, needs: Version) -> Iterator[tuple[Target, bool, str]]:
    """Where ``case`` should be accepted at the earliest, and the places before that where it should be refused, with
    what ptxmm says there. ``needs`` is where ptxmm says that it begins."""
    suffix = "a" if case.target.name.endswith("a") else ""
    sm = next((sm for sm in TARGETS if sm >= needs.sm), 0)
    if sm == 0 or needs.ptx > VERSIONS[-1]:
        return
    ptx = max(needs.ptx, TARGETS[sm], (8, 0) if suffix else (6, 3))
    yield Target(ptx, f"sm_{sm}{suffix}"), True, ""
    if ptx == needs.ptx and ptx > max(TARGETS[sm], (8, 0) if suffix else (6, 3)):
        before = VERSIONS[VERSIONS.index(ptx) - 1]
        yield Target(before, f"sm_{sm}{suffix}"), False, f"needs PTX {ptx[0]}.{ptx[1]}"
    if sm == needs.sm and sm > 75:
        before_sm = max(s for s in TARGETS if s < sm)
        yield Target(max(needs.ptx, TARGETS[before_sm]), f"sm_{before_sm}"), False, f"needs sm_{sm}"


def accepted_by_both(cases: Iterable[Case], folder: Path) -> Iterator[tuple[Case, Version]]:
    """Those of ``cases`` that both accept, with what ptxmm says that they need."""
    modules: dict[Target, dict[str, tuple[Case, Version]]] = defaultdict(dict)
    for case in cases:
        judgement = judge(case)
        if judgement.accepts:
            modules[target_of(case, judgement.needs)][case.text] = (case, judgement.needs)
    for target, members in modules.items():
        refused = assemble(list(members), target, folder)
        yield from (member for text, member in members.items() if text not in refused)


def compare_versions(cases: Iterable[Case], folder: Path) -> tuple[int, list[Difference]]:
    """How many trials there were, and where ptxas differs from ptxmm on the first version or target of a form."""
    modules: dict[Target, dict[str, tuple[Case, bool, str]]] = defaultdict(dict)
    for case, needs in accepted_by_both(cases, folder):
        for target, accepted, says in version_trials(case, needs):
            modules[target][case.text] = (case, accepted, says)
    differences: list[Difference] = []
    for target, members in modules.items():
        refused = assemble(list(members), target, folder)
        for text, (case, accepted, says) in members.items():
            if accepted and text in refused:
                where = f"PTX {target.ptx[0]}.{target.ptx[1]}, {target.name}"
                differences.append(Difference(case, "ptxas", f"{refused[text]} ({where})"))
            elif not accepted and text not in refused:
                differences.append(Difference(case, "ptxmm", says))
    return sum(map(len, modules.values())), differences


# -- the tests -----------------------------------------------------------------------------------------------------

needs_ptxas = pytest.mark.skipif(assembler() is None, reason="ptxas is neither on PATH nor installed")


@needs_ptxas
def test_forms_as_ptxas_judges_them(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """At least 2,000 forms of all rows, legal and illegal."""
    rules = load_rules("syntax")
    cases = all_cases(limit=80, per_line=12, mutants=8)
    result = compare([*(rule.example for rule in rules), *cases], tmp_path)
    request.config.stash[TALLY].notes.append(f"ptxas: {result}")
    check(result.differences, rules)
    assert result.accepted.total() + result.refused.total() >= 2000
    assert not FORMS.keys() - result.accepted.keys(), "rows without an accepted form"


def test_differences_need_rules_and_rules_need_differences() -> None:
    """The check fails on a difference that no rule covers, and on a rule whose example is not among them."""
    rules = [rule for rule in load_rules("syntax") if rule.name == "doubled qualifier"]
    known = Difference(rules[0].example, "ptxmm", "`.sync` is there twice")
    other = Difference(case_of("st.b32.b32 [d1], r1"), "ptxmm", "`.b32` is there twice")
    assert unexplained([known], rules) == ([], [])
    assert unexplained([other], rules) == ([other], ["doubled qualifier"])
    assert not rules[0].covers(Difference(rules[0].example, "ptxas", "`.sync` is there twice"))
    assert not rules[0].covers(Difference(rules[0].example, "ptxmm", "another message"))


def test_every_rule_is_specific() -> None:
    """A rule covers its example, names its section, and its pattern does not fit every message."""
    for rule in (*load_rules("syntax"), *load_rules("version")):
        assert rule.isa and rule.reason and rule.says
        assert not re.search(rule.says, "some other message about ptx"), rule.name


@needs_ptxas
def test_first_versions_as_ptxas_knows_them(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """A form is accepted from the version and the target on that ptxmm says, and not before (from PTX 6.3, sm_75)."""
    rules = load_rules("version")
    cases = (case for line in syntax_lines() for case in cases_of_line(line, 24, 0))
    count, differences = compare_versions([*(rule.example for rule in rules), *cases], tmp_path)
    request.config.stash[TALLY].notes.append(f"ptxas: {count} trials of first versions and targets")
    check(differences, rules)


@needs_ptxas
@pytest.mark.slow
def test_all_forms_as_ptxas_judges_them(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The whole product of every row (without cache operators and hints where it is large), and many mutants."""
    rules = load_rules("syntax")
    cases = all_cases(limit=10_000, per_line=1_000, mutants=300)
    result = compare(itertools.chain((rule.example for rule in rules), cases), tmp_path)
    request.config.stash[TALLY].notes.append(f"ptxas: {result}")
    check(result.differences, rules)
