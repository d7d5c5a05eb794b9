"""The peer's host applications as workloads of ours: processes outside of any pod, by cgroup."""

from __future__ import annotations

from koordlet.model import nodeslo, pod, qos

NAMESPACE = "host-application"


def pods(applications: tuple[nodeslo.HostApplication, ...]) -> tuple[pod.Pod, ...]:
    """One workload for each; of two with one name the first counts."""
    by_name: dict[str, pod.Pod] = {}
    for application in applications:
        kind = application.qos or qos.Qos.LS
        by_name.setdefault(
            application.name,
            pod.Pod(
                uid=f"{NAMESPACE}/{application.name}",
                namespace=NAMESPACE,
                name=application.name,
                qos=kind,
                raw_qos=application.qos,
                band=application.band or qos.Band.default_of(kind),
                source="host application",
                match=f"cgroup={application.group}",
            ),
        )
    return tuple(by_name.values())
