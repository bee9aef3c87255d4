"""Pictures of executions: what they show, and that nothing in them covers anything else."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

import networkx
import pytest

from ptxmm import Limits, Test, check, explain, fences, parse, races, read
from ptxmm.errors import PtxmmError
from ptxmm.formats import questions
from ptxmm.program.condition import Proposition
from ptxmm.render.pictures import svg
from ptxmm.render.pictures.boxes import Link, Relation, Scene
from ptxmm.render.pictures.looks import COLOURS, DASHES
from ptxmm.render.pictures.scene import MOST_ROWS, MOST_THREADS
from ptxmm.render.pictures.subject import Picture, pictures
from ptxmm.render.pictures.words import KINDS, columns, wrapped
from tests.commands import Run
from tests.geometry import drawing, faults
from tests.support import ROOT, model_named

Golden = Callable[[str, str], None]

LITMUS = ROOT / "litmus"
FILES = sorted(LITMUS.rglob("*.litmus"))
SHARE = 3
"""Of so many tests one is drawn in every run, the others with ``-m slow``."""

ISA = (
    "aliases/ISA-CoWR",
    "coherence/ISA-CoRR",
    "lb/ISA-LB",
    "mp/ISA-MP",
    "rmw/ISA-atomicity-1",
    "rmw/ISA-atomicity-2",
    "sb/ISA-SB",
)
BUGS = (
    "cutlass-3643-remote-arrive-cta-scope-fixed",
    "cutlass-semaphore-no-threadfence-buggy",
    "deepep-tma-copy-wait-count-buggy",
    "deepep-war-lds-then-tma-load-fixed",
    "flashinfer-topk-missing-bar-fixed",
    "kokkos-reduce-missing-syncwarp-fixed",
    "nccl-ll128-threadfence-gpu-scope-buggy",
    "tcgen05-ld-not-waited-before-release-fixed",
    "torchcomms-host-volatile-poll-buggy",
    "triton-tensormap-no-acquire-buggy",
)
MODEL = model_named("ptx-8.5")
PAGE = (ROOT / "docs" / "pictures.md").read_text(encoding="utf-8")
PAGES = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").rglob("*.md"))]
_COMMAND = re.compile(
    r"^```sh\nptxmm (\w+) ((?:litmus|tests)/\S+) (.*) > (docs/pictures/\S+)\n```\n\n!\[[^]]+\]\((\S+)\)$", re.MULTILINE
)


def title(page: str) -> str:
    """What a page calls itself."""
    return page.partition("\n")[0].removeprefix("# ")


def _read(name: str) -> Test:
    (test,) = read(LITMUS / f"{name}.litmus")
    return test


def _text(text: str) -> Test:
    (test,) = parse(text)
    return test


def _explained(test: Test) -> Iterator[Picture]:
    return pictures(explain(test, MODEL, misses=False, graphs=True))


def _scene(shown: Iterator[Picture]) -> Scene:
    (picture,) = shown
    assert picture.scene is not None
    return picture.scene


def _links(scene: Scene, links: tuple[Link, ...]) -> dict[tuple[str, str, str], int]:
    """Links by their ends, as lines of instructions or text, and their label; with their weights."""
    name = [box.number or " ".join(box.lines) for box in scene.boxes]
    column = ["" if b.column is None else scene.names[scene.columns.index(b.column)] + ":" for b in scene.boxes]
    ends = [a + b for a, b in zip(column, name, strict=True)]
    return {(ends[link.first], ends[link.second], link.label): link.weight for link in links}


@pytest.mark.parametrize("name", [*ISA, *(f"bugs/{bug}" for bug in BUGS)])
def test_golden(name: str, golden: Golden) -> None:
    """Why the state of the condition is allowed, or not; where no execution ends so, one that ends otherwise."""
    test = _read(name)
    drawn = svg(explain(test, MODEL, misses=False, graphs=True))
    if "whatever the axioms say" in drawn:
        drawn = svg(check(test, MODEL, graphs=True))
    golden(f"picture-{Path(name).name}.svg", drawn + "\n")
    assert not list(faults(drawn))


@pytest.mark.parametrize("share", [pytest.param(n, marks=[] if n == 0 else pytest.mark.slow) for n in range(SHARE)])
def test_every_litmus_test_has_a_picture_in_which_nothing_covers_anything(share: int) -> None:
    drawn = 0
    for path in FILES[share::SHARE]:
        for test in read(path):
            found = check(test, model_named(test.default_model), enumerate_all=False, graphs=True)
            assert not list(faults(svg(found, each=True))), path
            drawn += any(outcome.execution is not None for outcome in found.outcomes)
    assert drawn > len(FILES) // SHARE * 0.9


@pytest.mark.slow
def test_every_explanation_has_a_picture_in_which_nothing_covers_anything() -> None:
    drawn = 0
    for path in FILES:
        for test in read(path):
            if test.condition is None:
                continue
            try:
                found = explain(test, model_named(test.default_model), misses=False, graphs=True)
            except PtxmmError as error:
                assert error.kind == "unsupported", path
                continue
            assert not list(faults(svg(found, each=True))), path
            drawn += any(reason.execution is not None for group in found.groups for reason in group.reasons)
    assert drawn > 300


def test_the_geometry_notices_what_is_wrong() -> None:
    good = svg(explain(_read("mp/ISA-MP"), MODEL, misses=False, graphs=True))
    assert not list(faults(good))
    for pattern, change, expected in (
        (r'(<text class="code" x=")[\d.]+(" y=")[\d.]+', r"\g<1>60\g<2>61", "overlap"),
        (r'(<rect class="box[^"]*" x=")[\d.]+(" y=")[\d.]+', r"\g<1>60\g<2>200", "two boxes overlap"),
        (r'(<rect class="box[^"]*" x=")[\d.]+', r"\g<1>5000", "leaves the picture"),
        (r'(<path class="line" d="M)[\d.]+ [\d.]+', r"\g<1>0 0", "a line ends at no box"),
        (
            r'(textLength=")[\d.]+(" lengthAdjust="spacingAndGlyphs">rf)',
            r"\g<1>90\2",
            "runs through",
        ),
    ):
        bad = re.sub(pattern, change, good, count=3)
        assert bad != good
        assert any(expected in fault for fault in faults(bad)), (pattern, list(faults(bad)))


def test_what_breaks_an_axiom_stands_out() -> None:
    scene = _scene(_explained(_read("mp/ISA-MP")))
    assert scene.names == ("P0", "P1") and scene.paths == (("CTA 0",), ("CTA 1",))
    assert _links(scene, scene.links) == {
        ("P1:12", "P0:10", "fr"): 2,
        ("P0:11", "P1:11", "sync"): 2,
        ("P0:12", "P1:10", "rf obs"): 1,
        ("data = 0", "P1:12", "rf"): 0,
    }
    assert _links(scene, scene.steps) == {
        ("P0:10", "P0:11", ""): 2,
        ("P0:11", "P0:12", ""): 1,
        ("P1:10", "P1:11", ""): 1,
        ("P1:11", "P1:12", ""): 2,
    }
    assert [box.number for box in scene.boxes if box.marked] == ["10", "11", "11", "12"]
    assert [link.causal for link in scene.links if link.label == "sync"] == [True]
    assert all(link.causal for link in scene.steps)


def test_what_an_allowed_execution_lacks_stands_out() -> None:
    """The circle that one would expect to be forbidden, and on it the step that is no order."""
    (picture,) = _explained(_read("mp/MP+rel+relaxed"))
    assert picture.scene is not None and picture.lines[2].startswith("missing between P0:11 and P1:10: synchronization")
    assert _links(picture.scene, picture.scene.links) == {
        ("P1:11", "P0:10", "fr"): 2,
        ("P0:11", "P1:10", "rf obs"): 2,
        ("P0:11", "P1:10", "no sync"): 2,
        ("data = 0", "P1:11", "rf"): 1,
    }
    assert all(link.weight == 2 for link in picture.scene.steps)
    assert all(box.marked for box in picture.scene.boxes if box.column is not None)
    taking_turns = explain(_read("mp/MP+rel+relaxed"), MODEL, state=_turns(), misses=False, graphs=True)
    scene = _scene(pictures(taking_turns))
    assert not any(box.marked for box in scene.boxes) and {link.weight for link in scene.links} == {1}


def _turns() -> Proposition:
    return questions.states(_read("mp/MP+rel+relaxed"), "P1:r0=1 P1:r1=1", "the state")


@pytest.mark.parametrize(
    ("name", "first", "second", "lacks"),
    [
        ("sb/SB", "P1:11", "P0:10", "no fsc"),
        ("bugs/deepep-tma-copy-wait-count-buggy", "P0 async:12", "P0 async:15", "no done"),
        ("bugs/triton-tensormap-no-acquire-buggy", "P0:15", "P1 async:20", "no proxy fence"),
        ("coherence/CoRR-weak", "P0:9", "P1:9", "not strong"),
    ],
)
def test_each_kind_of_gap_has_its_name(name: str, first: str, second: str, lacks: str) -> None:
    scene = _scene(_explained(_read(name)))
    absent = {ends for ends in _links(scene, scene.links) if ends[2].startswith("no")}
    assert (first, second, lacks) in absent and {ends[2] for ends in absent} == {lacks}


def test_the_way_to_an_asynchronous_operation_leads_through_its_start() -> None:
    scene = _scene(_explained(_read("bugs/triton-tensormap-no-acquire-buggy")))
    starts = {ends: weight for ends, weight in _links(scene, scene.links).items() if ends[2] == "start"}
    assert starts == {("P1:20", "P1 async:20", "start"): 2}
    assert _links(scene, scene.steps)["P1:19", "P1:20", ""] == 2


def test_repairs_are_shown_where_they_go() -> None:
    (picture,) = pictures(fences(_read("mp/MP+rel+relaxed"), MODEL, graphs=True))
    assert picture.lines[2:] == (
        "Repair 1: P1:10: ld.acquire.gpu.global.u32 r0, [flag] in its place",
        "Repair 2: P1:11: fence.acq_rel.gpu before it",
    )
    assert picture.scene is not None
    told = {box.number + str(box.column and box.column.thread): " ".join(box.told) for box in picture.scene.boxes}
    assert "repair 1: ld.acquire.gpu.global.u32 r0,   [flag] in its place" in told["101"]
    assert "repair 2: fence.acq_rel.gpu before it" in told["111"] and "repair" not in told["100"] + told["110"]
    assert not list(faults(svg(fences(_read("mp/MP+rel+relaxed"), MODEL, graphs=True))))


def test_base_causality_does_not_cross_where_nothing_synchronizes() -> None:
    result = check(_read("mp/MP+rel+relaxed"), MODEL, graphs=True)
    scene = _scene(pictures(result))
    assert not any(link.causal for link in scene.links)
    assert _links(scene, scene.links)["P0:11", "P1:10", "rf obs"] == 1


def test_what_an_axiom_demands_and_the_execution_lacks_is_drawn() -> None:
    text = """PTX ordered
    { .global .u32 x = 0; }
     P0 @ cta 0                  | P1 @ cta 0                ;
     st.relaxed.cta.u32 [x], 1   | bar.sync 0                ;
     bar.sync 0                  | st.relaxed.cta.u32 [x], 2 ;
    exists (x == 1)
    """
    scene = _scene(_explained(_text(text)))
    assert ("P0:4", "P1:5", "no co") in _links(scene, scene.links)
    assert ("P1:5", "P0:4", "co") in _links(scene, scene.links)


def test_a_race_joins_its_accesses() -> None:
    scene = _scene(pictures(races(_read("mp/MP+rel+relaxed"), MODEL, graphs=True)))
    assert _links(scene, scene.links)["P0:10", "P1:11", "race"] == 2
    assert [box.number for box in scene.boxes if box.marked] == ["10", "11"]


def test_asynchronous_operations_have_a_column_beside_their_thread() -> None:
    scene = _scene(_explained(_read("bugs/deepep-tma-copy-wait-count-buggy")))
    assert scene.names == ("P0", "P0 async")
    assert {("P0:12", "P0 async:12", "start"), ("P0:15", "P0 async:15", "start")} <= set(_links(scene, scene.links))


def test_who_meets_at_a_barrier_is_joined_one_to_the_next() -> None:
    rows = " | ".join(f"P{n} @ cta 0" for n in range(4)), " | ".join(["bar.sync 0"] * 4)
    test = _text(f"PTX four\n{{ .global .u32 x = 0; }}\n{rows[0]} ;\n{rows[1]} ;\n")
    scene = _scene(pictures(check(test, MODEL, graphs=True)))
    assert [(link.first, link.second, link.label, link.both) for link in scene.links] == [
        (0, 1, "bar", True),
        (1, 2, "bar", True),
        (2, 3, "bar", True),
    ]


def test_threads_of_one_cta_stand_side_by_side() -> None:
    text = """PTX apart
    { .global .u32 x = 0; }
     P0 @ gpu 0, cta 0   | P1 @ gpu 1, cta 0   | P2 @ gpu 0, cta 0   ;
     st.weak.u32 [x], 1  | ld.weak.u32 r0, [x] | ld.weak.u32 r0, [x] ;
    """
    scene = _scene(pictures(check(_text(text), MODEL, graphs=True)))
    assert scene.names == ("P0", "P2", "P1")
    assert scene.paths == (("GPU 0", "CTA 0"), ("GPU 0", "CTA 0"), ("GPU 1", "CTA 0"))


def _large(threads: int, rows: int) -> Test:
    """Threads that write what the first one reads in its last instruction."""
    names = " | ".join(f"P{n} @ cta {n}" for n in range(threads))
    body = [" | ".join(f"st.weak.u32 [x{n}], {row + 1}" for n in range(threads)) for row in range(rows)]
    body.append(" | ".join(["ld.weak.u32 r0, [x1]", *[""] * (threads - 1)]))
    objects = " ".join(f".global .u32 x{n} = 0;" for n in range(threads))
    lines = "".join(f"{line} ;\n" for line in (names, *body))
    return _text(f"PTX large\n{{ {objects} }}\n{lines}exists (P0:r0 == {rows})\n")


def test_a_large_execution_says_what_is_left_out() -> None:
    result = check(_large(MOST_THREADS + 4, 2), MODEL, enumerate_all=False, graphs=True)
    scene = _scene(pictures(result))
    assert len(scene.columns) == MOST_THREADS
    assert f"4 of {MOST_THREADS + 4} threads are left out" in scene.notes
    assert {"P0", "P1"} <= set(scene.names)
    drawn = svg(result)
    assert "4 of 16 threads are left out" in drawn and not list(faults(drawn))


def test_a_long_thread_keeps_what_is_related() -> None:
    result = check(_large(2, MOST_ROWS + 10), MODEL, enumerate_all=False, graphs=True)
    scene = _scene(pictures(result))
    boxes = [box for box in scene.boxes if box.column == scene.columns[0]]
    assert sum(box.left_out for box in boxes) + sum(not box.left_out for box in boxes) == MOST_ROWS + 11
    assert not boxes[-1].left_out and any("more instructions" in box.name for box in boxes)
    assert ("P1:43", "P0:44", "rf") in _links(scene, scene.links)
    assert not list(faults(svg(result)))


def test_text_of_a_test_is_escaped() -> None:
    text = """PTX <script>alert(1)</script>&"'
    { .global .u32 x = 0; }
     P0 @ cta 0 ;
     st.weak.u32 [x], 1 ;
    exists (x == 1)
    """
    drawn = svg(check(_text(text), MODEL, graphs=True))
    root = ElementTree.fromstring(drawn)
    assert not [element for element in root.iter() if element.tag.endswith("script")]
    (title,) = root.findall("{http://www.w3.org/2000/svg}title")
    assert title.text == "<script>alert(1)</script>&\"' under ptx-8.5"


def test_a_picture_is_told_to_who_cannot_see_it() -> None:
    root = ElementTree.fromstring(svg(explain(_read("mp/ISA-MP"), MODEL, misses=False, graphs=True)))
    (about,) = root.findall("{http://www.w3.org/2000/svg}desc")
    assert about.text is not None
    assert "from-reads (8.9.7 (3)) from P1:12 to P0:10" in about.text
    assert "P1:12: ld.global.u32 r1, [data]; reads data = 0 (marked)" in about.text
    assert "Causality (8.10.6 (2)): communication order cannot contradict causality order" in about.text


def test_kinds_of_links_differ_without_colour_and_look_right_in_the_dark() -> None:
    assert set(DASHES) == set(COLOURS) == {"po", *KINDS}
    drawn = [DASHES[kind] for kind in KINDS if kind not in ("absent", "race")]
    assert len(set(drawn)) == len(drawn)
    picture = svg(check(_read("mp/ISA-MP"), MODEL, graphs=True))
    assert "@media (prefers-color-scheme:dark)" in picture
    assert re.findall(r"\w+://[^\"]*", picture) == ["http://www.w3.org/2000/svg"]  # nothing is loaded


def test_results_without_an_execution_are_told_in_words() -> None:
    for result in (
        explain(_read("lb/ISA-LB"), MODEL, misses=False, graphs=True),
        races(_read("coherence/ISA-CoRR"), MODEL, graphs=True),
        fences(_read("mp/MP+rel+acq"), MODEL, graphs=True),
        check(_read("barriers/BAR-deadlock-names"), MODEL, graphs=True),
        check(_read("mp/ISA-MP"), MODEL),
        explain(_read("mp/ISA-MP"), MODEL, misses=False, limits=Limits(deadline=0.0)),
    ):
        (picture,) = pictures(result)
        assert picture.scene is None and picture.lines, result
        assert not list(faults(svg(result)))
    with pytest.raises(TypeError):
        svg(3)


def test_lines_are_broken_where_a_reader_expects_it() -> None:
    assert wrapped("cp.async.bulk.shared::cluster.global [s], [g], 16", "  ", 24) == (
        "cp.async.bulk",
        "  .shared::cluster",
        "  .global [s], [g], 16",
    )
    assert all(columns(line) <= 10 for line in wrapped("x" * 35 + " " + "好" * 9, " ", 10))


def test_formats_of_the_command_line(run_command: Run, tmp_path: Path) -> None:
    (tmp_path / "mp.litmus").write_text((LITMUS / "mp/MP+rel+relaxed.litmus").read_text(), encoding="utf-8")
    (tmp_path / "bad.litmus").write_text("PTX bad\n", encoding="utf-8")
    for command in ("outcomes", "explain", "races", "fences"):
        ran = run_command(command, "mp.litmus", "--format", "svg", "--model", "ptx-8.5")
        assert len(drawing(ran.out).boxes) > 4, command
        graph = run_command(command, "mp.litmus", "--format", "dot", "--model", "ptx-8.5").out
        nodes = set(re.findall(r"^ *(b\d+) \[", graph, re.M))
        edges = re.findall(r"^ *(b\d+) -> (b\d+) \[label=\"", graph, re.M)
        assert edges and {end for edge in edges for end in edge} <= nodes
        assert graph.count("{") == graph.count("}") and graph.startswith('digraph "MP+rel+relaxed under ptx-8.5" {')
    each = run_command("outcomes", "mp.litmus", "--format", "svg", "--each", "--model", "ptx-8.5").out
    assert each.count("ends with") > run_command("outcomes", "mp.litmus", "--format", "svg").out.count("ends with") / 4
    failed = run_command("outcomes", "bad.litmus", "mp.litmus", "--format", "svg", "--model", "ptx-8.5")
    assert failed.code == 2 and "bad.litmus:1" in failed.err and drawing(failed.out).boxes


def test_graphml_has_the_relations_of_the_picture(run_command: Run) -> None:
    files = [str(LITMUS / f"{name}.litmus") for name in ("mp/ISA-MP", "async/TMA-load", "barriers/BAR-cumulative")]
    text = run_command("explain", *files, "--no-misses", "--model", "ptx-8.5", "--format", "graphml").out
    names = [graph.attrib["id"] for graph in ElementTree.fromstring(text).findall("{*}graph")]
    assert names == ["g0", "g1", "g2"]
    graph = networkx.parse_graphml(text)
    assert graph.graph["title"] == "ISA-MP under ptx-8.5" and "Causality (8.10.6 (2))" in graph.graph["about"]
    boxes = {node: (told["thread"], told["line"]) for node, told in graph.nodes(data=True) if told["line"]}
    assert set(boxes.values()) == {(f"CTA {n}/P{n}", str(line)) for n in range(2) for line in (10, 11, 12)}
    broken = {(boxes[a], told["relation"], boxes[b]) for a, b, told in graph.edges(data=True) if told["weight"] == 2}
    left, right = "CTA 0/P0", "CTA 1/P1"
    assert broken == {
        ((left, "10"), "po", (left, "11")),
        ((left, "11"), "sync", (right, "11")),
        ((right, "11"), "po", (right, "12")),
        ((right, "12"), "fr", (left, "10")),
    }


def test_graphml_tells_threads_by_their_place(run_command: Run, tmp_path: Path) -> None:
    text = (LITMUS / "mp/ISA-MP.litmus").read_text().replace("P0 @ cta 0", "P0 @ cta 5")
    (tmp_path / "mp.litmus").write_text(text, encoding="utf-8")
    graph = networkx.parse_graphml(run_command("outcomes", "mp.litmus", "--format", "graphml").out)
    writes = {told["thread"] for _, told in graph.nodes(data=True) if told["text"].startswith("st.")}
    assert writes == {"CTA 5/P0"}


@pytest.mark.parametrize(
    "page", [page for page in PAGES if "](pictures/" in page or "](../pictures/" in page], ids=title
)
def test_the_pictures_of_the_documentation_are_those_of_its_commands(
    page: str, run_command: Run, golden: Golden
) -> None:
    found = _COMMAND.findall(page)
    for command, file, options, path, link in found:
        assert f"docs/{link.removeprefix('../')}" == path
        picture = run_command(command, str(ROOT / file), *options.split()).out
        golden(f"../../{path}", picture)
        if file.startswith("litmus/"):  # timelines of launches are tested in test_whole_timeline
            assert not list(faults(picture))
    assert len(found) == len(re.findall(r"\]\((?:\.\./)?pictures/", page))


def test_every_picture_is_shown() -> None:
    drawn = {path for page in PAGES for *_, path, _ in _COMMAND.findall(page)}
    assert drawn == {f"docs/pictures/{file.name}" for file in (ROOT / "docs" / "pictures").iterdir()}


def test_the_example_of_the_documentation_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(ROOT)
    names: dict[str, str] = {}
    exec(example, names)
    assert drawing(names["picture"]).boxes


def test_the_documentation_names_every_label() -> None:
    named = {label for row in re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE) for label in re.findall(r"`(.*?)`", row)}
    known = {relation.label for path in FILES[::20] for test in read(path) for relation in _relations(test)}
    assert {"rf", "co", "fr", "sync", "bar", "start"} <= known <= named


def _relations(test: Test) -> Iterator[Relation]:
    for picture in pictures(check(test, model_named(test.default_model), enumerate_all=False, graphs=True)):
        for link in picture.scene.links if picture.scene is not None else ():
            yield from link.relations
