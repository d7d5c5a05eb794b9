"""What a scheduler shows of itself over HTTP: health, metrics, documents, its page.

Covers: the table of paths, the stream of states while somebody looks.
Does not cover: what the documents say (``cluster_json``), the page (``report.console_page``).

Rules:
1. Everything is read-only, and for this machine alone unless somebody configures more.
2. A state is made once a second while a page is open, and not at all otherwise.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

import koordlet
from koordlet.http import message, routes
from koordlet.report import console_page
from koordlet.scheduler.claims import summary as claim_summary
from koordlet.scheduler.disruption import documents
from koordlet.scheduler.gangs import summary
from koordlet.scheduler.loop import core, recent_decisions, runner
from koordlet.scheduler.process import cluster_json, moves_pages, node_table
from koordlet.scheduler.quotas import summary as quota_summary

if TYPE_CHECKING:
    from koordlet.scheduler.loop import descheduler  # nearly no scheduler deschedules

_BEAT = 1.0
#: Where the peer's scheduler serves the quotas.
_PEER = "/apis/v1/plugins/ElasticQuota"
#: The loop comes round twice a second; so long without is not well.
_STALE_SECONDS = 15.0


class Pages:
    """The handlers of one scheduler."""

    def __init__(
        self, loop: runner.Loop, descheduling: descheduler.Descheduler | None = None
    ) -> None:
        self._loop, self._descheduling = loop, descheduling
        self._nodes = node_table.NodeTable(loop)
        #: Whoever looks at the page.
        self.channel = message.Channel(lambda: console_page.event(self.state()))

    def routes(self) -> routes.Routes:
        """The table."""
        return routes.Routes(
            [
                *(("GET", path, _file) for path in console_page.CLUSTER_FILES),
                ("GET", "/api/v1/cluster", self._cluster),
                ("GET", "/api/v1/events", self._events),
                ("GET", "/api/v1/nodes", self._node_rows),
                ("GET", "/api/v1/reservations", self._reservations),
                ("GET", "/api/v1/gangs", self._gangs),
                ("GET", "/api/v1/quotas", self._quotas),
                ("GET", "/api/v1/claims", self._claims),
                ("GET", "/api/v1/budgets", self._budgets),
                ("GET", "/api/v1/avoid", self._avoid),
                ("GET", f"{_PEER}/quotas", self._peer_quotas),
                ("GET", f"{_PEER}/quota/*", self._peer_quota),
                *_moves(self._descheduling),
                ("GET", "/metrics", self._metrics),
                ("GET", "/livez", self._alive),
                ("GET", "/healthz", self._alive),
                ("GET", "/readyz", self._ready),
            ]
        )

    def _metrics(self, _request: message.HttpRequest) -> message.HttpResponse:
        more = {} if self._descheduling is None else self._descheduling.gauges()
        return message.text(self._loop.metrics(more))

    @contextlib.asynccontextmanager
    async def publishing(self, beat: float = _BEAT) -> AsyncGenerator[None]:
        """Rule 2, for as long as the block runs."""
        task = asyncio.ensure_future(self._publish(beat))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _publish(self, beat: float) -> None:
        while True:
            await asyncio.sleep(beat)
            self.channel.publish()

    def document(self) -> dict[str, Any]:
        """The cluster now."""
        return self._moving() | cluster_json.document(*self._seen(), **self._self())

    def state(self) -> dict[str, Any]:
        """What the page gets each second: no nodes but their sums and revision."""
        state = cluster_json.state(*self._seen(), **self._self())
        return self._moving() | state | self._nodes.summary()

    def _seen(self) -> tuple[core.Core, recent_decisions.RecentDecisions, cluster_json.Instant]:
        loop = self._loop
        now = cluster_json.Instant(steady=loop.now(), wall=time.time())
        return loop.core, loop.core.decisions, now

    def _self(self) -> dict[str, Any]:
        return {"version": koordlet.__version__, "leading": self._loop.ready}

    def _moving(self) -> dict[str, Any]:
        if self._descheduling is None:
            return {}
        moves = moves_pages.MovesPages(self._descheduling)
        return {
            "moves": moves.newest(cluster_json.MOST),
            "plan": moves.round(),
            "plans": moves.newest_plans(cluster_json.MOST),
        }

    def _node_rows(self, request: message.HttpRequest) -> message.HttpResponse:
        """A row for each node, or those changed ``since``; with ``name`` one and its pods."""
        name = request.one("name")
        if name is None:
            return message.document(self._nodes.document(request.one("since") or ""))
        node = self._nodes.node(name)
        return message.document({"version": "v1", "nodes": [] if node is None else [node]})

    def _cluster(self, _request: message.HttpRequest) -> message.HttpResponse:
        return message.document(self.document())

    def _reservations(self, _request: message.HttpRequest) -> message.HttpResponse:
        reservations = cluster_json.reservations(self._loop.core.reservations)
        return message.document({"version": "v1", "reservations": reservations})

    def _gangs(self, request: message.HttpRequest) -> message.HttpResponse:
        """All gangs; with ``name`` those of that name or id, each with its members."""
        core, name = self._loop.core, request.one("name")
        gangs = [
            (gang, gang.document())
            for gang in summary.summaries(core, core.gangs.book, core.gangs.network)
            if not name or name in (gang.id, gang.id.partition("/")[2])
        ]
        for gang, document in gangs if name else ():
            entry = core.gangs.book.get(gang.key)
            document["members"] = [] if entry is None else summary.members(core, entry)
        return message.document({"version": "v1", "gangs": [document for _, document in gangs]})

    def _quotas(self, request: message.HttpRequest) -> message.HttpResponse:
        """All quotas; with ``name`` the one of that name, with its pods and how it came about."""
        core, name = self._loop.core, request.one("name")
        book = core.quotas.book
        if not name:
            quotas = quota_summary.documents(book)
            warning = book.overcommitted() if book else ""
            return message.document(
                {"version": "v1", "quotas": quotas, "warnings": [warning] if warning else []}
            )
        messages = {entry.pod.key: entry.why for entry in core.queue}
        return message.document(
            {"version": "v1", "quotas": quota_summary.named(book, name, messages)}
        )

    def _claims(self, request: message.HttpRequest) -> message.HttpResponse:
        """All claims; with ``name`` those of that name, each with devices and reasons of nodes."""
        core, state, name = self._loop.core, self._loop.allocations, request.one("name")
        claims = claim_summary.documents(state, name or "")
        if name:
            messages = {
                entry.pod.key: entry.why or entry.pod.stored_condition[1] for entry in core.queue
            }
            nodes = [(node.name, node.labels) for node in core.pod_cache.columns.nodes if node]
            time = state.search_time()
            details = [claim_summary.detail(state, row, messages) for row in claims]
            claims = [claim_summary.reasons(state, row, nodes, time) for row in details]
        return message.document({"version": "v1", "claims": claims})

    def _budgets(self, request: message.HttpRequest) -> message.HttpResponse:
        """All DisruptionRates; with ``name`` those of that name or ``namespace/name``."""
        known, name = self._loop.disruptions, request.one("name")
        budgets = [
            budget
            for budget in documents.budgets(known.limiter, known.now())
            if not name or name in (budget["budget"], budget["budget"].partition("/")[2])
        ]
        return message.document({"version": "v1", "budgets": budgets})

    def _avoid(self, request: message.HttpRequest) -> message.HttpResponse:
        """The entries of all avoid lists; with ``name`` those of that node."""
        known, name = self._loop.disruptions, request.one("name")
        avoided = documents.avoided(known.avoidances, known.now())
        avoided = [entry for entry in avoided if not name or name == entry["node"]]
        return message.document({"version": "v1", "avoid": avoided})

    def _peer_quotas(self, _request: message.HttpRequest) -> message.HttpResponse:
        """All quotas by name, as the peer's scheduler tells them."""
        book = self._loop.core.quotas.book
        nodes = quota_summary.ordered(book) if book else ()
        return message.document({node.name: quota_summary.peer(book, node) for node in nodes})

    def _peer_quota(self, request: message.HttpRequest) -> message.HttpResponse:
        """One of them; 404 where no quota has the name."""
        book, name = self._loop.core.quotas.book, request.path.rpartition("/")[2]
        node = book.nodes.get(name) if book else None
        if node is None:
            return message.error(
                404,
                "not_found",
                "no such quota",
                culprit=name[:200],
                fix=f"GET {_PEER}/quotas has them all",
            )
        return message.document(quota_summary.peer(book, node))

    def _events(self, _request: message.HttpRequest) -> message.HttpResponse:
        if self.channel.full:
            return message.error(
                503, "busy", "too many pages are open", fix="close one, or ask /api/v1/cluster"
            )
        return message.EventStream(self.channel)

    def _alive(self, _request: message.HttpRequest) -> message.HttpResponse:
        """Whoever waits for its turn is alive by answering; whoever decides has to come round."""
        beat = self._loop.beat
        age = 0.0 if beat is None else self._loop.now() - beat
        if age <= _STALE_SECONDS:
            return message.text("ok\n")
        return message.text(f"the scheduling loop has not run for {age:.0f} s\n", status=503)

    def _ready(self, _request: message.HttpRequest) -> message.HttpResponse:
        if self._loop.ready:
            return message.text("ok\n")
        return message.text("waiting for the store, or for the leader lease\n", status=503)


def _file(request: message.HttpRequest) -> message.HttpResponse:
    return console_page.file(request.path, console_page.CLUSTER_FILES)


def _moves(
    descheduling: descheduler.Descheduler | None,
) -> list[tuple[str, str, routes.Handler]]:
    return [] if descheduling is None else moves_pages.MovesPages(descheduling).table()
