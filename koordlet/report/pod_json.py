"""One workload and everything that was decided about it: the ``v1`` document of ``/api/v1/pod``.

Covers: who it is and where its class comes from, its CPUs and whose word that is, what each policy
says of it, what is being changed, what is wrong with it.
Does not cover: usage (``usage_json``, which this includes), finding it in a cluster.
"""

from __future__ import annotations

from collections.abc import Iterator

from koordlet.model import cgroup, pod, resources
from koordlet.report import documents, plan_json, usage_json, view

_CLAIM = "cpus owner since policy reason kubelet"


def document(now: view.ReportView, key: str) -> dict[str, object] | None:
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
        "cgroup": _group(now, workload.group),
        "containers": [
            {**documents.fields(box, "name kind"), "cgroup": _group(now, box.group)}
            for box in workload.containers
        ],
        "holds": None if claim is None else documents.fields(claim, _CLAIM),
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
        "usage": usage_json.workload(now, workload),
    }


def names(now: view.ReportView) -> Iterator[str]:
    """Known names."""
    return (workload.key for workload in now.snapshot.pods)


def _why(workload: pod.Pod) -> str:
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
