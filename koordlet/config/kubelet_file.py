"""A KubeletConfiguration in place of our own file: its eviction keys, as they are.

Covers: which keys count, where they go, that places of errors stay those of the file.
Does not cover: the rest of that format, which is the kubelet's alone and is not judged here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from koordlet.config import places, yaml_source
from koordlet.model import duration

KIND = "KubeletConfiguration"
_GROUP = "kubelet.config.k8s.io/"
_WHERE: places.Loc = ("policies", "node_pressure")
_KEYS = (
    "evictionHard",
    "evictionSoft",
    "evictionSoftGracePeriod",
    "evictionMinimumReclaim",
    "evictionPressureTransitionPeriod",
    "evictionMaxPodGracePeriod",
    "mergeDefaultEvictionSettings",
    "enforceNodeAllocatable",
    "localStorageCapacityIsolation",
)


def is_one(data: object) -> bool:
    """Whether a document is the kubelet's."""
    if not isinstance(data, dict) or data.get("kind") != KIND:
        return False
    return str(data.get("apiVersion", "")).startswith(_GROUP)


def translated(document: yaml_source.Document, header: Mapping[str, str]) -> yaml_source.Document:
    """The document as one of ours."""
    data = document.data if isinstance(document.data, dict) else {}
    kept = {key: data[key] for key in _KEYS if data.get(key) is not None and not _unset(key, data)}
    return replace(
        document,
        data={**header, "policies": {"node_pressure": kept}},
        values={_moved(loc): mark for loc, mark in document.values.items()},
        keys={_moved(loc): mark for loc, mark in document.keys.items()},
    )


def _unset(key: str, data: Mapping[str, object]) -> bool:
    """The kubelet takes a period of nothing as one that nobody set."""
    value = data[key]
    if key != "evictionPressureTransitionPeriod" or not isinstance(value, str):
        return False
    try:
        return duration.parse(value) == 0
    except ValueError:
        return False


def _moved(loc: places.Loc) -> places.Loc:
    return (*_WHERE, *loc) if loc and loc[0] in _KEYS else loc
