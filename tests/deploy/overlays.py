"""What each overlay becomes when it is built, and the agent in it.

Covers: building, questions about the agent. Does not cover: what it must say (the tests).
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from tests.deploy.documents import DEPLOY
from tests.kit import kustomize

BUILT = sorted(
    path.parent
    for path in DEPLOY.rglob("kustomization.yaml")
    if path.parent.parent.name != "components"
)

COMPONENTS = sorted(path.name for path in (DEPLOY / "components").iterdir())


@functools.cache
def built(folder: Path) -> tuple[dict[str, Any], ...]:
    """Its manifests."""
    return tuple(kustomize.build(folder))


def overlay_of(component: str) -> Path:
    """The overlay that is the agent with this component and no other."""
    folder = DEPLOY / "overlays" / component
    return folder if (folder / "kustomization.yaml").exists() else folder / "agent"


def manifest(manifests: tuple[dict[str, Any], ...], kind: str, name: str) -> dict[str, Any]:
    """The manifest of that kind and name."""
    (only,) = (o for o in manifests if (o["kind"], o["metadata"]["name"]) == (kind, name))
    return only


def agent(manifests: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The agent's pod and its container."""
    pod = manifest(manifests, "DaemonSet", "koordlet")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    return pod, container


def variables(container: dict[str, Any]) -> dict[str, str]:
    """The environment as the kubelet makes it; what a cluster fills in has a made-up value."""
    known: dict[str, str] = {}
    for each in container["env"]:
        value = str(each.get("value", "192.0.2.7"))
        for name, text in known.items():
            value = value.replace(f"$({name})", text)
        known[each["name"]] = value
    return known
