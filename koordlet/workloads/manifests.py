"""Kubernetes objects from a file, as kubectl prints them, into our own model.

Covers: JSON and YAML, ``List`` and several documents; Pods, and at most one Node, NodeSLO,
NodeMetric, ConfigMap ``slo-controller-config`` and the kubelet's ``/stats/summary``.
Does not cover: what is in an object (the decoders beside this module), watching a cluster.

Rules:
1. A broken annotation costs that annotation: the pod stays, with a problem that is shown.
2. A document that is no object is an error that names its place. An item of a List that is none,
   and a Pod of which nothing can be used (without a name, say), is left out with a warning.
3. Pods that have ended hold nothing and are left out. Kinds that we have no use for are skipped
   with a warning that counts them.
4. Of two pods with one UID the later document counts, with a warning.
5. A NodeSLO wins over the ConfigMap, as in a cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from koordlet.kubeapi import manifests as files
from koordlet.kubeapi import nodemetric as metrics
from koordlet.kubeapi import shapes
from koordlet.model import documents, errors, kubelet, nodemetric, nodeslo, observed, pod, snapshot
from koordlet.model.record import dataclass
from koordlet.workloads import nodes, poddecode, sloconfig
from koordlet.workloads import nodeslo as slo
from koordlet.workloads.kubelet import summary as summaries

_MAX_BYTES = 64 << 20

Object = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestContents:
    """Contents of a manifest file."""

    pods: tuple[pod.Pod, ...] = ()
    node: snapshot.NodeInfo | None = None
    slo: nodeslo.NodeSlo | None = None
    metric: nodemetric.NodeMetric | None = None
    #: The kubelet's ``/stats/summary``.
    summary: kubelet.Summary | None = None
    warnings: tuple[str, ...] = ()
    #: Those of them that cost an object (rule 2).
    left_out: tuple[str, ...] = ()

    def observed(self) -> observed.Observed:
        """Observation as if sources had listed the contents."""
        applications = self.slo.applications if self.slo is not None else ()
        return observed.Observed(
            pods=(*self.pods, *slo.application_pods(applications)),
            node=self.node,
            slo=self.slo,
            metric=self.metric,
            kubelet=None if self.summary is None else kubelet.Kubelet(summary=self.summary),
            problems=self.warnings,
        )


def load(path: str) -> ManifestContents:
    """Read a file; ``ConfigError`` when it is no set of objects."""
    return collect(files.read(path, _MAX_BYTES), path)


def parse(text: str, path: str) -> list[object]:
    """Parse a text; ``ConfigError`` if it is neither JSON nor YAML."""
    try:
        return documents.load(text)
    except ValueError as error:
        raise errors.ConfigError(str(error), culprit=path, fix=documents.FIX) from error


def collect(items: list[object], where: str) -> ManifestContents:
    """The objects, Lists unfolded, as our model."""
    pods: dict[str, pod.Pod] = {}
    single: dict[str, Object] = {}
    warnings: list[str] = []
    left_out: list[str] = []
    skipped: dict[str, int] = {}
    for place, body in files.unfold(items, where, left_out):
        kind = str(body.get("kind", ""))
        if not kind and isinstance(body.get("node"), dict) and isinstance(body.get("pods"), list):
            kind = _SUMMARY
        if kind == "Pod":
            try:
                read = poddecode.from_object(body, "manifest", place)
            except ValueError as error:
                left_out.append(f"{error}; it is ignored")
                continue
            if read.uid in pods:
                warnings.append(
                    f"{place}: UID {read.uid} occurs twice ({read.key}); the later one is used"
                )
            if read.active:
                pods[read.uid] = read
        elif kind in _SINGLE or (
            kind == "ConfigMap" and _map(body.get("metadata")).get("name") == sloconfig.NAME
        ):
            if kind in single:
                warnings.append(f"{place}: more than one {kind}; the first one is used")
            single.setdefault(kind, body)
        else:
            skipped[kind or "nothing"] = skipped.get(kind or "nothing", 0) + 1
    warnings += [
        f"{where}: {count} of kind {shapes.plain(kind)} not used" for kind, count in skipped.items()
    ]
    made = _assembled(tuple(pods.values()), single, [*left_out, *warnings])
    return replace(made, left_out=tuple(left_out))


#: What the kubelet answers has no kind.
_SUMMARY = "stats/summary"
_SINGLE = ("Node", "NodeSLO", "NodeMetric", _SUMMARY)


def _assembled(
    pods: tuple[pod.Pod, ...], single: Mapping[str, Object], warnings: list[str]
) -> ManifestContents:
    """Everything together; problems of the single objects become warnings."""
    node = nodes.decode(single["Node"]) if "Node" in single else None
    metric = metrics.decode(single["NodeMetric"]) if "NodeMetric" in single else None
    strategy: nodeslo.NodeSlo | None = None
    if "NodeSLO" in single:
        strategy = slo.decode(single["NodeSLO"])
    elif "ConfigMap" in single:
        labels = node.labels if node is not None else {}
        strategy = sloconfig.decode(_map(single["ConfigMap"].get("data")), labels)
    statistics = summaries.decode(single[_SUMMARY]) if _SUMMARY in single else None
    for value in (node, metric, strategy, statistics):
        warnings += value.problems if value is not None else ()
    return ManifestContents(
        pods=pods,
        node=node,
        slo=strategy,
        metric=metric,
        summary=statistics,
        warnings=tuple(warnings),
    )


def _map(value: object) -> Object:
    return cast("Object", value) if isinstance(value, dict) else {}
