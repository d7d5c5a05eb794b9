"""The console: its files, and the state it receives every tick.

Covers: the files of the agent's page and of the scheduler's, the ``v1`` document of one moment of
an agent for people to look at.
Does not cover: how it is drawn (``page/*.js``), who is told (``http.message``), what a scheduler
tells (``scheduler.process.cluster_json``).

Rules:
1. The page gets data only: names of pods and annotations are text for it, never markup, and its
   content security policy lets nothing but its own files run.
2. One state is whole: a page that misses some of them is right again with the next.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from koordlet.http import message
from koordlet.model import pod, resources
from koordlet.report import (
    answers,
    documents,
    history_json,
    node_json,
    plan_json,
    recorder,
    resctrl_json,
    view,
)

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:;"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_TYPES = {".css": "text/css", ".html": "text/html", ".js": "text/javascript"}


def _files(page: str, *names: str) -> Mapping[str, tuple[str, str]]:
    """Path to file and its type: a page, and what it loads."""
    paths = {"/": page, **{f"/{name}": name for name in names}}
    return {
        path: (name, f"{_TYPES[name[name.rindex('.') :]]}; charset=utf-8")
        for path, name in paths.items()
    }


_SHARED = ("console.css", "page.css", "page.js", "address.js", "finder.js")
#: Of the agent, a script for each noun.
FILES = _files(
    "console.html",
    *_SHARED,
    "agent.css",
    *("chart.js", "timeline.js", "charts.js", "machine.js", "answers.js", "workloads.js"),
    *("panels.js", "demo.js", "place.js", "console.js"),
)
#: Of the scheduler.
CLUSTER_FILES = _files(
    "cluster.html",
    *_SHARED,
    "cluster.css",
    *("nodes.js", "heatmap.js", "nodetable.js", "nodeview.js", "queue.js", "lanes.js"),
    *("quotas.js", "moves.js", "cluster.js"),
)
#: Actions that are told: a person reads the first ones, the rest is in the plan.
_ACTIONS = 100
#: The same of evictions.
_EVICTIONS = 20


def file(path: str, files: Mapping[str, tuple[str, str]] = FILES) -> message.HttpResponse:
    """One file of a page."""
    name, kind = files[path]
    body = (Path(__file__).parent / "page" / name).read_bytes()
    made = message.text(body.decode(), kind=kind)
    made.headers = {**made.headers, "content-security-policy": CSP}
    return made


def event(now: view.ReportView | None, version: str, recorded: recorder.Recorder) -> bytes:
    """Server-sent event with the state, or with the news that there is none yet."""
    return event_of(None if now is None else document(now, version, recorded))


def event_of(state: Mapping[str, object] | None) -> bytes:
    """Event with a state; ``None`` if there is none yet."""
    if state is None:
        return b"event: starting\ndata: {}\n\n"
    data = json.dumps(state, separators=(",", ":"))
    return f"event: state\ndata: {data}\n\n".encode()


def document(now: view.ReportView, version: str, recorded: recorder.Recorder) -> dict[str, object]:
    """One moment, with the newest row of what is recorded."""
    whole = node_json.document(now, version)
    made = plan_json.render(now.plan, now.results)
    kept = (
        *("version", "name", "agent", "epoch", "revision", "mode", "ready", "observedAt"),
        *("cgroup", "cpus", "pools", "bestEffort", "banner", "usage", "reservations"),
        *("conditions", "unsupported", "sources", "checks"),
    )
    return {
        **{name: whole[name] for name in kept},
        "workloads": [_workload(now, workload) for workload in now.snapshot.pods],
        "unmanaged": len(now.snapshot.unmanaged),
        "signals": made["signals"],
        "evictions": made["evictions"][:_EVICTIONS],
        "offer": _offer(now),
        "actions": made["actions"][:_ACTIONS],
        "actionCount": len(made["actions"]),
        "explanations": made["explanations"],
        "shadow": made["shadow"],
        "resctrl": resctrl_json.render(now.snapshot),
        "startedAt": now.counters.started,
        "counters": {
            **documents.fields(now.counters, "ticks writes refusals"),
            "tickCpuSeconds": round(now.counters.tick_cpu_seconds, 6),
        },
        "history": history_json.row(recorded, now.snapshot.wall),
        "answers": answers.document(now, recorded.row),
        "demo": None if recorded.demo is None else recorded.demo.comparison(now),
    }


def _offer(now: view.ReportView) -> dict[str, object] | None:
    offer = now.plan.offer
    if offer is None:
        return None
    return {
        "amounts": resources.texts(offer.amounts),
        "zones": {str(node): resources.texts(much) for node, much in offer.zones.items()},
        "degraded": offer.degraded,
        "reasons": dict(offer.reasons),
    }


def _workload(now: view.ReportView, workload: pod.Pod) -> dict[str, object]:
    used = node_json.workload_usage(now, workload)
    shown = ("cpuCores", "throttledRatio", "memoryBytes", "pids", "pressure", "network")
    return {
        **documents.fields(workload, "key qos source cgroup=group"),
        "cpus": node_json.cpus(now, workload),
        **{name: used[name] for name in shown},
    }
