"""The node as the ``v1`` document of ``/api/v1/node``, from a view. Pure.

Covers: identity, health, pools, workloads with what they use now, conditions, sources.
Does not cover: the machine itself (``topology_json``), what is being done (``plan_json``).
"""

from __future__ import annotations

from koordlet.model import best_effort, pod, resources, snapshot
from koordlet.report import documents, plan_json, usage_json, view

_RESERVATION = "name uid phase holds owners cpus cpu_count match problems"


def document(now: view.ReportView, version: str) -> dict[str, object]:
    """The whole document."""
    seen = now.snapshot
    return {
        "version": "v1",
        "name": seen.node.name,
        "agent": version,
        **documents.fields(now, "epoch revision mode ready"),
        **documents.fields(seen, "observedAt=wall machine_id boot_id"),
        "cgroup": seen.layout.version.value,
        **documents.fields(seen.node, "labels annotations"),
        "cpus": documents.fields(seen.topology, "present online"),
        "pools": plan_json.pools(now.plan),
        "bestEffort": _best_effort(now),
        "banner": list(view.banner(now)),
        "usage": usage_json.node(now),
        "workloads": [_workload(now, workload) for workload in seen.pods],
        "reservations": documents.each(seen.reservations, _RESERVATION),
        "unmanaged": [_unmanaged(now, workload) for workload in seen.unmanaged],
        "conditions": [plan_json.condition(condition) for condition in now.plan.conditions],
        "unsupported": documents.each(now.plan.unsupported, "feature why"),
        "sources": [_source(source, seen.at) for source in seen.sources],
        "checks": documents.each(now.checks, "name ok detail"),
    }


def _best_effort(now: view.ReportView) -> dict[str, object]:
    """CPU limit of best-effort work and its policy, batch and mid resources; null if there is none.

    ``wouldBe`` is a limit that is not in force, with the reason why; null where there is none.
    """
    planned, limit = now.plan.limit, view.acting(now)
    nobody = {**dict.fromkeys(("policy", "actuator", "limitCores", "cpus")), "reason": ""}
    would_be = (
        {**_limit(planned), "why": planned.idle} if planned is not None and planned.idle else None
    )
    offer = now.plan.offer
    return {
        "offered": None if offer is None else resources.texts(offer.amounts),
        "degraded": "" if offer is None else offer.degraded,
        **(nobody if limit is None else _limit(limit)),
        "wouldBe": would_be,
    }


def _limit(limit: best_effort.Limit) -> dict[str, object]:
    return {
        "policy": limit.policy,
        "actuator": limit.actuator or None,
        "limitCores": None if limit.milli is None else limit.milli / 1000,
        "cpus": None if limit.cpus is None else str(limit.cpus),
        "reason": limit.reason,
    }


def cpus(now: view.ReportView, workload: pod.Pod) -> str | None:
    """The CPUs that a workload may run on; ``None`` while they are unknown."""
    group = now.snapshot.groups.get(workload.group) if workload.group is not None else None
    allowed = group.effective() or group.cpus() if group is not None else None
    return None if allowed is None else str(allowed)


def _workload(now: view.ReportView, workload: pod.Pod) -> dict[str, object]:
    return {
        **documents.fields(workload, "uid namespace name qos priority source match cgroup=group"),
        "cpus": cpus(now, workload),
        "cpuCores": now.usage.get(workload.key),
        "usage": usage_json.workload(now, workload),
        "requests": resources.texts(workload.requests),
        "limits": resources.texts(workload.limits),
    }


def _unmanaged(now: view.ReportView, workload: pod.Pod) -> dict[str, object]:
    """An undeclared pod or container: its usage is known, its requests are not."""
    used = usage_json.workload(now, workload)
    return {
        **documents.fields(workload, "uid namespace name"),
        "qos": None,
        **documents.fields(workload, "kube_qos"),
        "runtime": next((box.runtime for box in workload.containers if box.runtime), None),
        **documents.fields(workload, "source cgroup=group"),
        "cpuCores": used["cpuCores"],
        "usage": used,
    }


def _source(source: snapshot.Source, now: float) -> dict[str, object]:
    age = None if source.last_good is None else round(now - source.last_good, 3)
    return {**documents.fields(source, "name ok"), "ageSeconds": age, "problem": source.problem}
