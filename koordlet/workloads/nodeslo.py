"""The peer's NodeSLO into strategies in force.

Covers: the object's spec, defaults underneath, host applications as workloads of ours.
Does not cover: making a spec out of ``slo-controller-config`` (``sloconfig``).

Rules:
1. A section or field that does not fit costs itself: its last valid value holds
   (``strategy_holding``), else its default is in force, and the problem is said.
2. Another version of the object is read for what it has in common with ours.
3. A missing object is all defaults, which switch everything off.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from koordlet.kubeapi import classes, objects, shapes
from koordlet.model import cgroup, nodeslo, pod, qos, strategies
from koordlet.workloads import colocation, strategy_holding, strategy_reader

_READERS: Mapping[str, shapes.Reader] = {
    "threshold": strategy_reader.of(strategies.Threshold),
    "cpu_burst": strategy_reader.of(strategies.CpuBurst),
    "system": strategy_reader.of(strategies.System),
    "colocation": colocation.read,
}
_CLASS = strategy_reader.of(strategies.ClassQos)


def _policies(
    *, cpu: str = nodeslo.DEFAULTS.cpu_policy, network: str = nodeslo.DEFAULTS.network_policy
) -> tuple[str, str]:
    return cpu, network


_POLICIES = shapes.record(
    _policies,
    cpu=("cpuPolicy", shapes.choice("groupIdentity", "coreSched")),
    network=("netQOSPolicy", shapes.choice("tc", "terway-qos")),
)


_QOS = shapes.record(
    dict[str, object],
    policies=("policies", _POLICIES),
    **{ours: (theirs, _CLASS) for ours, theirs in nodeslo.KEYS.items()},
)

#: Processes outside of any pod, by cgroup, are workloads of this namespace.
_NAMESPACE = "host-application"
_BASES = {
    "CgroupRoot": "",
    "Kubepods": "kubepods",
    "KubepodsBurstable": "kubepods/burstable",
    "KubepodsBesteffort": "kubepods/besteffort",
}


def _place(*, base: str = "", parent: str = "", relative: str = "") -> str:
    return posixpath.join(_BASES[base] if base else "", parent.strip("/"), relative.strip("/"))


_PLACE = shapes.record(
    _place,
    base=("base", shapes.choice("", *_BASES)),
    parent=("parentDir", shapes.text),
    relative=("relativePath", shapes.text),
)
#: Where an application without a path is, by class.
_USUAL = {
    qos.Qos.LSE: "host-latency-sensitive/",
    qos.Qos.LSR: "host-latency-sensitive/",
    qos.Qos.LS: "host-latency-sensitive/",
    qos.Qos.BE: "host-best-effort/",
}


def _named(value: object, problems: list[str]) -> str:
    text = shapes.text(value, problems)
    if not text or "/" in text or not cgroup.is_plain(text):
        raise ValueError(f"{shapes.shown(text)} is not a name")
    return text


def _application(
    *,
    name: str,
    priority: str = "",
    qos_class: str = "",
    place: str | None = None,
    rest: None = None,
) -> nodeslo.HostApplication:
    del rest
    complaints: list[str] = []
    kind = classes.raw_qos({classes.QOS_LABEL: qos_class}, complaints)
    band = qos.Band.labelled(priority)
    group = place or _USUAL.get(kind, "") + name if kind else place or name
    if not cgroup.is_plain(group):
        complaints.append(f"{shapes.shown(group)} is not a plain cgroup path")
    if complaints:
        raise ValueError(complaints[0])
    return nodeslo.HostApplication(name=name, group=group, qos=kind, band=band)


_APPLICATION = shapes.record(
    _application,
    name=("name", _named),
    priority=("priority", shapes.text),
    qos_class=("qos", shapes.text),
    place=("cgroupPath", _PLACE),
    rest=("strategy", lambda _value, _problems: None),
)
_APPLICATIONS = shapes.listing(_APPLICATION)


def decode(
    body: Mapping[str, object],
    *,
    source: str = "NodeSLO",
    where: str = "NodeSLO",
    before: Mapping[str, object] | None = None,
) -> nodeslo.NodeSlo:
    """The strategies in force under this object; ``before``: the words that were until now."""
    problems: list[str] = []
    meta = objects.metadata(body)
    slo = spec(shapes.find(body, "spec"), source, problems, before=before)
    revision, uid = (str(meta.get(key) or "") for key in ("resourceVersion", "uid"))
    culprit = f"{where} {shapes.plain(meta['name'])}" if meta.get("name") else where
    return replace(
        slo,
        revision=revision,
        uid=uid,
        problems=tuple(f"{culprit}: {problem}" for problem in problems),
    )


def spec(
    value: object,
    source: str,
    problems: list[str],
    *,
    before: Mapping[str, object] | None = None,
    broken: Iterable[str] = (),
) -> nodeslo.NodeSlo:
    """Merge a spec over the defaults; ``broken``: sections with unreadable text."""
    complaints = shapes.Problems()
    complaints.unread.extend((section_name,) for section_name in broken)
    body: Mapping[str, object] = {}
    try:
        body = shapes.mapping(value) if value is not None else {}
    except ValueError as error:
        complaints.append(f"spec: {error}")
        complaints.unread.extend((section_name,) for section_name in strategy_holding.SECTIONS)
    slo = _in_force(body, source, complaints)
    problems += complaints
    if not complaints.unread:
        return replace(slo, spec=body)
    body = strategy_holding.mended(body, complaints.unread, before)
    return replace(_in_force(body, source, []), spec=body, unread=frozenset(complaints.unread))


def _in_force(body: Mapping[str, object], source: str, problems: list[str]) -> nodeslo.NodeSlo:
    def section(key: str, reader: shapes.Reader) -> Any:
        return shapes.guarded(reader, shapes.find(body, key), key, problems)

    qos_said = section(strategy_holding.CLASSES, _QOS)
    classes_said = qos_said if isinstance(qos_said, dict) else {}
    cpu_policy, network_policy = classes_said.get("policies") or _policies()
    base = nodeslo.DEFAULTS
    applications = section("hostApplications", _APPLICATIONS)
    in_force: dict[str, Any] = {
        name: strategies.overlay(getattr(base, name), section(key, _READERS[name]))
        for name, key in nodeslo.SECTIONS.items()
    }
    return nodeslo.NodeSlo(
        source=source,
        classes={
            name: nodeslo.in_force(name, classes_said.get(name) or strategies.ClassQos())
            for name in nodeslo.KEYS
        },
        cpu_policy=cpu_policy,
        network_policy=network_policy,
        applications=applications if isinstance(applications, tuple) else (),
        **in_force,
    )


def application_pods(applications: tuple[nodeslo.HostApplication, ...]) -> tuple[pod.Pod, ...]:
    """The host applications as workloads; of two with one name the first counts."""
    by_name: dict[str, pod.Pod] = {}
    for application in applications:
        kind = application.qos or qos.Qos.LS
        by_name.setdefault(
            application.name,
            pod.Pod(
                uid=f"{_NAMESPACE}/{application.name}",
                namespace=_NAMESPACE,
                name=application.name,
                qos=kind,
                raw_qos=application.qos,
                band=application.band or qos.Band.default_of(kind),
                source="host application",
                match=f"cgroup={application.group}",
            ),
        )
    return tuple(by_name.values())
