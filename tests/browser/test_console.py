"""Every panel, what changes, keys, sizes, hostile names: in Chromium."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser import conftest
from tests.kit import views

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

#: The lightest contrast of text that people with weak eyes can read (WCAG 2.2, 1.4.3).
CONTRAST = 4.5


def expect_text(page: Page, selector: str, words: str, within: float = 20_000) -> None:
    """Wait until an element says something."""
    page.wait_for_function(
        "([one, words]) => document.querySelector(one).textContent.includes(words)",
        arg=[selector, words],
        timeout=within,
    )


@pytest.mark.parametrize(
    ("panel", "words"),
    [
        ("#node", "n1"),
        ("#state", "version 1.2.3"),
        ("#legend", "reserved 2"),
        ("#map", "NUMA node 1"),
        ("#chart", "all: 2.50"),
        ("#gauges", "memory.available 80Mi, threshold 100Mi: met"),
        ("#gauges", "threshold 10%: not known yet: no measurement"),
        ("#rows", "default/web"),
        ("#ways", "the processor has none"),
        ("#reservations", "spare Available"),
        ("#actions", "/sys/fs/cgroup/shop/web/cpuset.cpus: 0-6 → 2-6 the LS pool"),
        ("#audit", "/cg/web/cpu.max bursts"),
        ("#sources", "kubelet refused"),
        ("#conditions", "ExclusiveCPUsRefused node: CPUs 2: taken"),
    ],
)
def test_every_panel(page: Page, panel: str, words: str) -> None:
    """Each says what the agent knows."""
    expect_text(page, panel, words)


def test_a_new_owner_is_seen(page: Page, console: conftest.Console) -> None:
    """Within two seconds of the tick, with the reason, without loading anything again."""
    page.locator('[data-cpu="3"]').hover()
    expect_text(page, "#why", "LS the LS pool")

    console.show(conftest.owned(console.now, "3"))

    page.wait_for_selector('[data-cpu="3"].lse', timeout=2000)
    expect_text(page, "#why", "Why: exclusive CPUs of LSE default/web (shared_pools)", 2000)
    expect_text(page, "#legend", "LSE 1")


def test_a_cpu_that_goes_away(page: Page, console: conftest.Console) -> None:
    """Another set of CPUs is another map."""
    console.show(conftest.full(16))

    page.wait_for_selector('[data-cpu="14"]', timeout=5000)
    expect_text(page, "#legend", "offline 1")


def test_by_keys_alone(page: Page) -> None:
    """The map is one stop; arrows move in it, and the reason is said. The table sorts."""
    page.keyboard.press("Tab")
    assert "Skip" in page.evaluate("document.activeElement.textContent")
    for _ in range(2):
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.dataset.cpu") == "0"
    expect_text(page, "#why", "CPU 0")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect_text(page, "#why", "CPU 2")
    page.keyboard.press("End")
    expect_text(page, "#why", "CPU 7")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "filter"
    page.keyboard.type("batch")
    assert page.locator("#rows tr").count() == 1
    page.focus('[data-column="key"]')
    page.keyboard.press("Enter")
    assert page.get_attribute('th:has([data-column="key"])', "aria-sort") == "ascending"
    assert page.evaluate("document.activeElement.dataset.column") == "key"


@pytest.mark.parametrize("width", [320, 768, 1280, 3840])
@pytest.mark.parametrize("cpus", [8, 256, 1024])
def test_sizes(page: Page, console: conftest.Console, width: int, cpus: int) -> None:
    """From a telephone to a wall: nothing sticks out, no panel covers another, CPUs are visible."""
    page.set_viewport_size({"width": width, "height": 900})
    console.show(conftest.full(cpus))
    page.wait_for_selector(f'[data-cpu="{cpus - 1}"]', timeout=20_000)

    assert page.evaluate("document.documentElement.scrollWidth") <= width
    boxes: list[dict[str, float]] = page.evaluate(
        "[...document.querySelectorAll('section')].map((s) => s.getBoundingClientRect().toJSON())"
    )
    assert len(boxes) == 8
    for n, one in enumerate(boxes):
        for other in boxes[n + 1 :]:
            apart = (
                one["right"] <= other["left"] + 1
                or other["right"] <= one["left"] + 1
                or one["bottom"] <= other["top"] + 1
                or other["bottom"] <= one["top"] + 1
            )
            assert apart, (one, other)
    cells: list[list[float]] = page.evaluate(
        "[...document.querySelectorAll('.cpu')].map((c) => c.getBoundingClientRect())"
        ".map((b) => [b.width, b.height, b.left, b.right])"
    )
    assert len(cells) == cpus
    assert all(w >= 12 and h >= 12 and left >= 0 and right <= width for w, h, left, right in cells)


HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</td></tr><script>alert(2)</script>",
    "'\"><svg onload=alert(3)>",
    "javascript:alert(4)",
)


def test_hostile_names(page: Page, console: conftest.Console) -> None:
    """They are text, in every panel that shows them."""
    pods = tuple(views.workload(name) for name in HOSTILE)
    now = conftest.full(workloads=pods)
    held = dataclasses.replace(now.snapshot.reservations[0], name=HOSTILE[0])
    node = dataclasses.replace(now.snapshot.node, name=HOSTILE[1])
    seen = dataclasses.replace(now.snapshot, reservations=(held,), node=node)
    console.show(conftest.owned(dataclasses.replace(now, snapshot=seen), "3"))

    for name in HOSTILE:
        expect_text(page, "#rows", name)
    expect_text(page, "#reservations", HOSTILE[0])
    expect_text(page, "#node", HOSTILE[1])
    assert page.locator("main img, main script, main svg[onload]").count() == 0


def contrast(page: Page, selector: str) -> float:
    """Of the worst of some elements' text against what is painted behind it."""
    found: Any = page.evaluate(
        """(selector) => {
          const parts = (c) => c.match(/[0-9.]+/g).map(Number);
          const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
            .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
            .reduce((sum, v, n) => sum + v * [0.2126, 0.7152, 0.0722][n], 0);
          const behind = (one) => {
            for (let e = one; e; e = e.parentElement) {
              const c = parts(getComputedStyle(e).backgroundColor);
              if (c.length === 3 || c[3] > 0.99) return c;
            }
            return [255, 255, 255];
          };
          return [...document.querySelectorAll(selector)].map((one) => {
            const a = light(parts(getComputedStyle(one).color)), b = light(behind(one));
            return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
          });
        }""",
        selector,
    )
    assert found, selector
    return float(min(found))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_contrast(page: Page, console: conftest.Console, theme: str) -> None:
    """All text can be read, in both themes."""
    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    console.show(conftest.owned(console.now, "3"))
    page.wait_for_selector('[data-cpu="3"].lse')
    page.evaluate("document.getAnimations().forEach((one) => one.finish())")

    for text in (".cpu b", ".badge", ".swatch", "h2", "p", "td", ".soft", ".bad", "a"):
        assert contrast(page, text) >= CONTRAST, text


def test_the_agent_goes_and_comes(page: Page, console: conftest.Console) -> None:
    """What is shown is said to be old; when the agent is back, so is the page."""
    console.stop()
    expect_text(page, "#state", "the agent does not answer")
    assert page.locator(".cpu").count() == 8

    console.restart()
    expect_text(page, "#state", "version 1.2.3")
