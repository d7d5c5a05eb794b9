"""Every panel, what changes, keys, sizes, hostile names: in Chromium."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from koordlet.model import best_effort
from tests.browser import conftest, looking
from tests.kit import views

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

#: Panel, and words that are in it.
PANELS = (
    ("#node", "n1"),
    ("#state", "version 1.2.3"),
    ("#legend", "reserved 2"),
    ("#map", "NUMA node 1"),
    ("#safe", "✗ At risk"),
    ("#safe-why", "memory.available is 80Mi, threshold 100Mi"),
    ("#facts", "p99 of requests 6.0 ms"),
    ("#gets-why", "not limited"),
    ("#share-words", "LSE 0.99 · LS 1.98 · BE 2.48 · system 0.39 of 8 CPUs"),
    ("#last", "Nothing yet"),
    ("#chart", "LSE 0.99LS 1.98BE 2.48system 0.39BE limit 4.00"),
    ("#chart-latency", "Request latencyp99 6.0 ms"),
    ("#chart-network", "eth0 received 2.8 MiB/s"),
    ("#chart-caches", "BE 3.0 MiB"),
    ("#quiet", "Nothing recorded in this span: cpu waiting of latency-sensitive work"),
    ("#gauges", "memory.available 80Mi, threshold 100Mi: met"),
    ("#unknown", "1 unknown signal"),
    ("#unknown", "threshold 10%: unknown: no measurement"),
    ("#rows", "default/web"),
    ("#gauges", "nodefs.available 30Gi, threshold 10Gi (10%): not met20.0 GiB left"),
    ("#gauges", "cpu.suppress LS and system 1.30 cores"),
    ("#gauges", "3.90 cores left"),
    ("#gauges", "20.0 MiB below the threshold"),
    ("#evictions", "default/batch not evicted yet: one is on its way; memory.available is"),
    ("#offers", "kubernetes.io/batch-cpu 2500 (2.50 CPUs) 8000 - 65 % - what LS uses"),
    ("#offers", "NUMA node 1: kubernetes.io/batch-cpu 1500 (1.50 CPUs)"),
    ("#offers", "reduced: no metrics of one pod"),
    ("#ways", "BE L3 0=3, MB 0=40 2 threads, occupies 3.0 MiB"),
    ("#ways", "BE: 40 (%)"),
    ("#reservations", "spare Available: CPUs 2-3, for unit=db.service"),
    ("#policies", "reserved_cpus wanted: 0-1"),
    ("#actions", "/sys/fs/cgroup/shop/web/cpuset.cpus: 0-6 → 2-6 the LS pool"),
    ("#audit", "/cg/web/cpu.max bursts"),
    ("#checks", "✓ "),
    ("#sources", "kubelet refused"),
    ("#conditions", "ExclusiveCPUsRefused node: CPUs 2: taken"),
)


def test_every_panel(page: Page) -> None:
    """Each says what the agent knows."""
    for panel, words in PANELS:
        looking.expect_text(page, panel, words)


def test_when_it_was_done(page: Page) -> None:
    """On the clock of whoever looks; the whole moment for machines."""
    looking.expect_text(page, "#audit", "bursts")
    times = page.locator("#audit time")
    assert times.get_attribute("datetime") == "2026-01-31T12:00:00.000Z"
    assert len(times.inner_text().strip()) == len("12:00:00")


def test_cache_ways_by_class(page: Page, console: conftest.Console) -> None:
    """Each way has the colour of its class and says who fills it; without resctrl the reason is."""
    looking.expect_text(page, "#ways", "L3 0")
    named = page.eval_on_selector_all(".way", "(all) => all.map((one) => one.ariaLabel)")
    assert named[0] == "way 0: root, BE"
    assert named[10] == "way 10: root, LS"
    assert page.locator(".way.be").count() == 2
    assert page.locator(".way.ls").count() == 9

    seen = dataclasses.replace(console.now.snapshot, resctrl=None)
    console.show(dataclasses.replace(console.now, snapshot=seen))
    looking.expect_text(page, "#ways", "the processor has none")


def test_gauges(page: Page) -> None:
    """Full is at the threshold, whether a signal falls or rises to it; readers hear both."""
    looking.expect_text(page, "#gauges", "cpu.suppress")
    meters = page.eval_on_selector_all(
        "#gauges [role=meter]",
        "(all) => all.map((one) => [one.ariaLabel.split(',')[0], Number(one.ariaValueNow),"
        " one.ariaValueText, one.firstChild.offsetWidth / one.offsetWidth])",
    )
    shown = {name: (now, words) for name, now, words, _ in meters}
    assert shown["memory.available"] == (1, "20.0 MiB below the threshold")
    assert shown["nodefs.available"] == (0.33, "20.0 GiB left")
    assert shown["cpu.suppress"] == (0.25, "3.90 cores left")
    assert all(abs(width - now) < 0.02 for _, now, _, width in meters)


def test_a_new_owner_is_seen(page: Page, console: conftest.Console) -> None:
    """With the reason, without loading anything again."""
    page.locator('[data-cpu="3"]').hover()
    looking.expect_text(page, "#why", "LS the LS pool")

    console.show(conftest.owned(console.now, "3"))

    page.wait_for_selector('[data-cpu="3"].lse')
    looking.expect_text(page, "#why", "Why: exclusive CPUs of LSE default/web (shared_pools)")
    looking.expect_text(page, "#legend", "LSE 1")


def test_a_cpu_outside_of_the_cgroup_tree_is_not_free(
    page: Page, console: conftest.Console
) -> None:
    """Another program's partition has it, and the reason is said."""
    page.locator('[data-cpu="5"]').hover()

    console.show(conftest.rooted(console.now, "0-4,6"))

    page.wait_for_selector('[data-cpu="5"].outside')
    looking.expect_text(page, "#why", "outside no workload. Why: it is outside of the root")
    looking.expect_text(page, "#legend", "outside 1")


