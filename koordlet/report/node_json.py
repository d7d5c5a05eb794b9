"""The node and its workloads as ``v1`` documents, from a view. Pure.

Covers: ``/api/v1/node`` with identity, health, pools, workloads, conditions and sources;
``/api/v1/pod`` with class and why, CPUs, files, policies, plan and problems of one workload; what
each uses now, from the list of quantities. Unknown values are ``null``.
Does not cover: the machine itself (``topology_json``), what is being done (``plan_json``), the keys
of usage (``quantities``).
"""

from __future__ import annotations

from typing import Any

from koordlet.history import shares
from koordlet.model import best_effort, cgroup, counters, meter, resources, snapshot
from koordlet.model import pod as pods
from koordlet.report import claims_json, documents, plan_json, quantities, view

_RESERVATION = "name uid phase holds owners cpus cpu_count match problems"
_HOLDS = "cpus owner since policy reason kubelet"


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
        "cpus": {
            **documents.fields(seen.topology, "present online"),
            "outside": str(seen.outside),
        },
        "pools": plan_json.pools(now.plan),
        "bestEffort": _best_effort(now),
        "banner": list(view.banner(now)),
        "usage": node_usage(now),
        "workloads": [_workload(now, workload) for workload in seen.pods],
        "reservations": documents.each(seen.reservations, _RESERVATION),
        "claims": claims_json.of_node(now),
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
    offer, would_be = now.plan.offer, None
    if planned is not None and planned.idle:
        would_be = {**_limit(planned), "why": planned.idle}
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


def cpus(now: view.ReportView, workload: pods.Pod) -> str | None:
    """The CPUs that a workload may run on; ``None`` while they are unknown."""
    group = now.snapshot.groups.get(workload.group) if workload.group is not None else None
    allowed = group.effective() or group.cpus() if group is not None else None
    return None if allowed is None else str(allowed)


def _workload(now: view.ReportView, workload: pods.Pod) -> dict[str, object]:
    return {
        **documents.fields(workload, "uid namespace name qos priority source match cgroup=group"),
        "cpus": cpus(now, workload),
        "cpuCores": now.usage.get(workload.key),
        "usage": workload_usage(now, workload),
        "requests": resources.texts(workload.requests),
        "limits": resources.texts(workload.limits),
    }


def _unmanaged(now: view.ReportView, workload: pods.Pod) -> dict[str, object]:
    """An undeclared pod or container: its usage is known, its requests are not."""
    used = workload_usage(now, workload)
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


# One workload -------------------------------------------------------------------------------------


def pod(now: view.ReportView, key: str) -> dict[str, object] | None:
    """Document of ``namespace/name`` or of a UID; ``None`` for an unknown name."""
    workload = next((each for each in now.snapshot.pods if key in (each.key, each.uid)), None)
    if workload is None:
        return None
    claim = now.plan.ledger.of(workload.uid)
    steps = [
        step
        for step in now.plan.steps
        if workload.group is not None
        and (
            step.action.group == workload.group
            or cgroup.is_below(step.action.group, workload.group)
        )
    ]
    return {
        "version": "v1",
        "observedAt": now.snapshot.wall,
        **documents.fields(workload, "namespace name uid qos"),
        "qosFrom": _why(workload),
        **documents.fields(workload, "priority source stale match"),
        "requests": resources.texts(workload.requests),
        "limits": resources.texts(workload.limits),
        "resize": workload.resize or None,
        "cgroup": _group(now, workload.group),
        "containers": [
            {**documents.fields(box, "name kind"), "cgroup": _group(now, box.group)}
            for box in workload.containers
        ],
        "holds": None if claim is None else documents.fields(claim, _HOLDS),
        "claims": claims_json.of_pod(now, workload),
        "policies": {
            stem: facts[workload.key]
            for stem, facts in now.plan.explanations.items()
            if workload.key in facts
        },
        "actions": [plan_json.described(each) for each in steps],
        "conditions": [
            documents.fields(condition, "type reason message")
            for condition in now.plan.conditions
            if condition.subject == workload.key
        ],
        "problems": list(workload.problems),
        "usage": workload_usage(now, workload),
    }


def _why(workload: pods.Pod) -> str:
    if workload.kube_qos is None:
        return workload.source
    if workload.raw_qos is not None:
        return "label koordinator.sh/qosClass"
    return f"no label; Kubernetes class {workload.kube_qos.value}"


def _group(now: view.ReportView, path: str | None) -> dict[str, object] | None:
    if path is None:
        return None
    seen = now.snapshot.groups.get(path)
    asked = None if seen is None else seen.cpus()
    effective = None if seen is None else seen.effective()
    return {
        "path": path,
        "exists": seen is not None,
        "cpus": None if asked is None else str(asked),
        "effective": None if effective is None else str(effective),
    }


# What is used -------------------------------------------------------------------------------------


def node_usage(now: view.ReportView) -> dict[str, object]:
    """Of the node: what is used, by whom, and where it is tight."""
    used = now.used
    return {
        **_quantities(used, "", "node"),
        "shares": {name: _quantities(used, name, "shares") for name in shares.SUBJECTS},
        "cpus": {cpu: round(value, 4) for cpu, value in used.cpus.values(meter.CPU)},
        "numa": {name: _quantities(used, name, "numa") for name in used.numa.slots},
        "links": {name: _quantities(used, name, "links") for name in used.links.slots},
        "disks": {name: _quantities(used, name, "disks") for name in used.disks.slots},
        "predicted": {
            "reclaimable": dict(now.predicted.reclaimable),
            "peak": dict(now.predicted.peak),
        },
    }


def workload_usage(now: view.ReportView, workload: pods.Pod) -> dict[str, object]:
    """Of one workload and its containers."""
    return {
        **_quantities(now.used, workload.group or "", "groups", "work"),
        **_quantities(now.used, workload.group or "", "traffic"),
        "containers": [
            {
                "name": box.name,
                "id": box.id,
                **_quantities(now.used, box.group or "", "groups", "work"),
            }
            for box in workload.containers
        ],
    }


def _quantities(used: counters.Usage, subject: str, *tables: str) -> dict[str, Any]:
    """The quantities of one subject that have a key."""
    made: dict[str, Any] = {}
    place = made
    inside: tuple[str, ...] = ()
    for row, folders, key, whole in quantities.keyed(*tables):
        if folders is not inside:
            place, inside = made, folders
            for folder in folders:
                place = place.setdefault(folder, {})
        table = getattr(used, row.table)
        if row.what is not None and not row.several:
            value = table.value(subject, row.what)
            place[key] = None if value is None else int(value) if whole else round(value, 4)
        else:
            values = (table.value(subject, what) for _, what in row.meters(used))
            place.setdefault(key, []).extend(
                None if value is None else int(value) if whole else round(value, 4)
                for value in values
            )
    return made
