"""The timeline of a launch: what is in it, that it is drawn, and what is left out."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from ptxmm.engines.result import Limits
from ptxmm.formats.modules.read import kernels
from ptxmm.whole.analysis import Drawn, drawn
from ptxmm.whole.explain.timeline import MOST_COLUMNS, MOST_ROWS
from tests.commands import Run
from tests.test_whole_pipelines import HEAD, LOADS, RING

CUDA = Path(__file__).parent / "cuda"


def of(path: Path) -> Drawn:
    (launched,) = kernels(path)
    return drawn(launched, str(path), Limits())


def pipeline(folder: Path, body: str, threads: int, ctas: int) -> Drawn:
    path = folder / "k.ptx"
    path.write_text(HEAD.format(block=f"{threads}\n// ptxmm: grid = {ctas}", bytes=2048) + body + "    ret;\n}\n")
    return of(path)


def test_rows_and_phases(tmp_path: Path) -> None:
    """The consumers are one row, the producer is another, and the two CTAs do the same."""
    found = pipeline(tmp_path, LOADS, 160, 2)
    assert found.result.answer == "race-free"
    (group,) = found.timeline.groups
    assert (group.name, [row.name for row in group.rows]) == ("CTAs 0-1", ["warps 0-3", "warp 4"])
    assert [len(spans) for name, spans in group.phases] == [1, 6, 6, 6, 6]
    producer = group.rows[1]
    assert [tick.mark for tick in producer.ticks] == ["arrive", "copy"] * 12
    for row in group.rows:
        assert all(0 <= span.first <= span.last < found.timeline.columns for span in row.waits)
    # A consumer reads when the phase that it waits for is complete.
    waits, reads = group.rows[0].waits, [tick.column for tick in group.rows[0].ticks if tick.mark == "read"]
    assert len(waits) == 13 and reads[0] > waits[1].last and not found.timeline.left_out


@pytest.mark.parametrize(
    ("name", "marks"),
    [
        ("whole/tcgen05_two_stages", {("tcgen05.mma", "product"), ("tcgen05.ld", "read")}),
        ("wgmma_tile", {("wgmma.mma_async", "product")}),
    ],
)
def test_products_and_tensor_memory_are_marked(name: str, marks: set[tuple[str, str]]) -> None:
    found = of(CUDA / f"{name}.ptx")
    ticks = {tick for group in found.timeline.groups for row in group.rows for tick in row.ticks}
    assert marks <= {(".".join(tick.text.split(".")[:2]), tick.mark) for tick in ticks}, ticks


def test_races_are_marked() -> None:
    found = of(CUDA / "tma_load_pipeline.wrong_no_proxy_fence.ptx")
    ((one, other),) = found.timeline.races
    rows = [found.timeline.groups[group].rows[row] for group, row, _ in (one, other)]
    assert [row.name for row in rows] == ["warp 1", "warp 0"]
    marks = [
        {tick.mark for tick in row.ticks if tick.column == at[2]} for row, at in zip(rows, (one, other), strict=True)
    ]
    assert marks == [{"read"}, {"copy"}]


def test_what_waits_for_ever_is_drawn_to_the_end() -> None:
    found = of(CUDA / "tma_load_pipeline.wrong_no_full_wait.ptx")
    assert found.result.answer == "deadlock"
    waits = [span for row in found.timeline.groups[0].rows for span in row.waits if span.text.endswith("for ever")]
    assert [span.last for span in waits] == [found.timeline.columns - 1]


def test_what_is_left_out_is_said(tmp_path: Path) -> None:
    text = RING.format(tiles=60).replace("st.global.u32 [%d4], %r16", "ld.global.u32 %r16, [%d4]")
    found = pipeline(tmp_path, text, 256, 2)
    assert found.timeline.columns == MOST_COLUMNS
    (note,) = found.timeline.left_out
    assert "steps are not drawn" in note
    found = of(CUDA / "tma_load_pipeline.ptx")
    assert not found.timeline.left_out
    assert sum(len(group.rows) for group in found.timeline.groups) <= MOST_ROWS


@pytest.mark.parametrize("form", ["svg", "html"])
def test_command(run_command: Run, form: str) -> None:
    path = str(CUDA / "tma_load_pipeline.wrong_no_proxy_fence.ptx")
    ran = run_command("check", "--whole", path, "--format", form)
    assert ran.code == 1
    start = ran.out.index("<svg")
    picture = ElementTree.fromstring(ran.out[start : ran.out.index("</svg>") + 6])
    said = ["".join(item.itertext()) for item in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert any("tma_load_pipeline: race, 2 CTAs, 128 threads" in text for text in said)
    assert len([item for item in picture.iter() if item.get("class") == "race"]) == 3  # a line and two circles
    ran = run_command("check", str(CUDA.parent.parent / "litmus" / "mp" / "ISA-MP.litmus"), "--format", "svg")
    assert ran.code == 2 and "with --whole only" in ran.err
