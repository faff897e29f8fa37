"""The page in a real browser: every view by mouse and by keyboard, and nothing that is planted."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import Browser, Seen
from chronicle import ATTACK, grown, left_behind_long_ago, page_of, told, written

import snapstore

pytestmark = pytest.mark.browser

VIEWS = ("history", "compare", "scratchpad", "files", "storage")


@pytest.fixture
def seen(browser: Browser, url: str) -> Iterator[Seen]:
    with browser.open(url) as page:
        yield page


def row(seen: Seen, text: str) -> Any:
    return seen.page.locator("#rows .row", has_text=text).first


# --- by mouse --------------------------------------------------------------------------------


def test_the_history_shows_sessions_and_folds_what_was_left_behind(seen: Seen) -> None:
    rows = seen.page.locator("#rows .row")
    assert rows.filter(has_text="main").count()
    assert rows.filter(has_text="fork").count()
    row(seen, "2 turns left behind").click()
    row(seen, "question 6").wait_for()


def test_lines_that_an_import_found_are_folded_too(browser: Browser, tmp_path: Path) -> None:
    store = snapstore.open("memory://")
    live = store.session("chat")
    told(live, 1)
    for n in range(12):
        told(store.fork(store.resolve("chat@1"), f"chat/branch-{n}"), 100 + n)
    told(live, 2)
    path = tmp_path / "page.html"
    path.write_bytes(page_of(store))
    with browser.open(path.as_uri()) as seen:
        assert seen.page.locator("#rows .fold").count() == 12
        assert seen.page.locator("#rows .row:not(.fold)").count() == 2
        row(seen, "1 turn in chat/branch-7").click()
        row(seen, "question 107").wait_for()


def test_a_turn_shows_the_call_beside_its_result_and_folds_the_thought(seen: Seen) -> None:
    row(seen, "question 4").click()
    seen.page.locator(".turn", has_text="answer 4").wait_for()
    call = seen.page.locator(".call", has_text="ls 4")
    given, result = call.locator(".given").bounding_box(), call.locator(".result").bounding_box()
    assert given["y"] == result["y"] and given["x"] < result["x"]
    thought = seen.page.locator(".thought pre")
    assert not thought.is_visible()
    seen.page.get_by_text("Thinking").click()
    assert thought.inner_text().strip() == "a thought"


def test_a_turn_shows_what_it_changed_in_files_and_scratchpad(seen: Seen) -> None:
    row(seen, "question 4").click()
    seen.page.locator(".turn", has_text="answer 4").wait_for()
    seen.page.locator(".change summary", has_text="code.py").click()
    diff = seen.page.locator(".diff")
    assert "- turn 3\n+ turn 4" in diff.inner_text()
    seen.page.locator(".change summary", has_text="step").click()
    assert "- 3\n+ 4" in seen.page.locator(".diff").nth(1).inner_text()


def test_a_turn_offers_the_commands_that_go_to_it(seen: Seen) -> None:
    row(seen, "question 4").click()
    seen.page.locator(".turn", has_text="answer 4").wait_for()
    seen.page.get_by_text("Commands").click()
    offered = seen.page.locator(".command code").all_inner_texts()
    assert offered[:2] == ["snapstore rewind main@4", "snapstore fork main@4 NEW-NAME"]
    assert re.fullmatch(r"snapstore diff [0-9a-f]{16} [0-9a-f]{16}", offered[2])
    seen.page.get_by_role("button", name="Copy the command that rewinds").click()
    seen.page.get_by_role("status").filter(has_text="snapstore rewind main@4").wait_for()


def test_two_sessions_stand_side_by_side_from_where_they_part(seen: Seen) -> None:
    seen.page.get_by_role("link", name="Compare", exact=True).click()
    seen.page.get_by_text("Both go on from").wait_for()
    assert "Both go on from turn 3" in seen.main
    assert seen.page.locator(".card:not(.none)").count() == 4
    seen.page.locator(".card", has_text="question 60").click()
    seen.page.get_by_text("answer 60").wait_for()
    assert "key" in seen.page.locator("h3:text('Scratchpad') + .changes").inner_text()


@pytest.mark.parametrize(("view", "name"), [("Scratchpad", "step"), ("Files", "code.py")])
def test_a_cell_of_a_grid_shows_before_and_after(seen: Seen, view: str, name: str) -> None:
    seen.page.get_by_role("link", name=view, exact=True).click()
    seen.page.get_by_role("combobox").select_option("main")
    seen.page.get_by_role("button", name=f"{name}, turn 4: changed").click()
    detail = seen.page.locator(".detail .diff")
    detail.wait_for()
    assert "- " in detail.inner_text() and "+ " in detail.inner_text()


def test_storage_tells_unique_bytes_against_whole_copies(seen: Seen) -> None:
    seen.page.get_by_role("link", name="Storage").click()
    seen.page.get_by_text("if every turn were a whole copy").wait_for()
    assert seen.page.locator(".barline").count() == 4
    assert "unique against" in seen.page.get_by_role("img").get_attribute("aria-label")
    seen.page.get_by_role("combobox").select_option("fork")
    seen.page.get_by_text("5 turns", exact=True).first.wait_for()


def test_storage_tells_what_gc_would_let_go_of(browser: Browser, tmp_path: Path) -> None:
    store = left_behind_long_ago()
    found = store.gc()
    path = tmp_path / "page.html"
    path.write_bytes(page_of(store, whole=True))
    with browser.open(path.as_uri()) as seen:
        seen.go("storage")
        assert f"gc would let go of {found.objects} objects" in seen.main
    path.write_bytes(page_of(store))
    with browser.open(path.as_uri()) as seen:
        seen.go("storage")
        assert seen.page.locator(".gc code").inner_text() == "snapstore gc"


def test_search_finds_what_only_a_result_says(seen: Seen) -> None:
    seen.page.get_by_role("searchbox", name="Search everything").fill("result 5")
    seen.page.get_by_text("2 places", exact=True).wait_for()
    seen.page.locator(".finds a", has_text="result 50").click()
    seen.page.locator(".turn", has_text="answer 50").wait_for()


@pytest.mark.parametrize(
    ("text", "turns"),
    [("tool:bash", 8), ("path:code", 8), ("session:fork", 2), ("question 4", 1), ("path:none", 0)],
)
def test_the_history_is_filtered(seen: Seen, text: str, turns: int) -> None:
    seen.page.get_by_role("searchbox", name="Filter the history").fill(text)
    seen.page.get_by_text(f"{turns} turn{'' if turns == 1 else 's'}", exact=True).wait_for()


def test_a_link_leads_to_its_turn(browser: Browser, url: str, seen: Seen) -> None:
    row(seen, "question 2").click()
    seen.page.locator(".turn", has_text="answer 2").wait_for()
    with browser.open(seen.page.url) as other:
        other.page.locator(".turn", has_text="answer 2").wait_for()


# --- by keyboard -----------------------------------------------------------------------------


def test_every_view_is_reached_by_keys(seen: Seen) -> None:
    for number, view in enumerate(VIEWS, 1):
        seen.page.keyboard.press(str(number))
        seen.page.locator(f"nav a[data-view={view}][aria-current]").wait_for()


def test_turns_are_walked_folds_opened_and_search_left_by_keys(seen: Seen) -> None:
    keys = seen.page.keyboard
    first = seen.page.locator(".turn h2").inner_text()
    keys.press("j")
    seen.page.wait_for_timeout(200)
    assert seen.page.locator(".turn h2").inner_text() != first
    keys.press("k")
    seen.page.wait_for_timeout(200)
    assert seen.page.locator(".turn h2").inner_text() == first
    seen.page.locator("#rows").focus()
    for _ in range(20):
        if seen.page.locator(".fold[aria-selected=true]").count():
            break
        keys.press("ArrowDown")
    keys.press("Enter")
    row(seen, "question 6").wait_for()
    keys.press("/")
    keys.type("answer 1")
    seen.page.get_by_text("1 place", exact=True).wait_for()
    keys.press("Escape")
    seen.page.locator("#rows:focus").wait_for()


def test_grids_are_walked_with_arrows(seen: Seen) -> None:
    seen.go("files/main")
    seen.page.locator(".cell").first.focus()
    seen.page.keyboard.press("ArrowRight")
    seen.page.keyboard.press("Enter")
    seen.page.locator(".detail h3", has_text="code.py in turn 2").wait_for()


def test_help_tells_the_keys(seen: Seen) -> None:
    seen.page.keyboard.press("?")
    assert seen.page.get_by_role("dialog").is_visible()
    seen.page.keyboard.press("Escape")
    assert not seen.page.get_by_role("dialog").is_visible()


# --- what is planted -------------------------------------------------------------------------


def test_planted_markup_stays_text_in_every_view(browser: Browser, tmp_path: Path) -> None:
    with browser.open(written(tmp_path, ATTACK)) as seen:
        scripts = seen.run("document.scripts.length")
        for view in (*VIEWS, "search/harmed"):
            seen.go(view)
            assert seen.run("window.harmed") is None
            assert seen.run("document.images.length") == 0
        seen.go("history")
        row(seen, "question 50").click()
        seen.page.locator(".turn", has_text=f"answer 50 {ATTACK}").wait_for()
        for opened in seen.page.locator(".turn summary").all():
            opened.click()
        seen.go("scratchpad/fork")
        for cell in seen.page.locator(".cell").all():
            cell.click()
        assert seen.run("window.harmed") is None
        assert seen.run("document.scripts.length") == scripts


def test_only_the_page_s_own_script_runs(browser: Browser, tmp_path: Path, url: str) -> None:
    page = Path(url.removeprefix("file://")).read_text()
    evil = "<script>window.harmed = 1</script><b onclick='1' id='evil'></b></body>"
    path = tmp_path / "changed.html"
    path.write_text(page.replace("</body>", evil))
    with browser.open(path.as_uri()) as seen:
        assert seen.run("window.harmed") is None
        refused = [note for note in seen.complaints if "Content Security Policy" in note]
        assert refused
        seen.complaints.clear()


def test_marks_that_turn_text_around_are_written_out(browser: Browser, tmp_path: Path) -> None:
    with browser.open(written(tmp_path, "a\u202eb")) as seen:
        row(seen, "question 50").click()
        seen.page.locator(".turn", has_text="answer 50 a\\u202eb").wait_for()


# --- how it looks ----------------------------------------------------------------------------

CONTRAST = """(() => {
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, n) => sum + v * [0.2126, 0.7152, 0.0722][n], 0);
  const ground = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const color = rgb(getComputedStyle(e).backgroundColor);
      if (color.length < 4 || color[3] > 0) return color;
    }
    return [255, 255, 255];
  };
  const bad = [];
  for (const element of document.body.querySelectorAll("*")) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    const skipped = element.closest("svg, #status, noscript, script");
    if (!own || skipped || !element.checkVisibility()) continue;
    const [a, b] = [light(rgb(getComputedStyle(element).color)), light(ground(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.push(`${element.className || element.tagName} ${ratio.toFixed(2)}`);
  }
  return [...new Set(bad)].join("; ");
})()"""

CONTROLS = "button, a[href], input, select, [role=region], svg[role=img], img"
UNNAMED = f"""(() => [...document.querySelectorAll("{CONTROLS}")]
  .filter((e) => e.checkVisibility() && !(e.getAttribute("aria-label") || e.innerText || e.alt
    || (e.labels && e.labels.length)))
  .map((e) => e.outerHTML.slice(0, 80)).join("; "))()"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_text_can_be_read_and_controls_have_names(
    browser: Browser, url: str, scheme: str, width: int
) -> None:
    size = {"width": width, "height": 800}
    with browser.open(url, color_scheme=scheme, viewport=size) as seen:
        last = row(seen, "question 50")
        last.click()
        seen.page.locator(".turn", has_text="answer 50").wait_for()
        for opened in seen.page.locator(".turn summary").all():
            opened.click()
        for view in ("", *VIEWS[1:], "search/question", "history"):
            if view:
                seen.go(view)
            assert seen.run(CONTRAST) == "", view
            assert seen.run(UNNAMED) == "", view
            assert seen.run("document.documentElement.scrollWidth") <= width, view


