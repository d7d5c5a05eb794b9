"""The endpoints, from a view to a response."""

from __future__ import annotations

import json
import urllib.parse
from pathlib import Path

import pytest

from koordlet.http import message
from koordlet.report import http_api, view
from tests.kit import recorders, views

NOW = 100.5


class Agent:
    """An API over a view that a test may replace."""

    def __init__(self, audit: Path | None = None) -> None:
        self.view: view.ReportView | None = views.view()
        self.api = http_api.Api(
            lambda: self.view,
            version="1.2.3",
            recorded=recorders.recorder(),
            audit=audit,
            monotonic=lambda: NOW,
            wall=lambda: views.WALL,
        )
        self.routes = self.api.routes()

    def get(self, target: str, **headers: str) -> message.HttpResponse:
        """The response to a request."""
        pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
        return self.routes.answer(message.parse(b"GET", target.encode(), pairs))

    def json(self, target: str, **headers: str) -> dict[str, object]:
        """The document of a response."""
        document: dict[str, object] = json.loads(self.get(target, **headers).body)
        return document


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    """An agent with an audit log that is not there yet."""
    return Agent(tmp_path / "audit.jsonl")


DOCUMENTS = [
    "/api/v1/node",
    "/api/v1/topology",
    "/api/v1/cpus",
    "/api/v1/pod?name=default/web",
    "/api/v1/plan",
    "/api/v1/history",
    "/api/v1/audit",
]


@pytest.mark.parametrize("path", DOCUMENTS)
def test_documents_are_versioned(agent: Agent, path: str) -> None:
    """Each document says its version first."""
    assert next(iter(agent.json(path).items())) == ("version", "v1")


@pytest.mark.parametrize("path", [*DOCUMENTS[:6], "/metrics"])
def test_before_the_first_tick(agent: Agent, path: str) -> None:
    """Without a view there is no document, and the answer says so."""
    agent.view = None

    assert agent.get(path).status == 503


def test_cpus(agent: Agent) -> None:
    """Each CPU has one owner; a claim says whose it is and why, a pool which ones."""
    document = agent.json("/api/v1/cpus")
    owners, cpus = document["owners"], document["cpus"]
    assert isinstance(cpus, list)

    assert owners == {"reserved": "0-1", "LS": "2-6", "offline": "7"}
    assert tuple(cpus[0][key] for key in ("holder", "policy", "reason")) == (
        "node",
        "reserved_cpus",
        "configured",
    )
    assert (
        [pool["kind"] for pool in cpus[2]["pools"]],
        cpus[2]["holder"],
        cpus[2]["siblings"],
    ) == (["LS"], None, "2-3")
    assert [*range(8)] == [row["cpu"] for row in cpus]


def test_one_workload(agent: Agent) -> None:
    """Class, group, what is to be done, by name or UID; a name of nobody is an answer, too."""
    for name in ("default/web", "uid-web"):
        document = agent.json(f"/api/v1/pod?name={name}")
        assert (document["name"], document["qosFrom"]) == ("web", "configuration")
        assert document["cgroup"] == {
            "path": "shop/web",
            "exists": True,
            "cpus": "2-6",
            "effective": "2-6",
        }
        assert isinstance(document["actions"], list)
        assert [action["value"] for action in document["actions"]] == ["2-6"]
    for target in ("/api/v1/pod?name=x", "/api/v1/pod"):
        assert agent.get(target).status == 404


def test_node(agent: Agent) -> None:
    """The node's document has identity, pools, workloads and their use."""
    node = agent.json("/api/v1/node")

    assert (
        node["name"],
        node["machineId"],
        node["agent"],
        node["revision"],
    ) == ("n1", "machine-1", "1.2.3", 1)
    workloads = node["workloads"]
    assert isinstance(workloads, list)
    assert [
        (workload["name"], workload["qos"], workload["cpus"], workload["cpuCores"])
        for workload in workloads
    ] == [
        ("web", "LS", "2-6", 1.5),
        ("batch", "BE", "2-6", None),
    ]


def test_plan_is_the_one_of_the_command(agent: Agent) -> None:
    """``/api/v1/plan`` has the keys of ``koordlet plan -o json``."""
    plan = agent.json("/api/v1/plan")

    assert {"actions", "writes", "evictions", "signals", "conditions", "unsupported"} <= plan.keys()


@pytest.mark.parametrize("path", [*DOCUMENTS[:3], DOCUMENTS[4], "/metrics"])
def test_made_once_for_a_view(agent: Agent, path: str) -> None:
    """A second request for the same view gets the same object; a new view is made anew."""
    first, second = agent.get(path), agent.get(path)
    agent.view = views.view(shape=views.machine(16), made=views.made_plan(steps=()))
    third = agent.get(path)

    assert first is second
    assert first.body != third.body


def test_topology_outlives_the_view(agent: Agent) -> None:
    """A new view of the same machine does not make its topology again."""
    first = agent.get("/api/v1/topology")
    agent.view = views.view(at=101.0)

    assert agent.get("/api/v1/topology") is first


def test_healthy(agent: Agent) -> None:
    """All checks well: 200 and one word."""
    response = agent.get("/healthz")

    assert (response.status, response.body) == (200, b"ok\n")


