"""The site of the documentation: it builds without a warning, needs no network, and what it shows works."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from markdown import Markdown
from pygments.lexers import get_lexer_by_name

from docs.website.isa import DOCUMENT, sections, target
from docs.website.reference import PAGES
from tests.commands import steady
from tests.playground_page import NEEDED, accessible, chromium
from tests.support import ROOT
from tests.test_sections import cited


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as the page on building it says."""
    tree = tmp_path_factory.mktemp("tree")
    shutil.copytree(ROOT / "docs", tree / "docs", ignore=shutil.ignore_patterns("__pycache__"))
    (tree / "tests" / "bad_input").mkdir(parents=True)
    for name in ("mkdocs.yml", "tests/sections.toml", "tests/bad_input/cases.txt"):
        shutil.copy(ROOT / name, tree / name)
    command = [sys.executable, "-m", "docs.website", "build", "--strict"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}  # for ptxmm; the folder that it runs in comes first
    built = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=120)
    assert built.returncode == 0, built.stderr
    return tree / "site"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as browser:
        yield browser


def pages(site: Path) -> Iterator[tuple[Path, str]]:
    for path in sorted(site.rglob("*.html")):
        yield path, path.read_text(encoding="utf-8")


def test_every_page_is_built_and_in_the_navigation(site: Path) -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    names = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    for name in sorted({*names, *map(Path, PAGES)}):
        assert (site / name).with_suffix(".html").is_file(), name
        assert re.search(rf"[: ]{re.escape(str(name))}(?: #.*)?$", navigation, re.MULTILINE), name


def test_it_needs_no_network(site: Path) -> None:
    """Other hosts are linked, and nothing is loaded from them."""
    loads = re.compile(r"<(?:script|img|iframe|source)\b[^>]*\bsrc=[\"']?(?:https?:)?//[^>]*>|<link\b[^>]*>")
    for path, text in pages(site):
        found = [tag for tag in loads.findall(text) if "//" in tag and 'rel="canonical"' not in tag]
        assert not found, (path, found)
    for path in site.rglob("*.css"):
        assert not re.search(r"(?:url\(|@import )[\"']?(?:https?:)?//", path.read_text(encoding="utf-8")), path


def test_sections_are_links(site: Path) -> None:
    text = (site / "model.html").read_text(encoding="utf-8")
    assert f'<a href="{DOCUMENT}#causality-order" title="PTX ISA 8.5, section 8.9.5: Causality Order">8.9.5</a>' in text
    for number, places in cited().items():
        if any(file.startswith("docs/") for file, _, _ in places):
            assert target(number, "", sections()), number


@pytest.mark.parametrize(
    "text,linked",
    [
        ("As 8.9.5 says (8.4); see section 8.6.", ["causality-order", "operation-types", "proxies"]),
        ("`8.9.5`, [8.9.5](x.md), version 8.5, PTX 8.7, Python 3.11.2, 8.9.5.1.2, 4.99.1", ["x.md"]),
        ("PTX ISA 9.0 9.7.13.4; PTX ISA 8.5 9.7.13.4", ["parallel-synchronization-and-communication-instructions-"
         "membar-fence", "control-flow-instructions-brx-idx"]),
        ("8.10.6, *8.9.1.1*", ["causality-axiom", "program-order-async-operations"]),
        ("| a | b |\n|---|---|\n| 8.5 (1) | 8.6 |", ["scope"]),
    ],
)  # fmt: skip
def test_what_is_a_section(text: str, linked: list[str]) -> None:
    html = Markdown(extensions=["docs.website.isa", "tables"]).convert(text)
    assert [link.removeprefix(f"{DOCUMENT}#") for link in re.findall(r'href="([^"]*)"', html)] == linked


def test_colours() -> None:
    """Pygments finds the lexer; every character of a litmus test comes out of it, and orders and scopes stand out."""
    lexer = get_lexer_by_name("litmus")
    for path in (ROOT / "litmus").rglob("*.litmus"):
        text = path.read_text(encoding="utf-8")
        assert "".join(value for _, value in lexer.get_tokens(text)) == text.strip("\n") + "\n", path
    tokens = {
        (str(kind), value) for kind, value in lexer.get_tokens(" st.release.gpu.global.u32 [x], 1 ; (* .sys *)\n")
    }
    assert {
        ("Token.Keyword.Reserved", ".release"),
        ("Token.Keyword.Type", ".gpu"),
        ("Token.Name.Builtin", "st"),
    } <= tokens
    assert ("Token.Comment.Multiline", "(* .sys *)") in tokens


def test_the_tutorial_works_as_it_stands(site: Path, tmp_path: Path) -> None:
    """Its commands, copied from the page, in an empty folder and with an environment that has only the programs."""
    html = (site / "learn" / "message-passing.html").read_text(encoding="utf-8")
    ran = 0
    for block in re.findall(r'<div class="language-console[^"]*">.*?<code>(.*?)</code>', html, re.DOTALL):
        lines = unescape(re.sub(r"<[^>]*>", "", block))
        for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n?)*)", lines, re.MULTILINE):
            path = f"{Path(sys.executable).parent}:{os.defpath}"
            done = subprocess.run(
                ["bash", "-c", command], cwd=tmp_path, env={"PATH": path}, stdout=subprocess.PIPE, text=True, timeout=60
            )
            assert steady(done.stdout).rstrip() == steady(shown).rstrip(), command
            ran += 1
    assert ran >= 6


@NEEDED
@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "light"), (1280, "dark")])
def test_pages_are_accessible(site: Path, browser: Any, width: int, scheme: str) -> None:
    """And as wide as the window. The names of its copy buttons are the theme's own."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    tab = context.new_page()
    for name in ("index", "learn/morally-strong", "course/03-fences", "playground"):
        tab.goto((site / f"{name}.html").as_uri())
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        accessible(tab, "landmark-unique")
    context.close()


@NEEDED
def test_the_copy_button_takes_the_commands_alone(site: Path, browser: Any) -> None:
    """Neither prompts nor what was printed: in a page as the browser shows it from the disk."""
    tab = browser.new_page()
    tab.add_init_script("navigator.clipboard.writeText = async (text) => { window.copied = text; };")
    tab.add_init_script("document.addEventListener('copy', () => { window.copied = getSelection().toString(); });")
    tab.goto((site / "learn" / "message-passing.html").as_uri())
    tab.wait_for_selector(".language-console [data-clipboard-target]", state="attached")
    tab.evaluate("document.querySelector('.language-console [data-clipboard-target]').click()")
    assert tab.evaluate("document.querySelector('.language-console [data-clipboard-text]').dataset.clipboardText")
    text = tab.evaluate("document.querySelector('.language-console [data-clipboard-target]').dataset.clipboardText")
    assert text.startswith("ptxmm ") and "$" not in text
