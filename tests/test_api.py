"""The public API: its names, tests that can be asked, results that show themselves."""

from __future__ import annotations

import ast
import json
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest
from jsonschema import Draft202012Validator
from msgspec import to_builtins

import ptxmm as mm
from ptxmm.analysis import explain as analysis
from ptxmm.api.names import NoSuchName
from ptxmm.api.shown import Displayed, Shown, Tabular
from ptxmm.cat import load
from ptxmm.formats.litmus import same
from ptxmm.program.test import Test as Program
from ptxmm.render import RENDERERS, schema
from tests.commands import Run
from tests.support import ROOT

MP, STATE = "mp/MP+rel+acq", "P1:r0=1 P1:r1=0"
KERNEL = ROOT / "tests" / "cuda" / "mp_release_acquire_gpu.ptx"
MARKUP = """PTX <b>x</b>
"<script>alert(1)</script>"
{ .global .u32 x = 0; }
P0 @ cta 0 { st.global.u32 [x], 1; }
exists (x == 1)
"""
QUESTIONS: dict[str, Callable[[mm.Test], Shown]] = {
    "show": mm.Test.show,
    "check": mm.Test.check,
    "explain": mm.Test.explain,
    "fences": mm.Test.fences,
    "races": mm.Test.races,
    "scopes": mm.Test.scopes,
    "progress": mm.Test.progress,
    "robust": mm.Test.robust,
    "compare": lambda test: test.compare("ptx-6.0"),
}


# -- names ---------------------------------------------------------------------------------------------------------


def test_dir_has_every_name_in_order() -> None:
    assert dir(mm) == sorted(mm.__all__)
    assert {"test", "read", "library", "model", "Test", "check"} <= set(dir(mm))
    with pytest.raises(AttributeError, match="module 'ptxmm' has no attribute 'nothing'"):
        _ = mm.nothing


def test_types_are_those_of_the_names() -> None:
    """What a type checker takes for a name is where it comes from."""
    tree = ast.parse((ROOT / "ptxmm" / "__init__.py").read_text())
    imports = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ptxmm.")
        for alias in node.names
    }
    assert imports.keys() == set(mm.__all__) - {"__version__"}
    for name, (module, own) in imports.items():
        assert module is not None
        assert getattr(sys.modules.get(module) or __import__(module, fromlist=["_"]), own) is getattr(mm, name), name