def test_verbose(agent: Agent) -> None:
    """``?verbose`` names the checks."""
    assert agent.get("/healthz?verbose").body == b"[+]ticks ok\n[+]policies ok\n[+]writes ok\nok\n"


def test_unhealthy(agent: Agent) -> None:
    """One check that fails: 503, naming it and what is wrong, in one line."""
    agent.view = views.view(checks=(view.Check(name="writes", ok=False, detail="EBUSY\nx"),))

    response = agent.get("/healthz")

    assert (response.status, response.body) == (503, b"[+]ticks ok\n[-]writes EBUSY x\nfailed\n")


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_old_view_is_unhealthy(agent: Agent, path: str) -> None:
    """A view that is not replaced for long fails, although all in it is well."""
    agent.view = views.view(at=NOW - http_api.STALE_SECONDS - 1)

    response = agent.get(path)

    assert response.status == 503
    assert b"[-]ticks the last tick is 16 s old" in response.body


def test_health_as_json(agent: Agent) -> None:
    """JSON where ``Accept`` asks for it."""
    document = agent.json("/healthz", Accept="application/json")

    assert document["ok"] is True
    assert document["checks"] == [
        {"name": name, "ok": True, "detail": ""} for name in ("ticks", "policies", "writes")
    ]


@pytest.mark.parametrize(("ready", "status"), [(True, 200), (False, 503)])
def test_ready(agent: Agent, ready: bool, status: int) -> None:
    """Readiness is that of the view."""
    agent.view = views.view(ready=ready)

    assert agent.get("/readyz").status == status


def test_not_ready_before_the_first_tick(agent: Agent) -> None:
    """Without a view the agent is neither ready nor healthy."""
    agent.view = None

    assert [agent.get("/readyz").status, agent.get("/healthz").status] == [503, 503]


def test_metrics_negotiation(agent: Agent) -> None:
    """Prometheus text by default, OpenMetrics to a scraper that prefers it."""
    scraper = (
        "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1"
    )

    plain, open_text = agent.get("/metrics"), agent.get("/metrics", Accept=scraper)

    assert plain.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert open_text.headers["content-type"].startswith("application/openmetrics-text; version=1")
    assert open_text.body.endswith(b"# EOF\n")


def test_metrics_can_be_switched_off() -> None:
    """Without metrics there is no such path."""
    api = http_api.Api(views.view, version="1", recorded=recorders.recorder(), with_metrics=False)

    assert "/metrics" not in api.routes()


@pytest.mark.parametrize("path", ["/", "/console.css", "/console.js"])
def test_the_page(agent: Agent, path: str) -> None:
    """Its files come with a policy that lets nothing else run, before the first tick, too."""
    agent.view = None
    page = agent.get(path)

    assert page.status == 200
    assert page.headers["content-security-policy"].startswith("default-src 'none'; script-src 's")
    assert b"<script>" not in page.body


def test_the_stream(agent: Agent) -> None:
    """It is refused only when too many listen already."""
    assert isinstance(agent.get("/api/v1/events"), message.EventStream)

    class Idle:
        def event(self, data: bytes) -> None:
            assert data.startswith(b"event: state\n")

    for _ in range(16):
        agent.api.channel.listen(Idle())
    assert agent.get("/api/v1/events").status == 503


def write_log(path: Path, *records: object) -> None:
    """Lines of an audit log."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def record(at: float, policy: str = "shared_pools", group: str = "shop/web") -> dict[str, object]:
    """One audit record."""
    return {"at": at, "policy": policy, "group": group}


@pytest.mark.parametrize(
    ("query", "times"),
    [
        ("", [4, 3, 2, 1]),
        ("?limit=2", [4, 3]),
        ("?policy=reserved_cpus", [3]),
        ("?since=3", [4, 3]),
        (f"?since={urllib.parse.quote('1970-01-01T00:00:02Z')}", [4, 3, 2]),
        ("?since=1s", []),
        ("?pod=default/web", [2, 1]),
        ("?pod=default/unknown", []),
        ("?pod=default/web&since=2", [2]),
    ],
)
def test_audit(tmp_path: Path, query: str, times: list[int]) -> None:
    """The newest lines first, filtered by time, pod and policy."""
    path = tmp_path / "audit.jsonl"
    write_log(
        path,
        record(1),
        record(2, group="shop/web/container"),
        record(3, policy="reserved_cpus", group=""),
        record(4, group="shop/webmail"),
    )

    records = Agent(path).json(f"/api/v1/audit{query}")["records"]

    assert isinstance(records, list)
    assert times == [record["at"] for record in records]


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=1001", "limit=x", "since=yesterday", "since=nan", "since=1e99", "since=xm",
     "colour=red"],
)  # fmt: skip
def test_audit_questions_that_make_no_sense(agent: Agent, query: str) -> None:
    """A wrong question is 400 with the right form, not an empty answer."""
    response = agent.get(f"/api/v1/audit?{query}")

    assert response.status == 400
    assert "limit=1-1000" in json.loads(response.body)["error"]["fix"]


def test_audit_that_cannot_be_read(tmp_path: Path) -> None:
    """A log that is a directory is our trouble, and named."""
    response = Agent(tmp_path).get("/api/v1/audit")

    assert response.status == 503
    assert json.loads(response.body)["error"]["culprit"] == str(tmp_path)
