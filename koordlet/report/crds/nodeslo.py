"""NodeSLO of ``slo.koordinator.sh``: what the control plane wants of a node's quality of service.

Covers: the sections; types of their fields, from the table of strategies.
Does not cover: defaults and bounds (the table has them, ``workloads.nodeslo`` applies them): an
API server that filled in defaults would make every value look as if somebody had chosen it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, create_model

from koordlet.model import nodeslo, strategies, strategy_field
from koordlet.report.crds import fields

_FORMS: Mapping[strategy_field.Form, Any] = {
    "number": float,
    "switch": bool,
    "word": str,
    "text": str,
    "amount": fields.Quantity,
    "share": fields.IntOrString,
    "switches": dict[str, bool],
}


def _model(strategy: type) -> Any:
    """Model of a strategy as objects about nodes say it."""
    known = strategy_field.rows(strategy)
    columns: dict[str, Any] = {
        strategy_field.key(strategy, name): (
            _type(row) | None,
            Field(default=None, description=row.doc or None),
        )
        for name, row in known.items()
        if row.only != "pod"
    }
    return create_model(
        f"{strategy.__name__}Schema", __base__=fields.Open, __doc__=strategy.__doc__, **columns
    )


def _type(row: strategy_field.StrategyField) -> Any:
    if row.form == "whole":
        return fields.Int32 if row.low == -strategy_field.INT32 else fields.Int64
    if row.form == "part":
        return _model(row.of)
    return list.__class_getitem__(_model(row.of)) if row.form == "parts" else _FORMS[row.form]


class PoliciesSchema(fields.Open):
    """Mechanisms that enforce the settings."""

    cpu_policy: str | None = None
    net_qos_policy: str | None = Field(default=None, alias="netQOSPolicy")


def _qos() -> Any:
    model = _model(strategies.ClassQos)
    columns: dict[str, Any] = dict.fromkeys(nodeslo.KEYS.values(), (model | None, None))
    columns["policies"] = (PoliciesSchema | None, None)
    return create_model(
        "QosStrategy", __base__=fields.Open, __doc__="Settings by QoS class.", **columns
    )


class CgroupPath(fields.Open):
    """Cgroup path of a host application."""

    base: Literal[
        "CgroupRoot", "Kubepods", "KubepodsBurstable", "KubepodsBesteffort", "KubepodsGuaranteed"
    ] | None = None  # fmt: skip
    parent_dir: str | None = None
    relative_path: str | None = None


class HostApplicationSchema(fields.Open):
    """A host application (outside Kubernetes)."""

    name: str | None = None
    priority: str | None = None
    qos: str | None = None
    cgroup_path: CgroupPath | None = None
    strategy: fields.Free | None = None


def _spec() -> Any:
    """Model of the desired state; the ConfigMap alone has a strategy of co-location."""
    columns: dict[str, Any] = {
        key: (_model(type(getattr(nodeslo.DEFAULTS, name))) | None, None)
        for name, key in nodeslo.SECTIONS.items()
        if name != "colocation"
    }
    columns["resourceQOSStrategy"] = (_qos() | None, None)
    columns["extensions"] = (fields.Free | None, None)
    columns["hostApplications"] = (list[HostApplicationSchema] | None, None)
    return create_model(
        "NodeSLOSpecSchema", __base__=fields.Open, __doc__="Desired QoS settings.", **columns
    )


_COLUMNS: dict[str, Any] = {"spec": (_spec() | None, None), "status": (fields.Free | None, None)}
NodeSLO = create_model(
    "NodeSLO",
    __base__=fields.Closed,
    __doc__="Desired quality-of-service settings of a node.",
    **_COLUMNS,
)
