"""The ConfigMap ``slo-controller-config`` into strategies for one node.

Covers: the keys, cluster and node strategies, selectors.
Does not cover: what a strategy's fields are (``nodeslo``).

It serves where no controller makes NodeSLO objects out of it. Rules:
1. The first node strategy whose selector matches overlays the cluster strategy, key by key.
2. A key that does not parse, or a selector that is no selector, costs itself and is said; what it
   said before holds, as for a NodeSLO.
3. A NodeSLO of this node wins over it as a whole: the controller has made it from the same map.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from koordlet.kubeapi import shapes
from koordlet.model import nodeslo
from koordlet.workloads import colocation
from koordlet.workloads import nodeslo as slo

NAME = "slo-controller-config"
NAMESPACE = "koordinator-system"
_APPLICATIONS = "hostApplications"

#: Key of the map to the section of a NodeSLO's spec, or to that of ours beside them.
_SECTIONS = {
    "resource-threshold-config": "resourceUsedThresholdWithBE",
    "resource-qos-config": "resourceQOSStrategy",
    "cpu-burst-config": "cpuBurstStrategy",
    "system-config": "systemStrategy",
    "host-application-config": _APPLICATIONS,
    colocation.KEY: colocation.KEY,
}
#: The others have the strategy of the cluster on their first level.
_TWO_LEVELS = tuple(_SECTIONS.values())[:4]
_Object = Mapping[str, object]


def decode(
    body: object,
    labels: Mapping[str, str],
    where: str = NAME,
    *,
    before: Mapping[str, object] | None = None,
) -> nodeslo.NodeSlo:
    """The strategies for a node with these labels; ``before``: the words that were until now."""
    problems: list[str] = []
    broken: list[str] = []
    data: _Object = {}
    try:
        data = shapes.mapping(body) if body is not None else {}
    except ValueError as error:
        problems.append(f"data: {error}")
        broken += _SECTIONS.values()
    spec: dict[str, object] = {}
    for key, section in _SECTIONS.items():
        choose = _strategy if section in _TWO_LEVELS else _inline
        try:
            chosen = _chosen(data.get(key), labels, choose)
        except ValueError as error:
            problems.append(f"{key}: {error}")
            broken.append(section)
            continue
        if chosen is not None:
            spec[section] = chosen.get("applications") if section == _APPLICATIONS else chosen
    made = slo.spec(spec, NAME, problems, before=before, broken=broken)
    return replace(made, problems=tuple(f"{where}: {problem}" for problem in problems))


def _chosen(
    text: object,
    labels: Mapping[str, str],
    choose: Callable[[_Object, Mapping[str, str]], _Object],
) -> _Object | None:
    """The strategy of one key of the map; ``None`` where it is missing."""
    if text is None or text == "":
        return None
    if not isinstance(text, str):
        raise ValueError(f"expected a text, found {shapes.shown(text)}")
    return choose(shapes.mapping(shapes.parse(text)), labels)


def _strategy(body: _Object, labels: Mapping[str, str]) -> _Object:
    below = shapes.find(body, "clusterStrategy")
    above = _first(shapes.find(body, "nodeStrategies"), labels)
    return _over(shapes.mapping(below) if below is not None else {}, above)


def _inline(body: _Object, labels: Mapping[str, str]) -> _Object:
    return _over(body, _first(shapes.find(body, "nodeConfigs"), labels))


def _first(listed: object, labels: Mapping[str, str]) -> _Object:
    """The first entry whose selector matches, without the keys that only name it."""
    if listed is None:
        return {}
    if not isinstance(listed, list):
        raise ValueError(f"expected a list of node strategies, found {shapes.shown(listed)}")
    for entry in map(shapes.mapping, listed):
        selector = shapes.find(entry, "nodeSelector")
        if selector is not None and _matches(shapes.mapping(selector), labels):
            return {key: v for key, v in entry.items() if key not in ("name", "nodeSelector")}
    return {}


def _matches(selector: _Object, labels: Mapping[str, str]) -> bool:
    """A label selector; an empty one matches every node."""
    wanted = selector.get("matchLabels")
    equal = shapes.mapping(wanted) if wanted is not None else {}
    if any(labels.get(key) != value for key, value in equal.items()):
        return False
    listed = selector.get("matchExpressions")
    if listed is not None and not isinstance(listed, list):
        raise ValueError(f"matchExpressions: expected a list, found {shapes.shown(listed)}")
    return all(_holds(shapes.mapping(requirement), labels) for requirement in listed or ())


def _holds(requirement: _Object, labels: Mapping[str, str]) -> bool:
    key, operator = str(requirement.get("key")), requirement.get("operator")
    listed = requirement.get("values")
    values = listed if isinstance(listed, list) else []
    match operator:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case _:
            raise ValueError(f"matchExpressions: {shapes.shown(operator)} is not an operator")


def _over(below: _Object, above: _Object) -> _Object:
    """Merge the overriding values key by key, also in nested objects."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            merged[key] = _over(old, value)
        elif value is not None:
            merged[key] = value
    return merged