def test_a_cpu_that_goes_away(page: Page, console: conftest.Console) -> None:
    """Another set of CPUs is another map."""
    console.show(conftest.full(16))

    page.wait_for_selector('[data-cpu="14"]')
    looking.expect_text(page, "#legend", "offline 1")


def test_by_keys_alone(page: Page) -> None:
    """The map is one stop; arrows move in it, and the reason is said. The table sorts."""
    page.keyboard.press("Tab")
    assert "Skip" in page.evaluate("document.activeElement.textContent")
    # Before the next key, not when the page has read its new address.
    assert page.evaluate("(document.activeElement.click(), document.activeElement.id)") == "machine"
    for _ in range(3):
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.dataset.cpu") == "0"
    looking.expect_text(page, "#why", "CPU 0")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    looking.expect_text(page, "#why", "CPU 2")
    page.keyboard.press("End")
    looking.expect_text(page, "#why", "CPU 7")
    page.focus("#filter")
    page.keyboard.type("batch")
    assert page.locator("#rows tr").count() == 1
    page.focus('[data-column="key"]')
    page.keyboard.press("Enter")
    assert page.get_attribute('th:has([data-column="key"])', "aria-sort") == "ascending"
    assert page.evaluate("document.activeElement.dataset.column") == "key"


def test_what_is_drawn_anew_keeps_the_focus(page: Page, console: conftest.Console) -> None:
    """A CPU of another map, a workload of another table; and another agent leads nobody away."""
    looking.load(page, console.address, "#panel=machine")
    page.focus('[data-cpu="3"]')
    console.show(conftest.full(16))
    page.wait_for_selector('[data-cpu="14"]')
    assert page.evaluate("document.activeElement.dataset.cpu") == "3"
    assert page.get_attribute('[data-cpu="3"]', "aria-pressed") == "true"

    page.focus('[data-workload="default/batch"]')
    console.show(conftest.full(workloads=tuple(map(views.workload, ("batch", "first")))))
    looking.expect_text(page, "#rows", "default/first")
    assert page.evaluate("document.activeElement.dataset.workload") == "default/batch"

    page.focus("#filter")
    console.show(dataclasses.replace(console.now, epoch="another"))
    page.wait_for_function("() => seen.epoch === 'another' && timeline.known.size")
    assert page.evaluate("document.activeElement.id") == "filter"


@pytest.mark.parametrize("width", [320, 768, 1280, 3840])
@pytest.mark.parametrize("cpus", [8, 256, 2048])
def test_sizes(page: Page, console: conftest.Console, width: int, cpus: int) -> None:
    """From a telephone to a wall: nothing sticks out, no panel covers another, CPUs are visible."""
    page.set_viewport_size({"width": width, "height": 900})
    console.show(conftest.full(cpus))
    page.wait_for_selector(f'[data-cpu="{cpus - 1}"]', timeout=20_000)

    assert page.evaluate("document.documentElement.scrollWidth") <= width
    looking.panels_apart(page, panels=12)
    cells: list[list[float]] = page.evaluate(
        "[...document.querySelectorAll('.cpu')].map((c) => c.getBoundingClientRect())"
        ".map((b) => [b.width, b.height, b.left, b.right])"
    )
    assert len(cells) == cpus
    assert all(w >= 12 and h >= 12 and left >= 0 and right <= width for w, h, left, right in cells)


def test_no_heading_of_workloads_is_cut_on_a_telephone(page: Page) -> None:
    """The table may scroll, so ``test_sizes`` does not look into it."""
    page.set_viewport_size({"width": 320, "height": 900})
    sticking_out = page.eval_on_selector_all(
        "#workloads th button",
        """(all) => all.filter((one) => {
          const cell = one.parentElement;
          return one.scrollWidth > one.clientWidth || one.offsetWidth > cell.clientWidth
            || one.getBoundingClientRect().right > cell.getBoundingClientRect().right + 1;
        }).map((one) => one.textContent)""",
    )
    assert sticking_out == []