LAZY = """
import os, sys
import ptxmm
assert not [m for m in sys.modules if m.startswith("ptxmm.")], sys.modules
for name in ptxmm.__all__:
    child = os.fork()
    if not child:
        getattr(ptxmm, name)
        heavy = {"rich", "lark", "z3", "networkx", "typer", "pandas"} & sys.modules.keys()
        if name in ("Limits", "Model", "PtxmmError", "Result", "Test", "check", "library", "model", "read", "test"):
            heavy |= {"ctypes"} & sys.modules.keys()
        if heavy:
            print(name, heavy, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="this system can't fork")
def test_every_name_in_a_process_of_its_own_loads_little() -> None:
    ran = subprocess.run([sys.executable, "-c", LAZY], capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr, ran.returncode) == ("", "", 0)


def test_a_question_loads_what_it_needs() -> None:
    """The analyses of other questions are not loaded."""
    code = f"import sys, ptxmm as mm; mm.library[{MP!r}].check(); print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    others = {f"ptxmm.analysis.{name}" for name in ("explain", "fences", "races", "scopes", "progress", "compare")}
    assert others.isdisjoint(ran.stdout.split())


# -- tests ---------------------------------------------------------------------------------------------------------


def test_a_test_as_text() -> None:
    test = mm.test((ROOT / "litmus" / f"{MP}.litmus").read_text())
    assert isinstance(test, mm.Test)
    assert repr(test) == "<Test MP+rel+acq: 2 threads>"
    assert str(test.condition) == "exists (P1:r0 == 1 /\\ P1:r1 == 0)"
    assert pickle.loads(pickle.dumps(test)) == test


@pytest.mark.parametrize("part", range(5))
def test_the_text_of_a_test_is_the_same_test(part: int) -> None:
    for name in list(mm.library)[part::25]:
        test = mm.library[name]
        assert same(mm.test(str(test)), test), name


@pytest.mark.parametrize("path", ["mp_release_acquire_gpu.ptx", "cluster_histogram.ptx"])
def test_a_kernel(path: str) -> None:
    (test,) = mm.read(ROOT / "tests" / "cuda" / path)
    assert list(mm.test(str(test)).states()) == list(test.states()) != []
    assert str(test) == test.extract()


def test_a_verdict_on_a_kernel_is_compared_with_its_claim() -> None:
    (test,) = mm.read(KERNEL)
    result = test.check()
    assert (result.expected, str(result.conclusion), result.holds) == ("holds", "expected", True)
    assert test.races().race_free is True


def _module() -> str:
    """A PTX module with its launch as comments."""
    source = KERNEL.with_suffix(".cu").read_text().splitlines()
    return "\n".join([*(line for line in source if line.startswith("// ptxmm:")), KERNEL.read_text()])


def test_a_test_in_a_notebook() -> None:
    """It is shown by the labels that results use."""
    test = mm.library[MP]
    assert test._repr_html_() == test.show()._repr_html_()
    labels = [item.label for thread in test.show().threads for item in thread.instructions]
    assert labels == ["P0:10", "P0:11", "P1:10", "P1:11"]
    assert labels == [event.label for event in test.executions()[0].events[:4]]


def test_the_format_of_a_text_is_found() -> None:
    assert mm.test(_module()).claims is not None
    with pytest.raises(mm.PtxmmError, match="a CUDA source can't be read from text"):
        mm.test("__global__ void k() {}\n")
    with pytest.raises(mm.PtxmmError, match="there are no threads"):
        mm.test("PTX x\n{ x = 0; }\n")


def test_several_tests_are_no_test() -> None:
    """A table has a test for each of its rows."""
    page = (ROOT / "docs" / "formats.md").read_text()
    (table,) = re.findall(r"^```\n(\.global.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert mm.test(table) == mm.parse(table, format="nvlitmus")[0]
    two = _module().replace("// ptxmm: [check]", "// ptxmm: [[launch]]\n// ptxmm: [[launch]]\n// ptxmm: [check]")
    with pytest.raises(mm.PtxmmError, match="the text has 2 tests"):
        mm.test(two)


@pytest.mark.parametrize(
    ("name", "model"),
    [
        (MP, "ptx-8.5"),
        (MP, "ptx-6.0[dep=syn]"),
        ("async/TMA-load-empty-slot-no-fence", "ptx-8.5"),
        ("aligned/tcgen05-other-order", "ptx-8.5"),
        ("coherence/A10-unknown-but-constant", "ptx-8.5"),
    ],
)
def test_a_test_says_what_the_command_says(run_command: Run, name: str, model: str) -> None:
    """The document is the same but for the time."""
    test = mm.library[name]
    ran = run_command("outcomes", test.file, "--model", model, "--json")
    assert _timeless(test.check(model).to_json()) == _timeless(ran.out)
    ran = run_command("races", test.file, "--json")
    assert _timeless(test.races(graphs=False).to_json()) == _timeless(ran.out)


def _timeless(text: str) -> object:
    return json.loads(re.sub(r'"seconds": [0-9.e-]+', '"seconds": 0', text))


def test_another_condition() -> None:
    test = mm.library[MP]
    result = test.check(condition="forall (P1:r0 == 1)")
    assert (result.quantifier, result.holds, result.expected) == ("forall", False, None)
    assert str(test.asking("~exists (P1:r1=0)").condition) == "~exists (P1:r1=0)"
    for text, shown in (
        ("exist (P1:r0=1)", "`exist` begins no condition"),
        ("exists (P1:r9=1)", "P1 has no register `r9`"),
        ("locations [x;]", "this is no condition"),
        ("", "the file is empty"),
    ):
        with pytest.raises(mm.PtxmmError, match=re.escape(shown)):
            test.check(condition=text)


@pytest.mark.parametrize("name", [MP, "sb/ISA-SB", "rmw/atom.add+st", "barriers/BAR-MP"])
def test_every_state_is_explained_by_its_text(name: str) -> None:
    test = mm.library[name]
    states = list(test.states())
    assert states
    for state in states:
        assert test.explain(state=str(state)).verdict == "allowed"
        (execution,) = test.executions(state=str(state))
        assert execution.state == state


def test_a_state_that_is_forbidden() -> None:
    test = mm.library[MP]
    assert test.explain(state=STATE).verdict == "forbidden"
    assert test.executions(state=STATE) == ()
    with pytest.raises(mm.PtxmmError, match="P1 has no register `r7`") as caught:
        test.explain(state="P1:r7=1")
    assert str(caught.value).splitlines()[1:3] == ["  P1:r7=1", "  ^^^^^"]


def test_a_limit_of_time_and_of_rounds() -> None:
    result = mm.library[MP].check(timeout=0.0)
    assert (result.status, result.outcomes) == ("timeout", ())
    loop = mm.test(
        "PTX l\n{ .global .u32 x = 0; }\nP0 @ cta 0 {\nA: atom.add.relaxed.gpu.global.u32 r0, [x], 1;\n"
        "setp.lt.u32 p, r0, 4;\n@p bra A;\n}\nexists (x == 2)\n"
    )
    assert (loop.check().status, loop.check(unroll=6).status) == ("bounded", "complete")
    assert loop.check(unroll=6, timeout=None).holds is False
    for ask in (mm.Test.states, mm.Test.executions):
        with pytest.raises(mm.PtxmmError, match="the time limit ended the search") as caught:
            ask(mm.library[MP], timeout=0.0)
        assert caught.value.kind == "timeout"
        with pytest.warns(UserWarning, match="there may be others") as warned:
            assert tuple(ask(loop)) == ()
        assert warned[0].filename == __file__


def test_a_program_without_meaning() -> None:
    """Its states are no states of anything: that is told."""
    test = mm.library["aligned/tcgen05-other-order"]
    with pytest.warns(UserWarning, match="the program has no meaning"):
        assert tuple(test.states()) == ()
    with pytest.warns(UserWarning, match="the program has no meaning"):
        test.executions()


def test_two_versions_of_a_test() -> None:
    test = mm.library[MP]
    weaker = mm.test(str(test).replace("st.release", "st.relaxed"))
    result = test.compare(weaker)
    assert (result.versions, result.differ) == (True, True)
    assert [str(d.outcome) for d in result.second.only] == [STATE]
    assert result.rows() == [{"only": result.second.name, "state": STATE, "axioms": ""}]
    models = test.compare("ptx-6.0", mm.model("ptx-8.5").without("Causality"))
    assert [row["axioms"] for row in models.rows()] == ["Causality"]
    assert (models.first.name, models.second.name) == ("ptx-8.5[without=Causality]", "ptx-6.0")


def test_wrong_questions() -> None:
    test = mm.library[MP]
    for ask, shown in (
        (lambda: test.fences(wanted="fast"), "no property `fast`"),
        (lambda: test.check("ptx-9"), "unknown model `ptx-9`"),
        (lambda: test.extract(), "this is a litmus test already"),
        (lambda: test.convert("dialect"), "values of the dialect are 64 bits wide, not .u32"),
        (lambda: test.asking("exists (x == 1)"), "no variable is called `x`"),
    ):
        with pytest.raises(mm.PtxmmError, match=re.escape(shown)):
            ask()


def test_errors_about_a_test_show_its_line() -> None:
    text = "PTX x\n{ .global .u32 x = 0; }\nP0 @ cta 0 { st.release.cluster.global.u32 [x], 1; }\nexists (x == 1)\n"
    with pytest.raises(mm.PtxmmError) as caught:
        mm.test(text).check("ptx-6.0")
    lines = str(caught.value).splitlines()
    assert lines[0] == "<text>:3:14: error: ptx-6.0 has no scope .cluster"
    assert lines[1].strip() == "P0 @ cta 0 { st.release.cluster.global.u32 [x], 1; }"
    assert lines[2].index("^") - lines[1].index("P0") == 13


def test_what_a_notebook_shows_of_an_error() -> None:
    """The places in the user's own code, not those in the package; of a bug all of them."""
    with pytest.raises(mm.PtxmmError) as caught:
        mm.library[MP].explain(state="P1:r7=1")
    shown = caught.value._render_traceback_()
    assert len(shown) == 2 and __file__ in shown[0] and shown[1] == str(caught.value)
    caught.value.kind = "internal"
    assert len(caught.value._render_traceback_()) > 4


