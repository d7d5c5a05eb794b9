"""Elastic quotas for tests: objects as a user writes them, and random trees."""

from __future__ import annotations

import json
import random
from typing import Any

from koordlet.kubeapi import elastic_quotas
from koordlet.kubeapi.elastic_quotas import ElasticQuota

Body = dict[str, Any]
KEY = "quota.scheduling.koordinator.sh/"


def quota(
    name: str,
    least: Body | None = None,
    most: Body | None = None,
    *,
    parent: str = "",
    weight: Body | None = None,
    lends: bool = True,
    is_parent: bool = False,
    namespace: str = "default",
    created: str = "2026-01-01T00:00:00Z",
    labels: Body | None = None,
    annotations: Body | None = None,
) -> Body:
    """An ElasticQuota object."""
    notes = dict(annotations or {})
    if weight is not None:
        notes[f"{KEY}shared-weight"] = json.dumps(weight)
    return {
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{namespace}-{name}",
            "creationTimestamp": created,
            "labels": {
                **({f"{KEY}parent": parent} if parent else {}),
                f"{KEY}is-parent": "true" if is_parent else "false",
                f"{KEY}allow-lent-resource": "true" if lends else "false",
                **(labels or {}),
            },
            "annotations": notes,
        },
        "spec": {"min": least or {}, "max": most or {}},
    }


def capacity_scheduling(scheduler: str, *more: str) -> Body:
    """A configuration whose profile has CapacityScheduling, and further plugins."""
    enabled = {"enabled": [{"name": name} for name in ("CapacityScheduling", *more)]}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": scheduler, "plugins": {"preFilter": enabled}}],
    }


def spec(
    name: str, least: Body | None = None, most: Body | None = None, **more: Any
) -> ElasticQuota:
    """The same, decoded."""
    return elastic_quotas.elastic_quota(quota(name, least, most, **more))


def amounts(chance: random.Random, most: int, names: tuple[str, ...]) -> dict[str, int]:
    """Random amounts of some of these names."""
    return {name: chance.randint(0, most) for name in names if chance.random() < 0.8}
