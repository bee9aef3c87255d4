"""The playground as its users meet it: in headless Chromium, against a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.playground_page import DRAWN, NEEDED, WIDE, Page, chromium, playwright
from tests.playground_server import server
from tests.playground_texts import KERNEL, ROWS

pytestmark = NEEDED
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with server("--timeout", "30") as (port, _):
        yield f"http://127.0.0.1:{port}/"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser: Any, address: str, request: pytest.FixtureRequest) -> Iterator[Page]:
    """The playground; a test may give ``options`` of its own. Nothing may be on its console."""
    page = Page(browser, address, **getattr(request, "param", {}))
    yield page
    page.context.close()
    assert not page.complaints


def test_the_first_verdict_with_its_states_and_its_reason(page: Page) -> None:
    page.verdict("Forbidden")
    assert page.tab.locator("table.states tbody tr").count() == 3
    page.why("Causality")
    page.why("Nearest miss")
    page.why("From-reads contradicts causality order")
    page.tab.locator("#why .orders details summary", has_text="causality order").first.click()
    page.tab.locator("#why .orders blockquote", has_text="X precedes Y in proxy-preserved").first.wait_for()
    page.accessible()


def test_an_edit_changes_the_verdict_and_an_error_is_underlined(page: Page) -> None:
    page.verdict("Forbidden")
    line = page.tab.locator("#editor .cm-line", has_text="st.release")
    line.click(position={"x": 5, "y": 8})
    page.tab.keyboard.press("End")
    for _ in range(len(" | ld.global.u32 r1, [data]             ;")):
        page.tab.keyboard.press("Shift+ArrowLeft")
    page.tab.keyboard.press("ArrowLeft")
    page.tab.keyboard.type("x")
    page.verdict("Not a test yet")
    assert page.tab.locator("#editor .cm-lintRange-error").count() == 1
    page.tab.locator("#problems button").click()
    page.accessible()
    page.tab.keyboard.press("Control+z")
    page.verdict("Forbidden")
    assert page.tab.locator("#editor .cm-lintRange-error").count() == 0


def test_what_is_typed_stays_while_answers_come(page: Page) -> None:
    page.verdict("Forbidden")
    page.tab.locator("#editor .cm-line").first.click()
    page.tab.keyboard.press("End")
    with page.tab.expect_response(lambda response: "-slow-hand" in (response.request.post_data or "")):
        page.tab.keyboard.type("-typed-in-a-slow-hand", delay=70)
    page.verdict("Forbidden")
    playwright.expect(page.tab.locator("#editor .cm-line").first).to_have_text("PTX MP+rel+acq-typed-in-a-slow-hand")


def test_sliders_change_the_verdict_and_the_text(page: Page) -> None:
    page.verdict("Forbidden")
    page.slide("Order of P0 line 9", 1)
    page.verdict("Allowed")
    assert "st.relaxed.gpu.global.u32 [flag], 1" in page.editor()
    page.slide("Order of P0 line 9", 2)
    page.verdict("Forbidden")
    page.slide("Scope of P1 line 8", 0)
    page.verdict("Allowed")
    page.slide("Placement of the threads", 2)
    page.verdict("Forbidden")
    assert "P1 @ cta 0" in page.editor()
    page.tab.get_by_role("button", name="Undo the sliders").click()
    page.verdict("Forbidden")
    assert "P1 @ cta 1" in page.editor() and "ld.acquire.gpu" in page.editor()


def test_an_axiom_is_off_and_a_reading_is_chosen(page: Page) -> None:
    page.tab.get_by_text("Axioms (all on)").click()
    page.tab.locator("[data-key='axiom-Causality']").uncheck()
    page.verdict("Allowed")
    playwright.expect(page.tab.locator("#verdict-text")).to_contain_text("without Causality")
    page.tab.get_by_text("Readings (the default)").click()
    page.tab.locator("[data-key='reading-dep']").select_option("syn")
    playwright.expect(page.tab.locator("#verdict-text")).to_contain_text("reading dep=syn")
    page.accessible()
    page.tab.locator("#model").select_option("sc")
    page.verdict("Forbidden")
    page.why("Sequential-Consistency")


def test_a_single_rule_is_off(page: Page) -> None:
    """Without release and acquire patterns nothing synchronizes; without the fences in them, the test is as it was."""
    page.verdict("Forbidden")
    page.tab.get_by_text("Rules of definitions (all on)").click()
    page.accessible()
    page.tab.locator("[data-key='rule-release-pattern:2']").uncheck()
    playwright.expect(page.tab.locator("#verdict-text")).to_contain_text("without release-pattern:2")
    page.verdict("Forbidden")
    rule = page.tab.get_by_role("group", name="sync-all: what synchronizes §8.9.4").get_by_role("checkbox").first
    rule.uncheck()
    page.verdict("Allowed")
    page.why("Allowed: this execution ends with")
    assert page.tab.get_by_text("Rules of definitions (2 off)").is_visible()
    rule.check()
    page.verdict("Forbidden")
    page.why("release pattern")


def test_the_states_one_after_the_other_and_one_that_is_not_there(page: Page) -> None:
    page.why("Causality")
    page.tab.get_by_role("button", name="Next").click()
    page.why("Allowed: this execution ends with")
    page.tab.get_by_role("button", name="Previous").click()
    assert page.tab.locator("table.states tr.chosen input").get_attribute("aria-label") == "State 3: P1:r0=1, P1:r1=1"
    page.why("P1:r0 == 1")
    form = page.tab.get_by_role("form", name="Ask for a state")
    form.get_by_label("P1:r1 =").fill("7")
    form.get_by_role("button").click()
    page.why("Impossible")
    page.why("P1:r1 may be 0, 1")


def test_a_link_says_it_all(page: Page, browser: Any, address: str) -> None:
    page.tab.get_by_role("button", name="Gallery").click()
    page.accessible()
    page.tab.get_by_role("button", name="Close the gallery").click()
    page.open("ISA2")
    page.tab.locator("#model").select_option("ptx-6.0")
    page.tab.locator("input[aria-label^='Order of']").first.press("ArrowRight")
    page.tab.get_by_role("button", name="Next").click()
    page.why("Allowed")
    playwright.expect(page.tab.locator("#verdict-text .chip").first).to_have_text("ptx-6.0")
    told, text, url = page.tab.locator("#verdict-text .word").inner_text(), page.editor(), page.tab.url
    chosen = page.tab.locator("tr.chosen input").get_attribute("aria-label")
    other = Page(browser, url)
    other.verdict(told.split()[-1])
    assert other.editor() == text and other.tab.locator("#model").input_value() == "ptx-6.0"
    assert other.tab.locator("tr.chosen input").get_attribute("aria-label") == chosen
    assert other.tab.get_by_role("button", name="Undo the sliders").is_visible()
    other.context.close()
    page.tab.goto(f"{address}#nothing-that-was-packed")
    page.verdict("")


def test_a_link_has_the_version_of_a_bug_and_the_stage_of_the_picture(page: Page, browser: Any) -> None:
    page.open("cccl-remove-if")
    page.tab.get_by_role("radiogroup", name="Version of the bug").get_by_label("fixed").check()
    page.why("Forbidden")
    page.tab.get_by_label("Step by step").press("Home")
    page.tab.get_by_label("Step by step").press("ArrowRight")
    playwright.expect(page.tab.locator(".steps output")).to_have_text("program order")
    page.tab.get_by_role("button", name="Copy link").click()
    playwright.expect(page.tab.locator("#toast")).to_contain_text("The link is")
    other = Page(browser, page.tab.url)
    other.verdict("Forbidden")
    playwright.expect(other.tab.locator(".steps output")).to_have_text("program order")
    versions = other.tab.get_by_role("radiogroup", name="Version of the bug")
    assert versions.get_by_label("fixed").is_checked()
    versions.get_by_label("buggy").check()
    other.verdict("Allowed")
    other.tab.locator("#editor .cm-line").first.click()
    other.tab.keyboard.type(" ")
    playwright.expect(versions).to_be_hidden()  # it is neither now
    other.context.close()


def test_a_file_of_several_tests(page: Page) -> None:
    page.show(ROWS)
    page.verdict("Always true")
    part = page.tab.get_by_label("Part of the text")
    assert part.locator("option").all_inner_texts() == [
        "playground.r1.1: .gpu | assert",
        "playground.r1.2: .cta | permit",
    ]
    page.accessible()
    part.select_option("1")
    page.verdict("Allowed")
    page.show(ROWS.replace("acquire", "aquire"))
    page.verdict("Not a test yet")
    playwright.expect(page.tab.locator("#editor .cm-lintRange-error")).to_have_text(".aquire")


def test_a_kernel_and_what_it_claims(page: Page) -> None:
    page.show(KERNEL)
    page.verdict("Not always true")
    page.why("Allowed: this execution ends with")
    page.tab.get_by_label("Part of the text").select_option("1")
    page.verdict("Fails")
    page.why("This execution refutes it.")
    page.accessible()
    page.show(KERNEL.replace("st.relaxed.gpu", "st.relaxed.gpx"))
    page.verdict("Not a test yet")
    assert "st.relaxed.gpx" in page.tab.locator("#editor .cm-lintRange-error").inner_text()
    page.show(KERNEL)
    page.verdict("Not always true")
    page.tab.get_by_role("button", name="Write it as a litmus test").click()
    page.slide("Order of P0 line 12", 2)
    page.verdict("Always true")


def test_the_fences_and_a_repair(page: Page) -> None:
    page.slide("Order of P0 line 9", 1)
    page.verdict("Allowed")
    page.tab.get_by_role("button", name="Which fences are needed?").click()
    page.why("fails")
    page.accessible()
    page.tab.get_by_role("button", name="Take it").first.click()
    page.verdict("Forbidden")


def test_a_real_bug_and_its_mend(page: Page) -> None:
    page.open("cccl-remove-if")
    page.verdict("Allowed")
    page.tab.get_by_role("radiogroup", name="Version of the bug").get_by_label("fixed").check()
    page.verdict("Forbidden")


def test_a_program_without_a_meaning(page: Page) -> None:
    page.open("mixed-size-race-strong")
    page.verdict("Undefined")
    page.why("this execution takes it away")
    assert page.tab.locator("#why .thread").count() == 2


def test_the_quiz(page: Page) -> None:
    """Allowed or forbidden, and then why: the page says of both answers whether they are right."""
    page.tab.evaluate(DRAWN)
    page.tab.get_by_role("button", name="Quiz").click()
    place, word = page.tab.locator("#quiz"), page.tab.locator("#quiz .word")
    given: list[bool] = []
    seen: set[tuple[bool, bool]] = set()
    for _ in range(8):
        playwright.expect(word).to_have_text("Can it happen?")
        assert not page.tab.locator("#verdict-text").is_visible() and not page.tab.locator("#why").is_visible()
        assert "Expect" not in page.editor()
        place.get_by_role("button", name="Forbidden").click()
        playwright.expect(word).to_contain_text("Then why?")
        assert not page.tab.locator("#why").is_visible()
        told = word.inner_text()
        given.append(told.startswith("✓"))
        if not seen:
            page.accessible()
        choice = place.locator("button[data-answer]").first
        chosen = choice.get_attribute("data-answer")
        page.tab.evaluate("document.getElementById('why').replaceChildren()")  # what is of the question before
        choice.click()
        given.append(word.inner_text().startswith("✓"))
        page.verdict("Forbidden" if "forbidden" in told else "Allowed")
        if "forbidden" in told:
            page.why("no execution ends with")
            found = page.tab.locator("#why .reason summary b").all_inner_texts() or [""]
        else:
            page.why("Why not forbidden")
            found = page.tab.locator("#why .gap li b").all_inner_texts() or [""]
        assert given[-1] == (chosen in found) and found
        playwright.expect(place).to_contain_text(f"{sum(given)} of {len(given)} right")
        seen |= {("forbidden" in told, given[-1])}
        if len(seen) >= 3:
            break
        place.get_by_role("button", name="Next question").click()
    assert len(seen) >= 3
    page.accessible()
    page.tab.get_by_role("button", name="End the quiz").click()
    assert not place.is_visible()


STAGES = ("events", "po", "rf", "co", "ms", "obs", "sync", "bc", "cause", "axioms")


def test_the_picture_step_by_step(page: Page) -> None:
    """One kind of relation after the other, each with what the ISA says of it."""
    page.why("Causality")
    seen = page.tab.locator(".picture svg g.link:visible")
    latest = page.tab.locator(".picture svg g.link.latest")
    whole = seen.count()
    slider = page.tab.get_by_label("Step by step")
    counts = {}
    for number, stage in enumerate(STAGES):
        slider.fill(str(number))
        counts[stage] = seen.count(), latest.count()
        assert page.tab.locator(".steps blockquote").count() > 0 or stage == "events"
        if stage == "ms":
            lines = page.tab.locator(".steps li").all_inner_texts()
            assert lines[1] == "P0:9 and P1:8: morally strong (8.7)" and "P0:8 and P1:9 are weak" in lines[0]
            playwright.expect(page.tab.locator(".steps .meaning")).to_contain_text("said to be morally strong")
        if stage == "obs":
            playwright.expect(page.tab.locator(".steps li")).to_have_text(["P0:9 → P1:8: observation (8.9.2)"])
    shown = [count for count, _ in counts.values()]
    assert counts["events"] == (0, 0) and shown == sorted(shown) and shown[-1] <= whole
    assert counts["ms"][1] == counts["obs"][1] == 1 and counts["sync"][1] == 2 < counts["rf"][1]  # with the legend
    page.accessible()
    slider.fill(str(len(STAGES)))
    assert seen.count() == whole and latest.count() == 0


HOSTILE = """<svg xmlns="http://www.w3.org/2000/svg" width="9" onload="alert(1)"><script>alert(1)</script>
<style>@import url(http://evil.example/);rect{fill:url(http://evil.example/)}</style>
<foreignObject><b>x</b></foreignObject><image href="http://evil.example/"/>
<a href="javascript:alert(1)"><text>x</text></a>
<use href="http://evil.example/#a"/><rect onclick="alert(1)" fill="url(http://evil.example/)" width="3"/></svg>"""
DRAW = """async (text) => {
    const [place] = (await import("/page/picture.js")).picture(text);
    document.body.append(place);
    return place.shadowRoot.innerHTML;
}"""


def test_of_a_picture_only_what_draws_is_taken(page: Page) -> None:
    """No script, no style, no address: nothing is asked for (the page would complain), and nothing runs."""
    drawn = page.tab.evaluate(DRAW, HOSTILE)
    assert "".join(drawn.split()) == '<svgwidth="9"><use></use><rectwidth="3"></rect></svg>'
    assert all("event handler violates" in complaint for complaint in page.complaints)
    page.complaints.clear()


def test_what_is_taken_away(page: Page, tmp_path: Path) -> None:
    page.why("Causality")
    found = {}
    for button, kind in (("Test", ".litmus"), ("Result", ".json"), ("(.svg)", ".svg"), ("(.png)", ".png")):
        page.tab.locator("#export summary").click()
        with page.tab.expect_download() as coming:
            page.tab.locator("#export button", has_text=button).click()
        coming.value.save_as(tmp_path / "saved")
        assert coming.value.suggested_filename == f"MP+rel+acq{kind}"
        found[kind] = (tmp_path / "saved").read_bytes()
    assert (
        found[".litmus"].startswith(b"PTX MP+rel+acq")
        and json.loads(found[".json"])["verdict"]["observation"] == "never"
    )
    assert found[".svg"].startswith(b"<svg ") and found[".png"].startswith(b"\x89PNG")


def test_by_keyboard_alone(page: Page) -> None:
    page.verdict("Forbidden")
    tab = page.tab

    until = page.until
    until(".skip")
    until("#editor")
    until("input[aria-label='Order of P0 line 9']")
    tab.keyboard.press("ArrowLeft")
    page.verdict("Allowed")
    assert tab.evaluate("document.activeElement.ariaLabel") == "Order of P0 line 9"
    until("#model")
    until("summary")
    tab.keyboard.press("Enter")
    until("input[data-key='axiom-Causality']")
    until("input[name='state']")
    tab.keyboard.press("Space")
    page.why("Allowed")
    tab.keyboard.press("ArrowDown")
    playwright.expect(tab.locator("tr.chosen input")).to_have_attribute("aria-label", "State 2: P1:r0=0, P1:r1=1")
    assert tab.evaluate("document.activeElement.getAttribute('aria-label')").startswith("State 2")


def test_the_gallery_the_fences_and_the_quiz_by_keyboard_alone(page: Page) -> None:
    """Where a dialog or an answer takes the place of what had the focus, the focus goes on from there."""
    page.verdict("Forbidden")
    keyboard = page.tab.keyboard
    page.until("#open-gallery")
    keyboard.press("Enter")
    keyboard.type("cccl-remove-if")  # the search has the focus
    page.until("#gallery .tests button")
    keyboard.press("Enter")
    page.verdict("Allowed")
    page.until("#variants input")
    keyboard.press("ArrowRight")
    page.verdict("Forbidden")
    page.until("#ask-fences")
    keyboard.press("Enter")
    page.why("holds")
    page.until("#open-quiz")
    page.tab.evaluate(DRAWN)
    keyboard.press("Enter")
    playwright.expect(page.tab.locator("#quiz .word")).to_have_text("Can it happen?")
    keyboard.press("Enter")  # the first answer has the focus, here and below
    playwright.expect(page.tab.locator("#quiz .word")).to_contain_text("Then why?")
    keyboard.press("Enter")
    page.until("#quiz .row button + button")
    keyboard.press("Enter")
    playwright.expect(page.tab.locator("#quiz")).to_be_hidden()


@pytest.mark.parametrize(
    "page",
    [
        {"viewport": PHONE, "color_scheme": "light", "has_touch": True},
        {"viewport": PHONE, "color_scheme": "dark"},
        {"viewport": WIDE, "color_scheme": "dark"},
    ],
    indirect=True,
)
def test_on_a_phone_and_in_the_dark(page: Page) -> None:
    page.why("Nearest miss")
    assert page.tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.accessible()
    page.slide("Order of P0 line 9", 0)
    page.verdict("Allowed")


def test_colours_can_be_chosen(page: Page) -> None:
    def background() -> Any:
        return page.tab.evaluate("getComputedStyle(document.body).backgroundColor")

    before = background()
    page.tab.locator("#theme").click()
    page.tab.locator("#theme").click()
    assert background() != before
    page.tab.reload()
    page.verdict("Forbidden")
    assert background() != before