# -- results -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_result_shows_itself(name: str) -> None:
    result = QUESTIONS[name](mm.library[MP])
    text = str(result)
    assert text.startswith("Test MP+rel+acq\n") and "\x1b" not in text
    html = result._repr_html_()
    assert html.startswith("<pre") and "\x1b" not in html and "MP+rel+acq" in html
    forms = result._repr_mimebundle_()
    picture = forms.pop("image/svg+xml", None)
    assert forms == {"text/plain": text, "text/html": html}
    assert (picture is not None) is (name in ("explain", "races")) and html.endswith(picture or "</pre>")
    assert result._repr_mimebundle_(include={"text/html"}) == {"text/html": html}
    assert result._repr_mimebundle_(exclude={"text/html", "image/svg+xml"}) == {"text/plain": text}
    document = json.loads(result.to_json())
    Draft202012Validator(json.loads(schema.text())).validate(document)
    (entry,) = document["results"]
    assert entry.pop("analysis") == name
    assert entry.keys() == set(result.__struct_fields__)  # type: ignore[attr-defined]
    rows = result.rows()
    assert all(row.keys() == rows[0].keys() for row in rows)
    assert rows or name in ("progress", "robust", "compare")
    assert pickle.loads(pickle.dumps(result)) == result


@pytest.mark.parametrize("name", [name for name in QUESTIONS if name != "show"])
def test_the_functions_give_the_same_results(name: str) -> None:
    test, model = mm.library[MP], mm.model("ptx-8.5")
    more = (mm.load_model("ptx-6.0"),) if name == "compare" else ()
    function = getattr(mm, name)
    found = function(test, model, *more)
    assert type(found) is type(QUESTIONS[name](test))
    assert isinstance(found, getattr(mm, type(found).__name__))
    assert str(found).startswith("Test MP+rel+acq\n")
    assert function.__doc__ and function.__name__ == name


