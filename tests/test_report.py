"""Verdicts as one HTML page: what is in it, that nothing of a test is markup, and that it needs nothing else."""

from __future__ import annotations

import re
import shutil
import subprocess
from base64 import b64decode
from collections import Counter
from hashlib import sha256
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.commands import Run
from tests.geometry import faults
from tests.playground_page import NEEDED, accessible, chromium
from tests.support import ROOT

LITMUS = ROOT / "litmus"
HOSTILE = """PTX <img src=x onerror=alert(1)>"&'
"</pre><script>alert(2)</script>"
{ .global .u32 x = 0; }
 P0 @ cta 0                             ;
 st.weak.u32 [x], 1 /* </pre><b>bold */ ;
exists (x == 1)
"""
_VOID = {"meta", "input"}


class Page(HTMLParser):
    """The elements of a page, each closed where it has to be, and the text of those with an id."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture
def page(run_command: Run, tmp_path: Path) -> str:
    """The page of three tests and a file that can't be read."""
    for name in ("mp/ISA-MP", "mp/MP+rel+relaxed", "barriers/BAR-deadlock-names"):
        shutil.copy(LITMUS / f"{name}.litmus", tmp_path)
    (tmp_path / "bad.litmus").write_text("PTX bad\n", encoding="utf-8")
    ran = run_command("check", ".", "--format", "html", "--jobs", "1")
    assert ran.code == 2 and "bad.litmus:1" in ran.err
    return ran.out


