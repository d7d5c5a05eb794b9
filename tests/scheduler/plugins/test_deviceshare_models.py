"""Nodes that give no shares of their GPUs, whatever is free."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kit import clusters
from tests.kit.clusters import node
from tests.kit.devices import asking, report

Body = dict[str, Any]
PREFIX = "node.koordinator.sh/gpu-"
ISOLATION = "koordinator.sh/gpu-isolation-provider"
WHOLE = {f"{PREFIX}vendor": "huawei", f"{PREFIX}model": "DUO"}


def config() -> Body:
    """Cards of one model are not divided."""
    args = {"gpuShareUnsupportedModels": [{"vendor": "huawei", "model": "DUO"}]}
    profile = {
        "schedulerName": "default-scheduler",
        "pluginConfig": [{"name": "DeviceShare", "args": args}],
    }
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }


@pytest.mark.parametrize(
    ("labels", "own", "share", "refused"),
    [
        ({**WHOLE, f"{PREFIX}model": "A"}, {}, 50, ""),
        ({**WHOLE, f"{PREFIX}vendor": "nvidia"}, {}, 50, ""),
        (WHOLE, {}, 100, ""),
        (WHOLE, {}, 50, 'model "DUO" of vendor "huawei" does not support GPU Share'),
        ({ISOLATION: "HAMi-core"}, {ISOLATION: "HAMi-core"}, 50, ""),
        ({}, {ISOLATION: "HAMi-core"}, 100, ""),
        (
            *({}, {ISOLATION: "HAMi-core"}, 50),
            "GPUIsolationProviderHAMICore not found on the node",
        ),
        ({ISOLATION: "HAMi-core"}, {}, 50, ""),
    ],
)
def test_shares_are_refused_by_model_and_isolation(
    labels: Body, own: Body, share: int, refused: str
) -> None:
    """Whole cards are given all the same."""
    incoming = asking("p", share)
    incoming["metadata"]["labels"] = own
    bodies = (node("n", labels=labels), report("n"), incoming)
    if refused:
        assert f"1 {refused}" in clusters.message("p", *bodies, config=config())
    else:
        assert clusters.places(*bodies, config=config()) == {"p": "n"}