def test_every_result_is_one_that_shows_itself() -> None:
    results = {name for name in mm.__all__ if name.endswith("Result")}
    assert len(results) == 9
    for name in results:
        kind = getattr(mm, name)
        assert issubclass(kind, Shown) and kind._KIND in RENDERERS["text"] and kind._KIND in RENDERERS["json"]
        assert kind.__doc__ and not kind.__doc__.startswith(f"{name}(")


def test_what_lint_finds() -> None:
    result = mm.lint('__global__ void f(int *p) { asm("st.global.u32 [%0], 1;" :: "l"(p)); }')
    assert [row["rule"] for row in result.rows()] == [f.rule.id for f in result.findings] != []
    assert "PTX102" in str(result) and "1 warning" in str(result)


def test_pictures() -> None:
    """Of results that were asked for graphs, and have an execution to show; of every execution."""
    test = mm.library[MP]
    weaker = mm.test(str(test).replace("st.release", "st.relaxed"))
    assert test.check()._repr_svg_() is None and test.explain(graphs=False)._repr_svg_() is None
    assert weaker.races(graphs=False)._repr_svg_() is None and weaker.fences(graphs=False)._repr_svg_() is None
    assert test.scopes()._repr_svg_() is None and test.fences()._repr_svg_() is None
    execution = test.executions()[-1]
    for item in (test.check(graphs=True), test.explain(), weaker.explain(), weaker.races(), weaker.fences(), execution):
        picture = item._repr_svg_()
        assert picture is not None
        title = ElementTree.fromstring(picture).find("{http://www.w3.org/2000/svg}title")
        assert title is not None and title.text == "MP+rel+acq under ptx-8.5"
    assert "ends with P1:r0=1 P1:r1=1" in execution._repr_svg_()


def test_nothing_of_a_test_is_markup() -> None:
    test = mm.test(MARKUP)
    items: list[Displayed] = [test.check(graphs=True), test.executions()[0], test.explain()]
    shown = [item._repr_html_() for item in items]
    for html in shown:
        assert "<b>" not in html and "<script" not in html
    assert "&lt;b&gt;x&lt;/b&gt;" in shown[0]


def test_the_state_that_satisfies_the_condition_stands_out() -> None:
    html = mm.library[MP].check(condition="exists (P1:r0 == 1)")._repr_html_()
    marked = [row for row in html.split("<tr>")[1:] if "<td>*</td>" in row]
    assert len(marked) == 1 and marked[0].count("font-weight: bold") == 1


