"""The playground without a server: what is written, and what it does in a browser."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from urllib.error import URLError

import pytest

from ptxmm.errors import PtxmmError
from ptxmm.web import downloads
from ptxmm.web import site as site_module
from ptxmm.web.site import site
from tests.commands import Run
from tests.playground_page import DRAWN, WIDE, Page, chromium, playwright
from tests.playground_site import serving, written
from tests.support import ROOT

LITMUS = ROOT / "litmus"

# -- What is written


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*unused: object, **options: object) -> None:
        raise URLError(OSError(101, "Network is unreachable"))

    monkeypatch.setattr(downloads, "urlopen", unreachable)


@pytest.mark.usefixtures("no_network")
def test_without_a_network_nothing_is_written(run_command: Run, tmp_path: Path) -> None:
    ran = run_command("site", "new")
    assert ran.code == 2 and not ran.out and not (tmp_path / "new").exists()
    assert "can't download https://registry.npmjs.org/pyodide/" in ran.err and "Network is unreachable" in ran.err


def test_a_file_with_another_hash_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"other")
    monkeypatch.setattr(downloads, "urlopen", lambda *unused, **options: (tmp_path / "other").open("rb"))
    with pytest.raises(PtxmmError, match="is not the file that it was"):
        downloads.downloaded(downloads.Z3)


@pytest.mark.usefixtures("no_network")
def test_a_folder_with_something_else_in_it_is_left_alone(run_command: Run, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "index.html").write_text("mine")
    ran = run_command("site", "full")
    assert ran.code == 2 and "the folder is not empty" in ran.err
    ran = run_command("site", "full/index.html")
    assert ran.code == 2 and "Not a directory" in ran.err


EXPLICIT = """
import json, sys
from pathlib import Path

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in ("z3", "numpy", "networkx", "starlette", "anyio", "typer", "rich") or "symbolic" in name:
            raise ModuleNotFoundError(name, name=name)

sys.meta_path.insert(0, Missing())
from ptxmm.web.answers import answer
for path in sys.argv[1:]:
    request = {"ask": "check", "text": Path(path).read_text(encoding="utf-8")}
    found = json.loads(answer(json.dumps(request).encode(), 60, "enumerate"))
    print(found["engine"], found["conclusion"])
"""


def test_the_explicit_engine_needs_neither_z3_nor_numpy() -> None:
    families = ("mp", "sb", "rmw", "barriers", "mbarrier", "async", "aliases", "tensormap", "bugs", "cluster")
    meant = [path for path in sorted(LITMUS.glob("*/*.litmus")) if "undefined" not in path.read_text(encoding="utf-8")]
    paths = [str(path) for family in families for path in [p for p in meant if p.parent.name == family][:2]]
    ran = subprocess.run(
        [sys.executable, "-c", EXPLICIT, *paths], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert (ran.stderr, set(ran.stdout.splitlines())) == ("", {"enumerate expected"})
    assert len(ran.stdout.splitlines()) == len(paths) >= 15


def test_every_licence_is_carried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its text, of all that is written, and of what comes with the page."""
    archive = BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as pack:
        for name in site_module._PYODIDE:
            pack.addfile(tarfile.TarInfo(f"package/{name}"), BytesIO())
    monkeypatch.setattr(site_module, "downloaded", lambda wanted: archive.getvalue())
    text = site(LITMUS)["python/LICENSES.txt"].decode()
    for said in (
        "Mozilla Public License Version 2.0",
        "PYTHON SOFTWARE FOUNDATION LICENSE VERSION 2",
        "Copyright (c) Microsoft Corporation",
        "Jim Crist-Harif",
        "Erez Shinan",
    ):
        assert said in text, said
    assert text.count("Permission is hereby granted, free of charge") >= 3  # Z3, lark, ptxmm
    vendored = (ROOT / "ptxmm/web/page/vendor/codemirror.txt").read_text(encoding="utf-8")
    packages = re.findall(r"^[@/a-z0-9-]+ \d+\.\d+\.\d+$", vendored, re.MULTILINE)
    assert len(packages) > 8 and vendored.count("Permission is hereby granted, free of charge") == len(packages)


# -- In a browser


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("site")
    try:
        files = site(LITMUS)
    except PtxmmError as error:
        pytest.skip(str(error))
    with serving(written(files, folder)) as address:
        yield address


@pytest.fixture(scope="module")
def loaded(address: str) -> Iterator[Page]:
    """The page, loaded once: that takes seconds."""
    with chromium() as browser:
        yield Page(browser, address)


@pytest.fixture
def page(loaded: Page) -> Iterator[Page]:
    """Nothing may be on its console."""
    yield loaded
    assert not loaded.complaints


def text_of(name: str) -> str:
    return (LITMUS / f"{name}.litmus").read_text(encoding="utf-8")


