"""The node as the ``v1`` document of ``/api/v1/node``, from a view. Pure.

Covers: identity, health, pools, workloads with what they use now, conditions, sources.
Does not cover: the machine itself (``topology_json``), what is being done (``plan_json``).
"""

from __future__ import annotations

from koordlet.model import best_effort, pod, reservation, resources, snapshot
from koordlet.report import in_force, plan_json, usage_json, view


def document(now: view.ReportView, version: str) -> dict[str, object]:
    """The whole document."""
    seen = now.snapshot
    return {
        "version": "v1",
        "name": seen.node.name,
        "agent": version,
        "epoch": now.epoch,
        "revision": now.revision,
        "mode": now.mode,
        "ready": now.ready,
        "observedAt": seen.wall,
        "machineId": seen.machine_id,
        "bootId": seen.boot_id,
        "cgroup": seen.layout.version.value,
        "labels": dict(seen.node.labels),
        "annotations": dict(seen.node.annotations),
        "cpus": {"present": str(seen.topology.present), "online": str(seen.topology.online)},
        "pools": plan_json.pools(now.plan),
        "bestEffort": _best_effort(now),
        "banner": list(in_force.banner(now)),
        "usage": usage_json.node(now),
        "workloads": [_workload(now, one) for one in seen.pods],
        "reservations": [_reservation(one) for one in seen.reservations],
        "unmanaged": [_unmanaged(now, one) for one in seen.unmanaged],
        "conditions": [plan_json.condition(condition) for condition in now.plan.conditions],
        "unsupported": [{"feature": u.feature, "why": u.why} for u in now.plan.unsupported],
        "sources": [_source(source, seen.at) for source in seen.sources],
        "checks": [{"name": c.name, "ok": c.ok, "detail": c.detail} for c in now.checks],
    }


def _best_effort(now: view.ReportView) -> dict[str, object]:
    """CPU limit of best-effort work and its policy; null if there is no limit.

    ``wouldBe`` is a limit that is not in force, with the reason why; null where there is none.
    """
    found, limit = now.plan.limit, in_force.acting(now)
    nobody = {**dict.fromkeys(("policy", "actuator", "limitCores", "cpus")), "reason": ""}
    would_be = {**_limit(found), "why": found.idle} if found is not None and found.idle else None
    return {
        **_offered(now),
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


def _offered(now: view.ReportView) -> dict[str, object]:
    """Batch and mid resources; null while they are not computed."""
    offer = now.plan.offer
    if offer is None:
        return {"offered": None, "degraded": ""}
    return {"offered": resources.texts(offer.amounts), "degraded": offer.degraded}


def _workload(now: view.ReportView, one: pod.Pod) -> dict[str, object]:
    group = now.snapshot.groups.get(one.group) if one.group is not None else None
    cpus = group.effective() or group.cpus() if group is not None else None
    return {
        "uid": one.uid,
        "namespace": one.namespace,
        "name": one.name,
        "qos": one.qos.value,
        "priority": one.priority,
        "source": one.source,
        "match": one.match,
        "cgroup": one.group,
        "cpus": None if cpus is None else str(cpus),
        "cpuCores": now.usage.get(one.key),
        "usage": usage_json.workload(now, one),
        "requests": resources.texts(one.requests),
        "limits": resources.texts(one.limits),
    }


def _reservation(one: reservation.Reservation) -> dict[str, object]:
    return {
        "name": one.name,
        "uid": one.uid,
        "phase": one.phase,
        "holds": one.holds,
        "owners": list(one.owners),
        "cpus": None if one.cpus is None else str(one.cpus),
        "cpuCount": one.cpu_count,
        "match": one.match,
        "problems": list(one.problems),
    }


def _unmanaged(now: view.ReportView, one: pod.Pod) -> dict[str, object]:
    """An undeclared pod or container: its usage is known, its requests are not."""
    used = usage_json.workload(now, one)
    return {
        "uid": one.uid,
        "namespace": one.namespace,
        "name": one.name,
        "qos": None,
        "kubeQos": None if one.kube_qos is None else one.kube_qos.value,
        "runtime": next((box.runtime for box in one.containers if box.runtime), None),
        "source": one.source,
        "cgroup": one.group,
        "cpuCores": used["cpuCores"],
        "usage": used,
    }


def _source(source: snapshot.Source, now: float) -> dict[str, object]:
    age = None if source.last_good is None else round(now - source.last_good, 3)
    return {"name": source.name, "ok": source.ok, "ageSeconds": age, "problem": source.problem}