class _Frame:
    def __init__(self, rows: list[dict[str, object]]) -> None:
        self.rows = rows


def test_a_data_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows are ``rows()``; where pandas is missing, that is said."""
    pandas = ModuleType("pandas")
    pandas.DataFrame = _Frame  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pandas", pandas)
    test = mm.library[MP]
    result, (execution, *_) = test.check(), test.executions()
    shown: list[Tabular] = [result, execution, execution.relations["po"]]
    for item in shown:
        assert item.to_pandas().rows == item.rows() != []
    assert result.rows()[0] == {"P1:r0": 0, "P1:r1": 0, "satisfies": False}
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(mm.PtxmmError, match="to_pandas needs pandas, which is not installed") as caught:
        result.to_pandas()
    assert caught.value.kind == "usage" and caught.value.hint is not None


def test_a_data_frame_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    frame = mm.library[MP].check().to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame.to_dict("records") == mm.library[MP].check().rows()


def test_an_unknown_value_in_a_row() -> None:
    rows = mm.library["coherence/A10-unknown-but-constant"].check().rows()
    assert "?s" in {value for row in rows for value in row.values()}


# -- executions ----------------------------------------------------------------------------------------------------


def test_an_execution() -> None:
    execution = mm.library[MP].executions()[-1]
    assert repr(execution) == "<Execution P1:r0=1 P1:r1=1>"
    assert str(execution).splitlines()[0] == "P1:r0=1 P1:r1=1"
    assert [event.label for event in execution.events[:4]] == ["P0:10", "P0:11", "P1:10", "P1:11"]
    document = json.loads(execution.to_json())
    assert (document["test"], document["model"]) == ("MP+rel+acq", "ptx-8.5")
    assert document["state"] == to_builtins(execution.state) and document["graph"]["events"]
    assert document["threads"] == json.loads(json.dumps(to_builtins(execution.threads)))
    assert [row["kind"] for row in execution.rows()] == ["W", "W", "R", "R"]
    assert repr(execution.relations["rf"]) == "<Relation rf: 2 pairs>"
    assert {(a.label, b.label) for a, b in execution.relations["rf"]} == {("P0:10", "P1:11"), ("P0:11", "P1:10")}
    assert len(execution.relations["rf"]) == 2


def test_why_two_events_are_related() -> None:
    execution = mm.library[MP].executions()[-1]
    why = execution.why("cause", "P0:10", "P1:11")
    assert why and isinstance(why, mm.Why)
    assert str(why).splitlines() == [
        "P0:10 -> P1:11 is in cause",
        "  P0:10: st.global.u32 [data], 1  (writes data = 1)",
        "    -> program order (8.9.1)",
        "  P0:11: st.release.gpu.global.u32 [flag], 1  (writes flag = 1)",
        "    -> synchronizes by release and acquire patterns (8.9.4 (4)): release pattern P0:11, acquire pattern P1:10",
        "        -> observation order (8.9.2 (1))",
        "  P1:10: ld.acquire.gpu.global.u32 r0, [flag]  (reads flag = 1)",
        "    -> program order (8.9.1)",
        "  P1:11: ld.global.u32 r1, [data]  (reads data = 1)",
    ]
    other = execution.why("cause", "P1:11", "P0:10")
    assert not other and str(other) == "P1:11 -> P0:10 is not in cause"


@pytest.mark.parametrize("name", [MP, "barriers/BAR-MP", "async/TMA-load", "rmw/atom.add+st", "sb/ISA-SB"])
def test_every_pair_of_every_relation_has_a_reason(name: str) -> None:
    """A chain from the one event to the other, the same as the relation of the whole model has."""
    execution = mm.library[name].executions()[-1]
    asked = 0
    for relation in execution.relations.values():
        related = set(relation)
        for first, second in list(related)[:40]:
            why = relation.why(first, second)
            assert why.holds and (why.first.same, why.second.same) == (first.same, second.same)
            edges = why.edges
            if edges:
                assert edges[0].first.same == first.same and edges[-1].second.same == second.same, relation.name
            assert all(a.second.same == b.first.same for a, b in pairwise(edges))
            asked += 1
        if related:
            first, second = next(iter(related))
            assert relation.why(second, first).holds is ((second, first) in related) or first.same == second.same
    assert asked > 50


def test_unknown_relations_and_events() -> None:
    execution = mm.library[MP].executions()[0]
    with pytest.raises(NoSuchName, match="did you mean `po-loc`"):
        execution.relations["po_loc"]
    with pytest.raises(mm.PtxmmError, match="the execution has no event `P0:99`"):
        execution.why("po", "P0:99", "P0:10")
    assert "po" in execution.relations and "R" not in execution.relations


# -- library and models --------------------------------------------------------------------------------------------


def test_the_library() -> None:
    library = mm.library
    names = list(library)
    files = sorted((ROOT / "litmus").rglob("*.litmus"))
    assert len(library) == len(names) == len(files) and names == sorted(names)
    assert MP in library and "mp" not in library
    assert library._ipython_key_completions_() == list(library.keys()) == names
    assert library.starting("mp/MP+rel+a") == [n for n in names if n.startswith("mp/MP+rel+a")] != []
    assert library.families == sorted(p.name for p in (ROOT / "litmus").iterdir())
    assert library.get("nothing") is None
    assert repr(library) == f"<{len(names)} tests: {', '.join(names[:5])}, ...>"
    assert {"families", "folder", "keys", "starting", "values"} <= set(dir(library))


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("mp/MP+rel+ac", "did you mean `mp/MP+rel+acq`"),
        ("MP+rel+acq", "did you mean `mp/MP+rel+acq`?"),
        ("MP/mp+REL+acq", "did you mean `mp/MP+rel+acq`"),
        ("mp/", "or "),
        ("zzzzzzzz", "tests: 2+2w/"),
        ("", "tests: 2+2w/"),
    ],
)
def test_a_test_that_is_not_there(name: str, hint: str) -> None:
    with pytest.raises(KeyError) as caught:
        mm.library[name]
    error = caught.value
    assert isinstance(error, mm.PtxmmError)
    assert str(error).startswith(f"error: there is no test `{name}`\n  hint: ") and hint in str(error)


def test_models() -> None:
    model = mm.model("ptx-8.5")
    assert mm.model("ptx-8.5") is model is mm.model(model) and isinstance(model, mm.Model)
    assert "Causality" in model.checks and "data-race" not in model.checks
    assert "acyclic" in str(model)
    assert mm.model("ptx-8.5[dep=syn]").specification == "ptx-8.5[dep=syn]" == mm.model(
        "ptx-8.5", {"dep": "syn"}
    ).specification  # fmt: skip
    assert mm.model(load("sc")).specification == "sc"


def test_a_model_without_some_of_its_checks() -> None:
    model, test = mm.model("ptx-8.5"), mm.library[MP]
    weaker = model.without("Causality")
    assert (weaker.specification, weaker.left_out) == ("ptx-8.5[without=Causality]", ("Causality",))
    assert sorted(str(s) for s in test.states(weaker))[2] == STATE
    assert test.check(weaker).model == weaker.specification
    both = weaker.without("Atomicity-RMW")
    assert set(model.checks) - set(both.checks) == {"Causality", "Atomicity-RMW"}
    with pytest.raises(mm.PtxmmError, match="has no check or definition `Causalty`") as caught:
        model.without("Causalty")
    assert "did you mean `Causality`" in str(caught.value)


def test_a_model_of_ones_own(tmp_path: Path) -> None:
    """It is called by its path: its stem may be the name of a shipped one."""
    path = tmp_path / "ptx-8.5.cat"
    path.write_text('"mine"\ninclude "sc.cat"\nempty rmw as No-RMW\n')
    model = mm.model(path)
    assert model.specification == str(path)
    assert mm.library[MP].check(model).model == str(path)
    assert "No-RMW" not in model.without("No-RMW").checks


def test_plain_tests_are_taken_too() -> None:
    """The functions take what the rest of the package makes."""
    from ptxmm.formats import parse

    (plain,) = parse(str(mm.library[MP]))
    assert type(plain) is Program
    assert mm.check(plain, load("ptx-8.5")).observation == "never"
    assert mm.explain(plain, load("ptx-8.5")).verdict == analysis.explain(plain, load("ptx-8.5")).verdict
