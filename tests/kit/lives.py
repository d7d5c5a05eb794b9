"""One daemon on three workloads of the kernel of the tests, with what hears of it and shows it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path

from koordlet.agent import bootstrap, container_runtime, endpoints, lifecycle, loop, reload
from koordlet.config import loader, reloader
from koordlet.host.systemd import notify
from koordlet.report import view
from koordlet.workloads import gatherer
from tests.kit import agents, sites


class Heard(notify.Notifier):
    """Remembers what a service manager would hear."""

    def __init__(self) -> None:
        super().__init__({"WATCHDOG_USEC": "9000000"})
        self.told: list[str] = []
        #: What came with READY.
        self.statuses: list[str] = []

    def _send(self, message: str) -> None:
        state, _, status = message.partition("\n")
        self.told.append(state)
        if state == "READY=1":
            self.statuses.append(status)


class Shown(endpoints.Endpoints):
    """Endpoints that remember what they were told, and may refuse to start."""

    def __init__(self) -> None:
        self.problems: Mapping[str, str] = {}
        self.events: list[str] = []
        self.views: list[view.ReportView | None] = []
        self.published = asyncio.Event()

    async def start(self, current: Callable[[], view.ReportView | None]) -> tuple[str, ...]:
        """Come up."""
        self.events.append("start" if current() is not None else "start without a view")
        return ("http://here/",)

    def publish(self, now: view.ReportView | None) -> None:
        """Remember the view."""
        self.views.append(now)
        self.published.set()

    async def stop(self, *, final: bool) -> None:
        """Go away."""
        del final
        self.events.append("stop")

    async def next(self, wanted: Callable[[], bool]) -> None:
        """Wait until a published view makes something true."""
        async with asyncio.timeout(30):
            while not wanted():
                self.published.clear()
                await self.published.wait()


class Life:
    """One daemon on three workloads, with a configuration file."""

    def __init__(
        self,
        ram: Path,
        config: str = "",
        start: bootstrap.Start | None = None,
        sources: Callable[[], gatherer.Gatherer] | None = None,
        runtime: Callable[[lifecycle.Agent], container_runtime.Runtime] | None = None,
    ) -> None:
        """``start``: the agent does not begin with what its file says."""
        self.start = start
        self.sources = sources
        self.runtime = runtime
        self.site = sites.workloads("v1", ram)
        self.file = ram / "config.yaml"
        self.file.write_text(agents.HEADER + self.site.config + config)
        self.before = self.site.image()
        self.heard = Heard()
        self.greeted: list[tuple[str, ...]] = []
        self.who: lifecycle.Agent
        self.shown: Shown
        self.daemon: loop.Loop
        self.running: asyncio.Future[None]

    async def _run(self, act: Callable[[Life], Awaitable[None]]) -> None:
        start = self.start or bootstrap.Start(config=loader.load(str(self.file), {}, {}))
        config = start.config
        self.site.sources = None if self.sources is None else self.sources()
        run = self.site.line()
        run.configure(config)
        wired = bootstrap.wire(config, run.host, self.site.sources)
        if self.runtime is not None:
            wired = replace(wired, runtime=self.runtime)
        self.who = lifecycle.Agent(run, self.site.paths, enforce=start.configured, wired=wired)
        self.shown = Shown()
        self.daemon = loop.Loop(
            self.who,
            config=reload.LiveConfig(
                self.who,
                reloader.Reloader(str(self.file), {}, {}, config, error=start.refused),
                start=start,
                keep=self.site.paths,
            ),
            notifier=self.heard,
            endpoints=self.shown,
            on_ready=lambda _, addresses: self.greeted.append(addresses),
        )
        self.running = asyncio.ensure_future(self.daemon.run())
        try:
            await act(self)
        finally:
            self.daemon.stop()
            await self.running

    def run(self, act: Callable[[Life], Awaitable[None]]) -> None:
        """Live while ``act`` runs, then stop."""
        asyncio.run(self._run(act))

    def text(self, path: str) -> str:
        """A file of the machine."""
        return self.site.host.text(self.site.host.at(path)).strip()

    def checks(self) -> dict[str, bool]:
        """Check to whether it is good, in the newest view."""
        newest = self.shown.views[-1]
        return {} if newest is None else {check.name: check.ok for check in newest.checks}

    async def ready(self) -> None:
        """Wait for the first view that is ready."""
        await self.shown.next(lambda: bool(self.shown.views))
