"""A KubeletConfiguration: in place of our own file, or beside it to be compared with.

Covers: which keys count (evictions, cgroup root), where they go, that places of errors stay those
of the file; the thresholds of the kubelet that it configures.
Does not cover: the rest of that format, which is the kubelet's alone and is not judged here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from koordlet.config import file_source, places, yaml_source
from koordlet.model import duration, errors, grouppath, thresholds

KIND = "KubeletConfiguration"
_GROUP = "kubelet.config.k8s.io/"
_WHERE: places.Loc = ("policies", "node_pressure")
_ROOT = "cgroupRoot"
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
    """True if a document is a KubeletConfiguration."""
    if not isinstance(data, dict) or data.get("kind") != KIND:
        return False
    return str(data.get("apiVersion", "")).startswith(_GROUP)


def translated(document: yaml_source.Document, header: Mapping[str, str]) -> yaml_source.Document:
    """The document as one of ours."""
    data = document.data if isinstance(document.data, dict) else {}
    kept = {key: data[key] for key in _KEYS if data.get(key) is not None and not _unset(key, data)}
    made: dict[str, object] = {**header, "policies": {"node_pressure": kept}}
    top = _cgroup_root(data)
    if top:
        made["cgroups"] = {"root": top}
    return replace(
        document,
        data=made,
        values={_moved(loc): mark for loc, mark in document.values.items()},
        keys={_moved(loc): mark for loc, mark in document.keys.items()},
    )


def _unset(key: str, data: Mapping[str, object]) -> bool:
    """True for a zero period, which the kubelet treats as unset."""
    value = data[key]
    if key != "evictionPressureTransitionPeriod" or not isinstance(value, str):
        return False
    try:
        return duration.parse(value) == 0
    except ValueError:
        return False


def _cgroup_root(data: Mapping[str, object]) -> object:
    """Below which its driver puts all pods; what is no text is left to be refused there."""
    named = data.get(_ROOT)
    if not isinstance(named, str):
        return named
    try:
        driver = grouppath.Driver(data.get("cgroupDriver") or "cgroupfs")
    except ValueError:
        driver = grouppath.Driver.CGROUPFS
    above = grouppath.kubelet(named, driver).root.rpartition("/")[0]
    return f"/{above}" if above else None


def _moved(loc: places.Loc) -> places.Loc:
    if loc == (_ROOT,):
        return ("cgroups", "root")
    return (*_WHERE, *loc) if loc and loc[0] in _KEYS else loc


def texts(path: str) -> thresholds.Texts:
    """The thresholds that a file gives to the kubelet; ``ConfigError`` where it is none."""
    text = file_source.read(path)
    if text is None:
        raise errors.ConfigError("no such file", culprit=path, fix="name an existing file")
    document = yaml_source.parse(text, path)
    if not is_one(document.data) or not isinstance(document.data, dict):
        message = f"not a {KIND} of {_GROUP}…"
        raise errors.ConfigError(
            message, culprit=path, fix="name the file of the kubelet's --config"
        )
    data = document.data
    hard = data.get("evictionHard")
    texts = thresholds.Texts(
        hard=None if hard is None else _texts(hard),
        soft=_texts(data.get("evictionSoft")),
        soft_grace=_texts(data.get("evictionSoftGracePeriod")),
        merge_defaults=data.get("mergeDefaultEvictionSettings") is True,
    )
    try:
        thresholds.parse(texts)
    except thresholds.ThresholdError as error:
        where = ": ".join((path, *error.where))
        raise errors.ConfigError(str(error), culprit=where, fix="repair it there") from error
    return texts


def _texts(value: object) -> dict[str, str]:
    return (
        {str(key): str(amount) for key, amount in value.items()} if isinstance(value, dict) else {}
    )
