"""Tables, as ``kubectl get`` asks for them: columns of custom resources and of pods.

Covers: which columns a kind has, their cells. Does not cover: when one is asked for (``server``).

A server makes the columns of a custom resource from ``additionalPrinterColumns`` of its definition;
where there are none, name and age. A date is shown as the time since (table convertor of
apiextensions-apiserver).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from koordlet.kubeapi import kinds, objects
from koordlet.model import moment

Column = Mapping[str, Any]
_NAME: Column = {"name": "Name", "type": "string", "format": "name"}
_AGE: Column = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
_PODS: tuple[Column, ...] = (
    {"name": "Ready", "type": "string"},
    {"name": "Status", "type": "string", "jsonPath": ".status.phase"},
    {"name": "Restarts", "type": "string"},
    _AGE,
    {"name": "IP", "type": "string", "priority": 1, "jsonPath": ".status.podIP"},
    {"name": "Node", "type": "string", "priority": 1, "jsonPath": ".spec.nodeName"},
    {"name": "Nominated Node", "type": "string", "priority": 1, "jsonPath": ".status.nominated"},
    {"name": "Readiness Gates", "type": "string", "priority": 1},
)


def wanted(accept: str) -> bool:
    """Whether a client can read one."""
    return "as=Table" in accept and "v=v1" in accept


def table(kind: kinds.Kind, columns: list[Column] | None, document: Mapping[str, Any]) -> Any:
    """An object or a list as a table."""
    several = document.get("items", [document])
    chosen = _PODS if kind == kinds.PODS else tuple(columns or (_AGE,))
    heads = [
        {"description": "", "format": "", "priority": 0, **column} for column in (_NAME, *chosen)
    ]
    rows = [
        {
            "cells": [
                objects.text(body, "name"),
                *(_cell(kind, body, column) for column in chosen),
            ],
            "object": {
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": body["metadata"],
            },
        }
        for body in several
    ]
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": document["metadata"] if "items" in document else {},
        "columnDefinitions": heads,
        "rows": rows,
    }


def _cell(kind: kinds.Kind, body: Mapping[str, Any], column: Column) -> Any:
    value: Any = body
    for step in str(column.get("jsonPath", "")).strip(".").split("."):
        value = value.get(step) if isinstance(value, Mapping) and step else None
    if column["type"] == "date" and isinstance(value, str):
        return f"{max(0, int(time.time() - moment.parse(value)))}s"
    if kind == kinds.PODS and value is None:
        return {"Ready": "1/1", "Restarts": "0"}.get(column["name"], "<none>")
    return value
