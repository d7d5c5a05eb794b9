"""The console's memory in Chromium: charts, cursor, zoom, marks, addresses, what is remembered."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

from koordlet.model import decision, meter
from tests.browser import conftest, looking
from tests.kit import demos, pasts, recorders, views

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser


def samples(page: Page, name: str, question: str = "cpu") -> list[float | None]:
    """What the page knows of a series."""
    values: list[float | None] = page.evaluate(
        "([question, name]) => samplesOf(question).series.get(name) || []", [question, name]
    )
    return values


def test_a_reload_loses_nothing(page: Page, console: conftest.Console) -> None:
    """Quarter of an hour is there at once, and after it what came while the page was open."""
    before = samples(page, "LS/cpuCores")
    assert len(before) >= 900
    console.record(LS__cpuCores=7.25)
    looking.expect_text(page, "#chart", "LS 7.25")
    assert samples(page, "LS/cpuCores")[-2:] == [before[-1], 7.25]

    looking.load(page, console.address)

    looking.expect_text(page, "#chart", "LS 7.25")
    assert samples(page, "LS/cpuCores")[-2:] == [before[-1], 7.25]


def test_a_page_that_missed_states_asks_for_them(page: Page, console: conftest.Console) -> None:
    """A gap in what was sent is not a gap in the chart."""
    for second in range(20):
        console.clock.now += 1
        console.recorded.seconds.take(console.clock.now, {"LS/cpuCores": second + 0.5})
    seen = dataclasses.replace(console.now.snapshot, wall=views.WALL + 20)
    console.now = dataclasses.replace(console.now, snapshot=seen)
    console.record(LS__cpuCores=0.125)

    looking.expect_text(page, "#chart", "LS 0.13")
    page.wait_for_function("() => samplesOf('cpu').series.get('LS/cpuCores').includes(19.5)")
    assert len([value for value in samples(page, "LS/cpuCores")[-21:] if value is not None]) == 21


def test_the_cursor_is_shared_and_zoom_has_an_address(
    page: Page, console: conftest.Console
) -> None:
    """Each chart shows its values at the cursor; a zoomed range can be sent to somebody."""
    plot = page.locator(".tall .plot")
    now = page.locator("#chart-latency").inner_text()
    plot.hover(position={"x": 200, "y": 60})
    page.wait_for_function(
        "(now) => document.getElementById('chart-latency').innerText !== now", arg=now
    )
    assert "Around" in page.locator("#marks").inner_text()
    plot.focus()
    page.keyboard.press("+")
    page.wait_for_function("() => location.hash.includes('from=')")
    assert page.locator("#unzoom").is_visible()
    label = str(plot.get_attribute("aria-label"))
    assert label.startswith("CPU use by class, ")
    asked = page.evaluate("[Math.round(timeline.from()), Math.round(timeline.to())]")

    looking.load(page, console.address, page.evaluate("location.hash"))

    assert page.evaluate("timeline.zoomed") == asked
    page.keyboard.press("Escape")
    page.wait_for_function("() => timeline.live() && !location.hash.includes('from=')")


def test_dragging_zooms(page: Page) -> None:
    """From where the pointer went down to where it came up."""
    box: Any = page.locator(".tall .plot").bounding_box()
    page.mouse.move(box["x"] + 200, box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + 400, box["y"] + 50, steps=4)
    page.mouse.up()

    zoomed = page.evaluate("timeline.zoomed")
    assert 100 < zoomed[1] - zoomed[0] < 400


def test_spans_longer_than_an_hour_have_minutes(page: Page, console: conftest.Console) -> None:
    """Chosen by button or key, and remembered."""
    page.click("#spans [value='21600']")
    page.wait_for_function("() => samplesOf('cpu').resolution === '1m'")
    assert len(samples(page, "LS/cpuCores")) == 60
    page.keyboard.press("[")
    page.wait_for_function("() => samplesOf('cpu').resolution === '1s'")

    looking.load(page, console.address)

    assert page.evaluate("timeline.span") == 3600


def test_what_was_done_is_marked_and_heads_the_page(page: Page, console: conftest.Console) -> None:
    """The last action with its reason, in the summary and below the chart; names are text."""
    undone = decision.Condition(
        type="PolicyRolledBack", reason="x", message=looking.HOSTILE[0], subject="cpu_burst"
    )
    plan = dataclasses.replace(console.now.plan, conditions=(undone,))
    console.now = dataclasses.replace(console.now, plan=plan)
    console.recorded.marks.take(console.now, console.clock.now)
    console.record()

    looking.expect_text(page, "#last", "now: rollback")
    looking.expect_text(page, "#last-why", f"change by cpu_burst was undone {looking.HOSTILE[0]}")
    looking.expect_text(page, "#marks", looking.HOSTILE[0])
    widths = "[...document.querySelectorAll('#marks li')].map((row) => row.clientWidth)"
    assert min(page.evaluate(widths)) > 300


def test_the_demo_shows_its_phases_and_then_its_summary(
    page: Page, console: conftest.Console
) -> None:
    """Beside an agent that plays one: what the terminal prints, and each phase on all charts."""
    assert page.locator("#demo").is_hidden()
    play = demos.Stage(off=0.1, on=0.01)
    _, comparing = demos.compared(play, seconds=11)
    console.recorded.demo = demos.Demo(comparing)
    seen = dataclasses.replace(console.now.snapshot, at=demos.START + 10)
    console.show(dataclasses.replace(console.now, snapshot=seen))

    looking.expect_text(page, "#phase", "With koordlet: 2 s left")
    looking.expect_text(page, "#rounds", "1100.0 ms10.0 ms1.001.00")
    assert page.locator("#steps [aria-current]").get_attribute("title") == "With koordlet"
    assert page.locator("#paste").is_hidden()
    page.evaluate(
        "() => { window.written = []; const pen = CanvasRenderingContext2D.prototype;"
        " const fillText = pen.fillText; pen.fillText = function (...words) {"
        " window.written.push(words[0]); fillText.apply(this, words); };"
        " const { phases } = timeline; timeline.zoom(phases[0].from, phases[9].to);"
        " timeline.point(phases[3].from + 1); }"
    )
    page.wait_for_function("() => ['on', 'off'].every((word) => window.written.includes(word))")
    looking.expect_text(page, "#marks", ", with koordlet")

    _, comparing = demos.compared(play)
    console.recorded.demo = demos.Demo(comparing)
    seen = dataclasses.replace(console.now.snapshot, at=demos.START + 62)
    console.show(dataclasses.replace(console.now, snapshot=seen))

    looking.expect_text(page, "#phase", "With koordlet the p99 of the service is 10.0 times")
    page.click("#copy")
    assert (
        page.evaluate("getSelection().toString()").split() == " ".join(comparing.summary()).split()
    )


def test_a_workload_has_a_line_and_its_own_charts(page: Page, console: conftest.Console) -> None:
    """By click or address: class and why, CPUs, and minutes of what it used."""
    past = pasts.past(groups={"shop/web": {meter.CPU: 1.5}}, until=100.0)
    console.recorded._past = past
    console.recorded.workloads.take(console.clock.now, {"default/web/cpuCores": 1.5})
    page.locator("#rows .open", has_text="default/web").click()

    looking.expect_text(page, "#detail", "class LS, from configuration")
    looking.expect_text(page, "#detail", "CPU use 1.50")
    assert "pod=default%2Fweb" in page.evaluate("location.hash")
    looking.load(page, console.address, page.evaluate("location.hash"))
    looking.expect_text(page, "#detail", "CPU use 1.50")
    assert page.evaluate("trends.get('default/web').length") > 1
    page.locator("#detail button[aria-label='Close this workload']").click()
    assert page.locator("#detail").is_hidden()
    looking.load(page, console.address, "#pod=nobody/here")
    looking.expect_text(page, "#detail", "The agent knows no workload of this name now")


def test_the_facts_of_an_opened_workload_are_those_of_now(
    page: Page, console: conftest.Console
) -> None:
    """What it holds, when it leaves, and when it is back; nothing is asked for while all stays."""
    page.locator("#rows .open", has_text="default/web").click()
    looking.expect_text(page, "#detail", "class LS, from configuration")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    before, plan = console.now, console.now.plan
    fresh = dataclasses.replace(
        plan, explanations={"shared_pools": {"default/web": "a new reason"}}
    )
    console.record()
    console.show(dataclasses.replace(console.now, plan=fresh))
    looking.expect_text(page, "#detail", "shared_pools a new reason")
    console.record(LS__cpuCores=7.25)
    looking.expect_text(page, "#chart", "LS 7.25")
    assert len([url for url in asked if "/api/v1/pod" in url]) == 1

    others = before.snapshot.pods[1:]
    seen = dataclasses.replace(console.now.snapshot, pods=others)
    console.show(dataclasses.replace(console.now, snapshot=seen))
    looking.expect_text(page, "#detail", "The agent knows no workload of this name now")
    console.show(before)
    looking.expect_text(page, "#detail", "class LS, from configuration")


def test_addresses_of_cpus_panels_and_moments(page: Page, console: conftest.Console) -> None:
    """Each is shown as if the reader had gone there."""
    looking.load(page, console.address, f"#cpu=3&panel=health&at={int(views.WALL) - 600}")

    looking.expect_text(page, "#why", "CPU 3 ")
    assert page.evaluate("timeline.cursor") == int(views.WALL) - 600
    assert page.evaluate("document.getElementById('health').getBoundingClientRect().top") < 700


def test_theme_folding_and_density_are_remembered(page: Page, console: conftest.Console) -> None:
    """For the next time that this browser opens the page."""
    page.click("#theme")
    page.click("#health .fold")
    page.click("#machine .fold")
    assert page.locator("#map").is_hidden()
    page.click("#density")

    looking.load(page, console.address)

    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.locator("#checks").is_hidden()
    assert page.evaluate("document.documentElement.className") == "dense"


def test_empty_panels_fold_away_until_they_have_something(
    page: Page, console: conftest.Console
) -> None:
    """The heading stays, and one click opens it all the same."""
    assert page.locator("#reservations").is_visible()
    seen = dataclasses.replace(console.now.snapshot, reservations=())
    console.show(dataclasses.replace(console.now, snapshot=seen))

    page.wait_for_selector("#held.folded.empty")
    page.click("#held .fold")
    looking.expect_text(page, "#reservations", "None on this node.")
    assert page.locator("#reservations").is_visible()


def test_search_goes_to_workloads_cpus_panels_and_charts(
    page: Page, console: conftest.Console
) -> None:
    """A slash, a part of the name, Enter; hostile names are text."""
    console.show(conftest.full(workloads=tuple(map(views.workload, looking.HOSTILE))))
    looking.expect_text(page, "#rows", looking.HOSTILE[0])
    for words, row in (("onerror", looking.HOSTILE[0]), ("cpu 5", "CPU 5"), ("laten", "latency")):
        page.keyboard.press("/")
        page.keyboard.type(words)
        looking.expect_text(page, "#results", row)
        page.keyboard.press("Enter")
        assert page.locator("#results").is_hidden()
    assert "panel=chart-latency" in page.evaluate("location.hash")
    looking.expect_text(page, "#why", "CPU 5 ")
    page.keyboard.press("/")
    page.keyboard.type("zzz")
    looking.expect_text(page, "#results", "Nothing has this name.")
    page.keyboard.press("Escape")


def test_a_second_of_a_large_machine_touches_what_changed(
    page: Page, console: conftest.Console
) -> None:
    """Of 2 048 CPUs none changes: no cell is written. One changes: one is."""
    console.show(conftest.full(2048))
    page.wait_for_selector('[data-cpu="2047"].offline')
    page.evaluate(
        "() => { window.touched = 0;"
        " new MutationObserver((all) => { window.touched += all.length; })"
        ".observe(document.getElementById('map'), {attributes: true, subtree: true}); }"
    )
    console.record(LS__cpuCores=3.5)
    looking.expect_text(page, "#chart", "LS 3.50")
    assert page.evaluate("window.touched") == 0

    console.show(conftest.owned(console.now, "9"))
    page.wait_for_selector('[data-cpu="9"].lse')
    assert page.evaluate("window.touched") <= 3


#: Time of a second in which all of 2 048 CPUs changed, of the time to write as many plain elements.
MOST_TIMES_ELEMENTS = 5
_SECOND = """async () => {
  const count = seen.topology.cpus.length;
  const numbers = Array.from({ length: count }, (_, n) => n);
  const busy = (turn) => Object.fromEntries(numbers.map((n) => [n, ((n + turn) % 97) / 97]));
  const plain = document.createElement("div");
  plain.style.cssText = "position: absolute; inset: 0; overflow: hidden";
  plain.append(...numbers.map(() => make("div", {}, make("i"))));
  document.body.append(plain);
  const whole = async (turn) => {
    await drawState({ ...seen.state, usage: { ...seen.state.usage, cpus: busy(turn) } });
    document.body.offsetHeight;
  };
  const elements = (turn) => {
    for (const [n, part] of Object.entries(busy(turn))) {
      plain.children[n].setAttribute("aria-label", `CPU ${n}, ${Math.round(100 * part)} % busy`);
      plain.children[n].firstChild.style.height = `${Math.round(100 * part)}%`;
    }
    document.body.offsetHeight;
  };
  const least = { whole: Infinity, elements: Infinity };
  for (let turn = 0; turn < 9; turn += 1) {
    for (const [name, draw] of Object.entries({ whole, elements })) {
      const start = performance.now();
      await draw(turn);
      least[name] = Math.min(least[name], performance.now() - start);
    }
  }
  plain.remove();
  return least;
}"""


def test_a_second_of_2048_busy_cpus_costs_a_few_times_their_elements(
    page: Page, console: conftest.Console
) -> None:
    """All panels and the map, layout included, beside the least that shows as many values."""
    console.show(conftest.full(2048))
    page.wait_for_selector('[data-cpu="2047"].offline')

    least = page.evaluate(_SECOND)

    assert "18 % busy" in str(page.locator('[data-cpu="9"]').get_attribute("aria-label"))
    assert least["whole"] < MOST_TIMES_ELEMENTS * least["elements"]


def test_each_recorded_series_of_the_waves_is_drawn(page: Page) -> None:
    """No quantity is recorded that the page forgets to show."""
    shown = set(
        page.evaluate(
            "timeline.charts.flatMap((chart) => [...samplesOf(chart.question).series.keys()])"
        )
    )
    assert set(recorders.WAVES) <= shown