AXE = os.environ.get("AXE_CORE")
FAULTS = """axe.run().then(({violations}) => violations.flatMap(({id, nodes}) =>
  nodes.map(({html}) => `${id}: ${html.slice(0, 80)}`)).join("; "))"""


@pytest.mark.skipif(AXE is None, reason="$AXE_CORE names no axe.min.js: npm pack axe-core")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_axe_finds_no_fault(browser: Browser, url: str, scheme: str, width: int) -> None:
    size = {"width": width, "height": 800}
    with browser.open(url, color_scheme=scheme, viewport=size) as seen:
        seen.run(Path(str(AXE)).read_text())
        for view in ("turn/main@4", *VIEWS, "search/question", "compare/main/fork"):
            seen.go(view)
            for opened in seen.page.locator(".turn summary").all():
                if opened.is_visible():
                    opened.click()
            assert seen.run(FAULTS) == "", view


def test_a_phone_shows_the_list_or_the_turn(browser: Browser, url: str) -> None:
    with browser.open(url, viewport={"width": 360, "height": 800}) as seen:
        assert not seen.page.locator("#turn").is_visible()
        row(seen, "question 4").click()
        seen.page.locator(".turn", has_text="answer 4").wait_for()
        assert not seen.page.locator("#rows").is_visible()
        seen.page.get_by_role("link", name="‹ History").click()
        seen.page.locator("#rows").wait_for()


# --- much of it ------------------------------------------------------------------------------


def test_of_many_turns_few_are_in_the_document(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_bytes(page_of(grown(1000), redacted=False))
    with browser.open(path.as_uri()) as seen:
        seen.page.locator(".turn", has_text="answer 999").wait_for()
        seen.run("document.getElementById('rows').scrollTop = 1000")
        row(seen, "turns more").click()
        seen.page.get_by_text("1,000 turns").wait_for()
        assert seen.page.locator("#rows .row").count() < 80
        seen.page.locator("#rows").focus()
        seen.page.keyboard.press("End")
        seen.page.locator(".turn", has_text="answer 0").wait_for()
