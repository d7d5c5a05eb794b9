"""What the agent's console receives every tick.

Covers: the ``v1`` document of one moment of an agent for people to look at.
Does not cover: the page (``console_page``), who is told (``http.message``), what a scheduler tells
(``scheduler.process.cluster_json``).
"""

from __future__ import annotations

from koordlet.model import pod, resources
from koordlet.report import (
    answers,
    console_page,
    documents,
    history_json,
    node_json,
    plan_json,
    recorder,
    resctrl_json,
    view,
)

#: Actions that are told: a person reads the first ones, the rest is in the plan.
_ACTIONS = 100
#: The same of evictions.
_EVICTIONS = 20


def event(now: view.ReportView | None, version: str, recorded: recorder.Recorder) -> bytes:
    """Server-sent event with the state, or with the news that there is none yet."""
    return console_page.event(None if now is None else document(now, version, recorded))


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
