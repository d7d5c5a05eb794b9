"""Reservations as their authors write them, and what the simulation makes of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from koordlet.kubeapi import manifests
from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.sim import simulation
from tests.kit.clusters import Body

FOLDER = Path(__file__).parents[2] / "fixtures/reservations"
NOW = 1_700_000_000.0


def reservation(name: str, *, owners: Any = None, meta: Body | None = None, **more: Any) -> Body:
    """For pods with ``app=web``; ``cpu``, ``memory`` and ``requests`` are reserved."""
    asked = dict(more.pop("requests", {}))
    asked |= {key: more.pop(key) for key in ("cpu", "memory") if key in more}
    inner = {"containers": [{"name": "c", "resources": {"requests": asked}}]}
    inner |= more.pop("pod", {})
    status = more.pop("status", {})
    if more.get("on"):
        status = {"phase": "Available", "nodeName": more.pop("on"), **status}
    meant = [{"labelSelector": {"matchLabels": {"app": "web"}}}] if owners is None else owners
    return {
        "apiVersion": "scheduling.koordinator.sh/v1alpha1",
        "kind": "Reservation",
        "metadata": {"name": name, "uid": f"uid-{name}", **(meta or {})},
        "spec": {
            "template": {"metadata": more.pop("template_meta", {}), "spec": inner},
            "owners": meant,
            **more,
        },
        "status": status,
    }


def affinity(**body: Any) -> Body:
    """The annotation by which a pod demands a reservation."""
    return {"scheduling.koordinator.sh/reservation-affinity": json.dumps(body)}


def drawn(name: str) -> Body:
    """The annotation of a pod that draws on a reservation."""
    value = json.dumps({"name": name, "uid": f"uid-{name}"})
    return {"scheduling.koordinator.sh/reservation-allocated": value}


def tried(*bodies: Body, now: float = NOW, config: Any = None) -> Body:
    """The document of a simulation, and its warnings as ``warnings``."""
    loaded = inventory.load(bodies, config.deciding if config is not None else ())
    document = simulation.Simulation(loaded, config, scores=True, now=now).run().document()
    return {**document, "warnings": loaded.warnings}


def drew(*bodies: Body, now: float = NOW) -> dict[str, tuple[str, str | None]]:
    """Pod to node and reservation, of those that were placed."""
    placements = tried(*bodies, now=now)["placements"]
    return {
        placement["pod"].removeprefix("d/"): (placement["node"], placement["reservation"])
        for placement in placements
    }


def states(*bodies: Body, now: float = NOW) -> dict[str, Body]:
    """Reservations by name."""
    return {body["name"]: body for body in tried(*bodies, now=now)["reservations"]}


def message(pod: str, *bodies: Body) -> str:
    """Why a pod is pending: what nodes say, without reservations and preemption."""
    return f"{_pending(pod, *bodies).partition('. ')[0].removesuffix('.')}."


def counted(pod: str, *bodies: Body) -> str:
    """What is said of reservations in it."""
    return _pending(pod, *bodies).partition(". ")[2].partition(", no new claims")[0]


def _pending(pod: str, *bodies: Body) -> str:
    pending = tried(*bodies)["pending"]
    [messages] = [entry["message"] for entry in pending if entry["pod"] == f"d/{pod}"]
    return str(messages)


def manual(*names: str) -> list[Body]:
    """Objects of the manual, by the names of their files."""
    return [dict(body) for name in names for body in manifests.load(str(FOLDER / f"{name}.yaml"))]
