"""The scheduler's page in Chromium: nodes, who waits, reservations, decisions; live."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from koordlet import showing
from koordlet.http import server
from koordlet.model import kinds
from koordlet.scheduler import nodes
from tests.browser import conftest, looking
from tests.kit import clusters, loops, reservations, schedulers

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser


class Cluster:
    """A scheduler at work over a file, and the server of its page."""

    def __init__(self, folder: Path) -> None:
        self.loop = loops.LoopThread()
        self._stack = contextlib.AsyncExitStack()
        self.address = self.loop.run(self._open(folder))

    async def _open(self, folder: Path) -> str:
        enter = self._stack.enter_async_context
        self.world = await enter(schedulers.world(folder, over_http=False))
        self.running = await enter(schedulers.scheduler(self.world.client))
        face = showing.Face(self.running)
        await enter(face.told(beat=0.1))
        shown = server.Server("127.0.0.1:0", face.routes())
        self._stack.push_async_callback(shown.stop)
        return await shown.start()

    def node(self, name: str, cpu: str = "4") -> None:
        """One more."""
        self.loop.run(self.world.node(name, cpu=cpu))

    def pod(self, name: str, cpu: str) -> None:
        """One more."""
        self.loop.run(self.world.pod(name, cpu=cpu))

    def reserve(self, name: str, cpu: str) -> None:
        """Room for pods to come."""
        room = reservations.reservation(name, cpu=cpu)
        room["metadata"].pop("uid")
        room["spec"]["template"]["spec"]["schedulerName"] = schedulers.NAME
        room.pop("status")
        self.loop.run(self.world.store.create(kinds.RESERVATIONS, room))

    def hostile(self) -> None:
        """Names that no store takes, put where the page reads."""
        core = self.running.core

        def put() -> None:
            for name in looking.HOSTILE:
                spec = {"taints": [{"key": name, "effect": "NoSchedule"}]}
                core.node(None, nodes.decode(clusters.node(name, spec=spec)), self.running.now())
                body = clusters.pod(name, cpu="64", schedulerName=schedulers.NAME)
                body["metadata"]["uid"] = name
                core.pod(None, core.decoder.decode(body, 0), self.running.now())
                core.step(self.running.now())

        self.loop.call(put)

    def close(self) -> None:
        """The end."""
        self.loop.run(self._stack.aclose())
        self.loop.close()


@pytest.fixture
def cluster(ram: Path) -> Iterator[Cluster]:
    """Two nodes, room that is held, a pod that has its place and one that fits nowhere."""
    made = Cluster(ram)
    made.node("n1")
    made.reserve("room", "2")
    made.node("n2", cpu="1")
    made.pod("web", "1")
    made.pod("big", "64")
    yield made
    made.close()


@pytest.fixture
def view(browser: Browser, cluster: Cluster) -> Iterator[Page]:
    """The page, drawn; whatever it complains about fails the test."""
    with conftest.opened(browser, cluster.address) as page:
        yield page


def test_every_panel(view: Page) -> None:
    """Nodes by what is used, held and free; who waits and why; reservations; decisions."""
    looking.expect_text(view, "#state", "decides, version")
    looking.expect_text(view, "#totals", "2 nodes, 1 pods. 2 CPUs free of 5 CPUs, 2 CPUs reserved")
    looking.expect_text(view, "#rows", "of 4 CPUs free")
    bar = view.locator('#rows [role="img"]').first
    assert "used" in str(bar.get_attribute("aria-label"))
    looking.expect_text(view, "#queues", "1 unschedulable")
    looking.expect_text(view, "#pending", "d/big 0/2 nodes are available: 2 Insufficient cpu")
    looking.expect_text(view, "#pending", "asks for 64 CPUs")
    looking.expect_text(view, "#reservations", "room Available on n1: 2 CPUs, in use nothing")
    looking.expect_text(view, "#decisions", "d/web → n")
    looking.expect_text(view, "#decisions", "nodes; scores n")


def test_what_changes_is_seen(view: Page, cluster: Cluster) -> None:
    """A node that comes lets a waiting pod go there, within two seconds and without loading."""
    looking.expect_text(view, "#pending", "d/big")

    cluster.node("large", cpu="96")

    looking.expect_text(view, "#rows", "large", 2000)
    looking.expect_text(view, "#decisions", "d/big → large")
    looking.expect_text(view, "#queues", "The queues are empty.")


def test_by_keys_alone(view: Page) -> None:
    """The filter is reached and works; the table can be scrolled."""
    view.keyboard.press("Tab")
    assert "Skip" in view.evaluate("document.activeElement.textContent")
    for _ in range(2):
        view.keyboard.press("Tab")
    assert view.evaluate("document.activeElement.id") == "filter"
    view.keyboard.type("n2")
    assert view.locator("#rows tr").count() == 1
    view.keyboard.press("Tab")
    assert "scroll" in view.evaluate("document.activeElement.className")


@pytest.mark.parametrize("width", [320, 768, 1280, 3840])
def test_sizes(view: Page, cluster: Cluster, width: int) -> None:
    """From a telephone to a wall, with many nodes."""
    for number in range(30):
        cluster.node(f"worker-{number:03}.rack-7.example-of-a-long-domain")
    looking.expect_text(view, "#totals", "32 nodes")
    view.set_viewport_size({"width": width, "height": 900})
    looking.panels_apart(view, panels=4)


def test_hostile_names(view: Page, cluster: Cluster) -> None:
    """They are text wherever they are shown, should a store ever let such names through."""
    cluster.hostile()

    for name in looking.HOSTILE:
        looking.expect_text(view, "#pending", name)
        looking.expect_text(view, "#decisions", name)
        looking.expect_text(view, "#rows", name)
    assert view.locator("main img, main script, main svg[onload]").count() == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_contrast(view: Page, theme: str) -> None:
    """All text can be read, in both themes."""
    view.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    looking.expect_text(view, "#decisions", "d/web")
    for text in (".swatch", "h2", "p", "td", "th", ".soft", "li", "a"):
        assert looking.contrast(view, text) >= looking.CONTRAST, text