def decided_by(page: Page, engine: str) -> None:
    """Wait until the verdict is one of this engine."""
    chip = page.tab.locator("#verdict-text .chip", has_text="ms")
    playwright.expect(chip).to_have_attribute("title", f"time of the search, by the engine {engine}")


def test_the_first_verdict_and_its_reason(page: Page) -> None:
    page.verdict("Forbidden")
    assert page.tab.locator("table.states tbody tr").count() == 3
    decided_by(page, "enumerate")
    page.why("Causality")
    page.why("Nearest miss")
    assert page.tab.locator(".picture svg .link title").count() > 3
    page.accessible()


def test_sliders_axioms_and_errors(page: Page) -> None:
    page.slide("Order of P0 line 9", 1)
    page.verdict("Allowed")
    page.why("Allowed: this execution ends with")
    page.tab.get_by_role("button", name="Undo the sliders").click()
    page.verdict("Forbidden")
    page.tab.get_by_text("Axioms (all on)").click()
    page.tab.locator("[data-key='axiom-Causality']").uncheck()
    page.verdict("Allowed")
    page.show(text_of("mp/MP+rel+acq").replace("st.release", "st.relese"))
    page.verdict("Not a test yet")
    assert page.tab.locator("#editor .cm-lintRange-error").count() == 1


def test_a_rule_is_off_and_a_link_brings_it_back(page: Page) -> None:
    page.show(text_of("mp/MP+rel+acq"))
    page.verdict("Forbidden")
    page.tab.get_by_text("Rules of definitions (all on)").click()
    rule = page.tab.locator("[data-key='rule-sync-all:1']")
    rule.uncheck()
    page.verdict("Allowed")
    decided_by(page, "enumerate")
    page.tab.get_by_role("button", name="Copy link").click()
    playwright.expect(page.tab.locator("#toast")).to_contain_text("The link is")
    link = page.tab.url
    rule.check()
    page.verdict("Forbidden")
    page.tab.evaluate("link => { location.href = link; }", link)
    page.verdict("Allowed")
    assert not rule.is_checked()
    rule.check()
    page.verdict("Forbidden")


def test_the_quiz(page: Page) -> None:
    """Allowed or forbidden is the explicit engine's to say, and why Z3's."""
    page.tab.evaluate(DRAWN)
    page.tab.get_by_role("button", name="Quiz").click()
    word = page.tab.locator("#quiz .word")
    playwright.expect(word).to_have_text("Can it happen?")
    page.tab.locator("#quiz").get_by_role("button", name="Allowed").click()
    playwright.expect(word).to_contain_text("Then why?")
    page.tab.locator("#quiz button[data-answer]").first.click()
    playwright.expect(page.tab.locator("#verdict-text .word")).to_be_visible()
    page.tab.get_by_role("button", name="End the quiz").click()
    page.why("orbidden")


def test_on_a_phone_in_the_dark(page: Page) -> None:
    page.show(text_of("mp/MP+rel+acq"))
    page.tab.set_viewport_size({"width": 390, "height": 844})
    page.tab.emulate_media(color_scheme="dark")
    page.why("Nearest miss")
    assert page.tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.accessible()
    page.tab.set_viewport_size(WIDE)
    page.tab.emulate_media(color_scheme="light")


def test_the_gallery_and_the_fences(page: Page) -> None:
    page.open("cccl-remove-if")
    page.verdict("Allowed")
    page.tab.get_by_role("radiogroup", name="Version of the bug").get_by_label("fixed").check()
    page.verdict("Forbidden")
    page.tab.get_by_role("button", name="Which fences are needed?").click()
    page.why("holds")


def test_what_needs_z3_is_its_business(page: Page) -> None:
    page.show(text_of("coherence/local-is-private"))
    decided_by(page, "z3")
    page.show(text_of("mp/MP+rel+acq"))
    decided_by(page, "enumerate")


def test_an_engine_that_takes_too_long_is_ended_and_made_anew(page: Page) -> None:
    threads = range(7)
    many = "PTX many\n{ .global .u32 x = 0; }\n" + " | ".join(f"P{n}" for n in threads) + " ;\n"
    many += " | ".join("atom.relaxed.gpu.global.add.u32 r0, [x], 1" for _ in threads) + " ;\nexists (x == 1)\n"
    page.tab.clock.install()
    with page.tab.expect_event("worker") as made:
        page.show(many)
        playwright.expect(page.tab.locator("body.busy")).to_be_visible()
        page.tab.clock.run_for(14_000)
    assert made.value.url.endswith("worker.js")
    page.verdict("Forbidden")
    decided_by(page, "z3")
    page.show(text_of("mp/MP+rel+acq"))
    decided_by(page, "enumerate")