def test_hostile_names(page: Page, console: conftest.Console) -> None:
    """They are text, in every panel that shows them."""
    pods = tuple(views.workload(name) for name in looking.HOSTILE)
    now = conftest.full(workloads=pods)
    held = dataclasses.replace(now.snapshot.reservations[0], name=looking.HOSTILE[0])
    node = dataclasses.replace(now.snapshot.node, name=looking.HOSTILE[1])
    seen = dataclasses.replace(now.snapshot, reservations=(held,), node=node)
    made = dataclasses.replace(
        now.plan,
        evictions=(dataclasses.replace(now.plan.evictions[0], pod=looking.HOSTILE[2]),),
        conditions=(dataclasses.replace(now.plan.conditions[0], message=looking.HOSTILE[1]),),
        explanations={"shared_pools": {looking.HOSTILE[0]: looking.HOSTILE[3]}},
    )
    console.show(conftest.owned(dataclasses.replace(now, snapshot=seen, plan=made), "3"))

    for name in looking.HOSTILE:
        looking.expect_text(page, "#rows", name)
    looking.expect_text(page, "#reservations", looking.HOSTILE[0])
    looking.expect_text(page, "#node", looking.HOSTILE[1])
    looking.expect_text(page, "#evictions", looking.HOSTILE[2])
    looking.expect_text(page, "#conditions", looking.HOSTILE[1])
    looking.expect_text(page, "#policies", f"{looking.HOSTILE[0]}: {looking.HOSTILE[3]}")
    assert page.locator("main img, main script, main svg[onload]").count() == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("cpus", [8, 64, 256])
def test_all_text_can_be_read(
    page: Page, console: conftest.Console, theme: looking.Theme, cpus: int
) -> None:
    """In both themes: large enough and apart from what is behind it, on a telephone and a wall."""
    page.emulate_media(color_scheme=theme)
    console.show(conftest.owned(conftest.full(cpus), "3"))
    page.wait_for_selector(f'[data-cpu="{cpus - 2}"]')
    page.wait_for_selector('[data-cpu="3"].lse')
    page.evaluate("openWorkload('default/web')")
    looking.expect_text(page, "#detail", "class LS")
    page.evaluate("document.getAnimations().forEach((one) => one.finish())")

    for width, pixels in ((390, 11), (1440, 11), (3840, 14)):
        page.set_viewport_size({"width": width, "height": 900})
        assert looking.unreadable(page, pixels=pixels) == []


@pytest.mark.parametrize("width", [390, 1440])
def test_unruly_names_stay_in_their_place(
    page: Page, console: conftest.Console, width: int
) -> None:
    """What would turn words around is a number; long names neither push nor hide; all open."""
    page.set_viewport_size({"width": width, "height": 900})
    now = conftest.full(workloads=tuple(map(views.workload, looking.UNRULY)))
    node = dataclasses.replace(now.snapshot.node, name=looking.UNRULY[3])
    console.show(dataclasses.replace(now, snapshot=dataclasses.replace(now.snapshot, node=node)))
    looking.expect_text(page, "#rows", "default/⟨U+202E⟩gnitruh")
    looking.panels_apart(page, panels=12)
    assert page.evaluate("document.querySelector('header').offsetHeight") < 130
    for row in page.locator("#rows .open").all():
        key = row.inner_text()
        row.click()
        looking.expect_text(page, "#detail", "class LS, from configuration")
        looking.expect_text(page, "#detail h3", key)
        looking.load(page, console.address, page.evaluate("location.hash"))
        looking.expect_text(page, "#detail", "class LS, from configuration")
        page.locator("#detail button").click()
    page.locator('[data-cpu="3"]').click()
    looking.expect_text(page, "#why", "default/\u2068\u05d0\u05d1\u05d2\u2069 [LS]")
    assert "\u202e" not in page.evaluate("document.body.textContent")


def test_the_agent_goes_and_comes(page: Page, console: conftest.Console) -> None:
    """What is shown is said to be old; when the agent is back, so is the page."""
    console.stop()
    looking.expect_text(page, "#state", "the agent does not answer")
    assert page.locator(".cpu").count() == 8

    console.restart()
    looking.expect_text(page, "#state", "version 1.2.3")


def test_the_banner(page: Page, console: conftest.Console) -> None:
    """A limit that is not in force is said above everything, and is not drawn as the limit."""
    limit = best_effort.Limit(policy="adaptive", actuator="cfsQuota", milli=3000, reason="waits")
    plan = console.now.plan
    console.show(dataclasses.replace(console.now, plan=dataclasses.replace(plan, limit=limit)))
    looking.expect_text(page, "#gets-why", "may use 3.00 CPUs: waits (adaptive)")
    assert page.locator("#banner").is_hidden()

    idle = best_effort.idle(limit, "policies.adaptive.mode is shadow")
    console.show(dataclasses.replace(console.now, plan=dataclasses.replace(plan, limit=idle)))
    looking.expect_text(
        page, "#banner", "policies.adaptive.mode is shadow (adaptive would allow 3.00 CPUs)"
    )
    looking.expect_text(page, "#gets-why", "not limited: policies.adaptive.mode is shadow")
    looking.expect_text(page, "#best-effort", "Best-effort work is not limited.")
