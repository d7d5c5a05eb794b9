"""The peer's host applications as workloads of ours: processes outside of any pod, by cgroup."""

from __future__ import annotations

from koordlet.model import nodeslo, pod, qos

NAMESPACE = "host-application"


def pods(applications: tuple[nodeslo.HostApplication, ...]) -> tuple[pod.Pod, ...]:
    """One workload for each; of two with one name the first counts."""
    by_name: dict[str, pod.Pod] = {}
    for one in applications:
        kind = one.qos or qos.Qos.LS
        by_name.setdefault(
            one.name,
            pod.Pod(
                uid=f"{NAMESPACE}/{one.name}",
                namespace=NAMESPACE,
                name=one.name,
                qos=kind,
                raw_qos=one.qos,
                band=one.band or qos.Band.default_of(kind),
                source="host application",
                match=f"cgroup={one.group}",
            ),
        )
    return tuple(by_name.values())
