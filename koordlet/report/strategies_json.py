"""The strategies of the cluster as flat keys with their origins. Pure.

Covers: every value of a NodeSLO in force, under the object's own keys, and who
says it.
Does not cover: the configuration file (``cli.config``), decoding (``workloads.nodeslo``).

A value that the object spells out as the default is shown as the default.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from koordlet.model import nodeslo, strategies, strategy_field

Row = tuple[str, object, str]


def rows(slo: nodeslo.NodeSlo) -> list[Row]:
    """Key, value and origin of everything that is in force."""
    listed: list[Row] = []
    for ours, theirs in nodeslo.SECTIONS.items():
        listed += _leaves(theirs, getattr(slo, ours), (getattr(nodeslo.DEFAULTS, ours),), slo)
    for ours, theirs in nodeslo.KEYS.items():
        class_qos = slo.classes.get(ours, nodeslo.NEUTRAL)
        # A section that is off is neutral; one that is on has the defaults of its class.
        usual = (nodeslo.DEFAULTS.classes[ours], nodeslo.CLASSES[ours])
        for part in dataclasses.fields(class_qos):
            key = f"resourceQOSStrategy.{theirs}.{part.name}QOS"
            listed += _leaves(
                key,
                getattr(class_qos, part.name),
                [getattr(below, part.name) for below in usual],
                slo,
            )
    return listed


def document(slo: nodeslo.NodeSlo) -> dict[str, object]:
    """Strategies as a document."""
    listed = rows(slo)
    return {
        "source": slo.source,
        "revision": slo.revision,
        "values": {key: value for key, value, _ in listed},
        "origins": {key: origin for key, _, origin in listed},
        "problems": list(slo.problems),
    }


def _leaves(
    prefix: str, strategy: object, usual: Sequence[object], slo: nodeslo.NodeSlo
) -> Iterator[Row]:
    """Set values of one section."""
    for field in dataclasses.fields(strategy):  # type: ignore[arg-type] # sections are dataclasses
        value = getattr(strategy, field.name)
        if value is not None:
            known = any(value == getattr(below, field.name) for below in usual)
            origin = "default" if known else slo.source or "default"
            yield f"{prefix}.{strategy_field.spelled(field.name)}", _plain(value), origin


def _plain(value: object) -> object:
    """Value as JSON types."""
    if isinstance(value, strategies.Share):
        return value.percent if value.bits is None else value.bits
    if dataclasses.is_dataclass(value):
        parts = ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))
        return {
            strategy_field.spelled(name): _plain(part) for name, part in parts if part is not None
        }
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return value