def test_every_verdict_is_in_the_table_and_every_test_has_a_section(page: str) -> None:
    found = Page(page)
    rows = [row for row in found.named("tr") if "data-test" in row]
    sections = [section["id"] for section in found.named("section")]
    assert Counter(row["data-verdict"] for row in rows) == {"ok": 12, "error": 1}
    assert len(sections) == 4 and {row["data-test"] for row in rows} == set(sections)
    assert {link["href"] for link in found.named("a")} == {f"#{name}" for name in sections}
    assert {row["data-model"] for row in rows} == {"", "ptx-6.0", "ptx-7.5", "ptx-8.5", "sc"}
    ids = [attributes["id"] for _, attributes in found.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert "13 verdicts on 4 tests" in page and "12 ok, 1 error" in page


def test_a_test_has_its_text_states_reason_and_picture(page: str) -> None:
    (section,) = re.findall(r"<h2>ISA-MP</h2>.*?</section>", page, re.DOTALL)
    assert "10   st.global.u32 [data], 1" in section
    assert '<th scope="col">P1:r0</th>' in section and "3 final states" in section
    assert "Reason 1: Causality (8.10.6 (2))" in section and "-&gt; from-reads (8.9.7 (3))" in section
    (picture,) = re.findall(r"<svg.*?</svg>", section, re.DOTALL)
    assert "Forbidden: P1:r0 == 1" in picture and not list(faults(picture))
    assert section.index("under ptx-8.5: never") < section.index("<svg") < section.index("under sc: never")
    (other,) = re.findall(r"<h2>MP\+rel\+relaxed</h2>.*?</section>", page, re.DOTALL)
    assert 'class="satisfies"' in other and "missing between P0:11 and P1:10: synchronization (8.9.4 (4))" in other
    (picture,) = re.findall(r"<svg.*?</svg>", other, re.DOTALL)
    assert "Allowed: P1:r0 == 1" in picture and ">no sync</text>" in picture and not list(faults(picture))


def test_a_kernel_says_once_what_is_missing(run_command: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """And its execution; sentences are wrapped."""
    monkeypatch.setattr("shutil.which", lambda name: None)  # the PTX beside it is taken, whichever nvcc there is
    kernel = ROOT / "tests" / "cuda" / "mp_atomic_ref.wrong_relaxed_load.cu"
    page = unescape(run_command("check", str(kernel), "--format", "html", "--jobs", "1").out)
    _, first, second = re.findall(r"<pre>(.*?)</pre>", page, re.DOTALL)
    assert first.count("missing between") == first.count("st.release.gpu.b32 [%rd3],%r4   ") == 1
    assert "in this execution" not in first and "in this execution" in second
    assert max(map(len, first.splitlines())) <= 110


def test_the_page_needs_nothing_else_and_allows_nothing_else(page: str) -> None:
    found = Page(page)
    assert set(re.findall(r"\w+://[^\"'\s]*", page)) == {"http://www.w3.org/2000/svg"}
    assert not [name for _, attributes in found.elements for name in attributes if name in ("src", "style", "srcset")]
    (policy,) = (meta["content"] or "" for meta in found.named("meta") if "http-equiv" in meta)
    assert policy.startswith("default-src 'none'; ")
    for kind in ("style", "script"):
        (text,) = re.findall(rf"<{kind}>(.*?)</{kind}>", page, re.DOTALL)
        (digest,) = re.findall(rf"{kind}-src 'sha256-([^']+)'", policy)
        assert b64decode(digest) == sha256(text.encode("utf-8")).digest()


def test_nothing_of_a_test_is_markup(run_command: Run, tmp_path: Path) -> None:
    (tmp_path / "hostile.litmus").write_text(HOSTILE, encoding="utf-8")
    (tmp_path / "<b>&.litmus").write_text("PTX bad <script>\n", encoding="utf-8")
    text = run_command("outcomes", ".", "--format", "html", "--jobs", "1").out
    found = Page(text)
    assert not found.named("img") and not found.named("b") and len(found.named("script")) == 1
    assert "&lt;img src=x onerror=alert(1)&gt;" in text and "&lt;/pre&gt;&lt;script&gt;alert(2)" in text
    assert found.named("svg")


def test_outcomes_give_the_same_page_with_all_states(run_command: Run) -> None:
    ran = run_command("outcomes", str(LITMUS / "mp/ISA-MP.litmus"), "--format", "html", "--model", "ptx-8.5")
    assert ran.code == 0 and "1 verdict on 1 test" in ran.out and "3 final states" in ran.out


@pytest.mark.parametrize(
    ("command", "marks", "words"),
    [
        ("explain", {"forbidden": 1, "allowed": 1, "error": 1}, "Reason 1: Causality (8.10.6 (2))"),
        ("races", {"race": 2, "error": 1}, "Data race 1"),
        ("fences", {"holds": 1, "fails": 1, "error": 1}, "can be weaker: fence.acq_rel.gpu"),
    ],
)
def test_an_analysis_has_a_page(
    command: str, marks: dict[str, int], words: str, run_command: Run, tmp_path: Path
) -> None:
    for name in ("ISA-MP", "MP+rel+relaxed"):
        shutil.copy(LITMUS / f"mp/{name}.litmus", tmp_path)
    (tmp_path / "bad.litmus").write_text("PTX bad\n", encoding="utf-8")
    ran = run_command(command, ".", "--format", "html", "--model", "ptx-8.5", "--jobs", "1")
    found = Page(ran.out)
    assert ran.code == 2 and "bad.litmus:1" in ran.err
    assert Counter(row["data-verdict"] for row in found.named("tr") if "data-test" in row) == marks
    assert words in ran.out and "10   st.global.u32 [data], 1" in ran.out
    if command == "explain":
        assert "Reason, step by step" in ran.out and ran.out.count("<blockquote>") > 10
        assert "<code>let rec obs = (ms &amp; rf) | (obs; rmw; obs)</code>" in ran.out
        assert ran.out.count("<details") == ran.out.count("</details>")
    pictures = re.findall(r"<svg.*?</svg>", ran.out, re.DOTALL)
    assert pictures and not [fault for picture in pictures for fault in faults(picture)]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no chromium")
def test_the_script_runs_under_the_policy_of_the_page(page: str, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", str(tmp_path / "page.html")]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ">13 of 13</output>" in ran.stdout and '<form id="filters">' in ran.stdout


@NEEDED
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_it_is_accessible_on_a_phone_and_in_the_dark(page: str, tmp_path: Path, width: int, scheme: str) -> None:
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    with chromium() as browser:
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            bypass_csp=True,  # which keeps axe out too
        )
        tab = context.new_page()
        tab.goto((tmp_path / "page.html").as_uri())
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
        accessible(tab)
