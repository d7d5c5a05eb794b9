"""HTTP endpoints over the newest view.

Covers: health, the documents below ``/api/v1``, metrics, the console's files and its stream.
Does not cover: connections and who may ask (``http``), the content of the documents.

Rules:
1. Each answer is made at most once for each view, when it is first asked for, and kept until what
   it is made of is another object.
2. Health also says when no view has come for a while: a view cannot know that it is old.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from koordlet.http import message, routes
from koordlet.report import (
    audit_json,
    console,
    console_page,
    documents,
    history_json,
    metrics,
    node_json,
    plan_json,
    recorder,
    topology_json,
    view,
)

#: Ticks come every second; so many seconds without one is not well.
STALE_SECONDS = 15.0

_QUESTIONS = "limit=1-1000, since=2026-01-31T12:00:00Z or 10m, pod=namespace/name, policy=stem"
_Handler = routes.Handler
Surfaces = Callable[[], Mapping[tuple[str, str], int]]


class Api:
    """The handlers of one agent."""

    def __init__(
        self,
        current: Callable[[], view.ReportView | None],
        *,
        version: str,
        recorded: recorder.Recorder,
        audit: Path | None = None,
        with_metrics: bool = True,
        without: Collection[str] = (),
        surfaces: Surfaces = dict,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._current = current
        self._version = version
        self._audit = audit
        self._with_metrics = with_metrics
        #: Groups of metric families that are not exported.
        self._without = without
        self._surfaces = surfaces
        self._recorded = recorded
        self._monotonic = monotonic
        self._wall = wall
        self._kept: dict[str, tuple[tuple[object, ...], message.HttpResponse]] = {}
        #: Whoever looks at the console; ``publish`` it after every tick.
        self.channel = message.Channel(lambda: console.event(current(), version, recorded))

    def routes(self) -> routes.Routes:
        """The table."""
        rows: list[tuple[str, str, routes.Handler]] = [
            *(("GET", path, self.page) for path in console_page.FILES),
            ("GET", "/api/v1/events", self.events),
            ("GET", "/livez", self.livez),
            ("GET", "/healthz", self.healthz),
            ("GET", "/readyz", self.readyz),
            *(
                ("GET", f"/api/v1/{handler.__name__}", self._of_view(handler))
                for handler in (
                    self.node,
                    self.topology,
                    self.cpus,
                    self.pod,
                    self.plan,
                    self.history,
                )
            ),
        ]
        if self._audit is not None:
            rows.append(("GET", "/api/v1/audit", self.audit))
        if self._with_metrics:
            rows.append(("GET", "/metrics", self._of_view(self.metrics)))
        return routes.Routes(rows)

    @functools.cached_property
    def _process(self) -> metrics.ProcessMetrics:
        return metrics.ProcessMetrics()

    def _of_view(
        self, answer: Callable[[message.HttpRequest, view.ReportView], message.HttpResponse]
    ) -> _Handler:
        """The handler of what the newest view answers, once there is one."""

        def handler(request: message.HttpRequest) -> message.HttpResponse:
            now = self._current()
            if now is None:
                why, fix = "the first tick is not complete", "try again in a second"
                return message.error(503, "starting", why, fix=fix)
            return answer(request, now)

        return handler

    def page(self, request: message.HttpRequest) -> message.HttpResponse:
        """A file of the console."""
        return self._once(request.path, (), lambda: console_page.file(request.path))

    def events(self, _request: message.HttpRequest) -> message.HttpResponse:
        """The newest state now and after every tick."""
        if self.channel.full:
            why, fix = "too many console pages are open", "close one, or read /api/v1/node"
            return message.error(503, "busy", why, fix=fix)
        return message.EventStream(self.channel)

    def livez(self, request: message.HttpRequest) -> message.HttpResponse:
        """Liveness: ticks continue. A live agent must not be killed."""
        return _health(request, [self._fresh(self._current())])

    def healthz(self, request: message.HttpRequest) -> message.HttpResponse:
        """Every named check, for people: what is wrong may be nothing that a restart mends."""
        now = self._current()
        checks = [self._fresh(now)]
        if now is not None:
            checks.extend(now.checks)
        return _health(request, checks)

    def readyz(self, request: message.HttpRequest) -> message.HttpResponse:
        """Readiness: the agent's last tick was verified and is recent."""
        now = self._current()
        ready = now is not None and now.ready
        detail = "" if ready else view.STARTING if now is None else now.unready
        return _health(
            request, [view.Check(name="ready", ok=ready, detail=detail), self._fresh(now)]
        )

    def node(self, _request: message.HttpRequest, now: view.ReportView) -> message.HttpResponse:
        """The node."""
        return self._kept_json("node", lambda: node_json.document(now, self._version), now)

    def topology(self, _request: message.HttpRequest, now: view.ReportView) -> message.HttpResponse:
        """The machine."""
        machine = now.snapshot.topology
        return self._kept_json("topology", lambda: topology_json.document(machine), machine)

    def cpus(self, _request: message.HttpRequest, now: view.ReportView) -> message.HttpResponse:
        """The owner map."""
        return self._kept_json("cpus", lambda: topology_json.cpus(now), now)

    def pod(self, request: message.HttpRequest, now: view.ReportView) -> message.HttpResponse:
        """One workload."""
        name = request.one("name") or ""
        document = node_json.pod(now, name)
        if document is None:
            return message.error(
                404,
                "usage",
                "no workload on this node has this name",
                culprit=name[:200] or "?name=",
                fix="give namespace/name or a UID; `koordlet get workloads` lists all workloads",
            )
        return message.document(document)

    def plan(self, _request: message.HttpRequest, now: view.ReportView) -> message.HttpResponse:
        """The current plan with reasons."""
        made, results = now.plan, now.results
        return self._kept_json("plan", lambda: plan_json.render(made, results), made, results)

    def metrics(self, request: message.HttpRequest, now: view.ReportView) -> message.HttpResponse:
        """Prometheus text, or OpenMetrics where the scraper prefers it."""
        wanted = request.prefers("text/plain", "application/openmetrics-text")
        form = metrics.OPENMETRICS if wanted == "application/openmetrics-text" else metrics.TEXT

        def made() -> message.HttpResponse:
            body = metrics.render(now, self._version, self._surfaces(), form, self._without)
            body += self._process.render(form) + form.end
            return message.HttpResponse(200, {"content-type": form.content_type}, body)

        return self._once(form.content_type, (now,), made)

    def audit(self, request: message.HttpRequest) -> message.HttpResponse:
        """The newest audit lines."""
        assert self._audit is not None  # noqa: S101 - there is no route without a path
        try:
            question = self._question(request)
        except ValueError as error:
            culprit = "/api/v1/audit"
            return message.error(400, "usage", str(error)[:200], culprit=culprit, fix=_QUESTIONS)
        try:
            return message.document(audit_json.document(self._audit, question))
        except OSError as error:
            why = f"the audit log cannot be read: {error.strerror}"
            return message.error(503, "host", why, culprit=str(self._audit))

    def history(self, request: message.HttpRequest, now: view.ReportView) -> message.HttpResponse:
        """What is remembered, as asked."""
        try:
            question = history_json.query(request, now.snapshot.wall)
            return message.document(history_json.document(self._recorded, now, question))
        except ValueError as error:
            culprit, fix = "/api/v1/history", history_json.FIELDS
            return message.error(400, "usage", str(error)[:200], culprit=culprit, fix=fix)

    def _question(self, request: message.HttpRequest) -> audit_json.AuditQuery:
        unknown = set(request.query) - {"limit", "since", "pod", "policy"}
        if unknown:
            msg = f"unknown field {min(unknown)[:40]!r}"
            raise ValueError(msg)
        limit = int(request.one("limit") or audit_json.DEFAULT_LINES)
        if not 1 <= limit <= audit_json.MAX_LINES:
            msg = f"limit is not in 1-{audit_json.MAX_LINES}"
            raise ValueError(msg)
        since, pod = request.one("since"), request.one("pod")
        now = self._current()
        pods = now.snapshot.pods if now is not None else ()
        return audit_json.AuditQuery(
            limit=limit,
            since=audit_json.moment(since, self._wall()) if since else None,
            pod=pod,
            group=next((workload.group for workload in pods if workload.key == pod), None),
            policy=request.one("policy"),
        )

    def _fresh(self, now: view.ReportView | None) -> view.Check:
        if now is None:
            return view.Check(name="ticks", ok=False, detail="no tick is complete")
        age = self._monotonic() - now.snapshot.at
        late = age > STALE_SECONDS
        detail = f"the last tick is {age:.0f} s old" if late else ""
        return view.Check(name="ticks", ok=not late, detail=detail)

    def _kept_json(
        self, name: str, make: Callable[[], dict[str, object]], *key: object
    ) -> message.HttpResponse:
        return self._once(name, key, lambda: message.document(make()))

    def _once(
        self, name: str, key: tuple[object, ...], make: Callable[[], message.HttpResponse]
    ) -> message.HttpResponse:
        """The kept response, unless it was made of other objects."""
        kept = self._kept.get(name)
        if kept is not None and all(a is b for a, b in zip(kept[0], key, strict=True)):
            return kept[1]
        made = make()
        self._kept[name] = (key, made)
        return made


def _health(request: message.HttpRequest, checks: list[view.Check]) -> message.HttpResponse:
    well = all(check.ok for check in checks)
    status = 200 if well else 503
    if request.prefers("text/plain", "application/json") == "application/json":
        rows = documents.each(checks, "name ok detail")
        return message.document({"version": "v1", "ok": well, "checks": rows}, status=status)
    if well and "verbose" not in request.query:
        return message.text("ok\n")
    lines = []
    for check in checks:
        detail = " ".join(check.detail.splitlines()) or ("ok" if check.ok else "failed")
        lines.append(f"[{'+' if check.ok else '-'}]{check.name} {detail}\n")
    return message.text("".join([*lines, "ok\n" if well else "failed\n"]), status=status)
