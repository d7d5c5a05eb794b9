"""Templates of shared cards: read from a ConfigMap, matched by exact amounts, recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from koordlet.kubeapi import kinds
from koordlet.scheduler.allocation import gpu_templates
from koordlet.scheduler.framework import profile
from tests.kit import clusters, schedulers
from tests.kit.clusters import Body, node, pod
from tests.kit.devices import MEMORY, gpu, report

CORE, CPU = "huawei.com/npu-core", "huawei.com/npu-cpu"
SMALL = {CORE: "1", CPU: "1", MEMORY: "3Gi"}
HALF = {CORE: "4", CPU: "4", MEMORY: "12Gi"}
NAMES = {
    "node.koordinator.sh/gpu-vendor": "huawei",
    "node.koordinator.sh/gpu-model": "Ascend-310P",
}
TEXT = """
huawei-Ascend-310P:
  vir01: {huawei.com/npu-core: 1, huawei.com/npu-cpu: 1, koordinator.sh/gpu-memory: 3Gi}
  vir04: {huawei.com/npu-core: 4, huawei.com/npu-cpu: 4, koordinator.sh/gpu-memory: 12Gi}
other-model:
  half: {huawei.com/npu-core: 4, huawei.com/npu-cpu: 4, koordinator.sh/gpu-memory: 12Gi}
  same: {huawei.com/npu-core: 4, huawei.com/npu-cpu: 4, koordinator.sh/gpu-memory: 12Gi}
"""
NO_MATCH = "no matched GPU shared resource template"


def config_map(text: str = TEXT, **meta: str) -> Body:
    """The ConfigMap that lists templates."""
    names = {"namespace": "koordinator-system", "name": "gpu-shared-resource-templates"}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {**names, **meta},
        "data": {"data.yaml": text},
    }


def npus(name: str = "n") -> Body:
    """Two NPUs of 24 GiB on one PCIe switch."""
    room = {CORE: "8", CPU: "7", MEMORY: "24Gi", "koordinator.sh/gpu-memory-ratio": "100"}
    return report(name, *(gpu(minor, resources=room) for minor in range(2)))


def sharing(name: str, asked: Body) -> Body:
    """A pod that wants a share of a card."""
    return pod(name, requests={"koordinator.sh/gpu.shared": "1", **asked})


def told(*bodies: Body) -> list[Any]:
    """Minor and template of each placement."""
    placements = clusters.tried(*bodies)["placements"]
    parts = [each["devices"]["gpu"][0] for each in placements]
    return [
        (part["minor"], (part.get("extension") or {}).get("gpuSharedResourceTemplate"))
        for part in parts
    ]


def test_a_share_that_a_template_describes_is_recorded_with_its_name() -> None:
    """Of the vendor and model of the node; the amounts must be exactly those."""
    bodies = node("n", labels=NAMES), npus(), config_map()
    assert told(*bodies, sharing("a", HALF), sharing("b", SMALL)) == [(0, "vir04"), (1, "vir01")]
    odd = sharing("a", {**HALF, CORE: "5"})
    assert NO_MATCH in clusters.message("a", *bodies, odd)


def test_a_model_without_the_template_is_refused_for_good() -> None:
    """Other nodes have it."""
    other = node("n", labels={"node.koordinator.sh/gpu-vendor": "nvidia"})
    refusal = clusters.message("a", other, npus(), config_map(), sharing("a", HALF))
    assert refusal == f"0/1 nodes are available: 1 {NO_MATCH}."
    assert clusters.tried(other, npus(), config_map(), sharing("a", HALF))["preemptions"] == []


def test_several_templates_of_the_same_amounts_are_not_guessed() -> None:
    """The share is given, and nothing recorded."""
    labels = {**NAMES, "node.koordinator.sh/gpu-vendor": "other"}
    labels["node.koordinator.sh/gpu-model"] = "model"
    bodies = node("n", labels=labels), npus(), config_map(), sharing("a", HALF)
    assert told(*bodies) == [(0, None)]


def test_whole_cards_and_other_shares_need_no_template() -> None:
    """Only who asks for a share of the listed resources does."""
    whole = pod("a", requests={CORE: "8", "koordinator.sh/gpu-memory-ratio": "100"})
    assert told(node("n", labels=NAMES), npus(), whole) == [(0, None)]
    assert told(node("n"), report("n"), pod("a", requests={MEMORY: "5Gi"})) == [(0, None)]


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "7", "a: 7", "a: {b: 7}", "a: {b: {c: -1}}", "a: b: c", "--- {}\n--- {}"],
)
def test_a_config_map_that_cannot_be_read_has_no_templates(text: str) -> None:
    """Nobody matches anything then."""
    _, templates = gpu_templates.decode(config_map(text))
    assert gpu_templates.matching(templates, {"c": -1}) == {}


def test_the_source_is_the_peer_s_unless_the_arguments_name_another() -> None:
    """Only a named one is watched."""
    assert gpu_templates.source({}) == gpu_templates.TemplateSource()
    given = {"configMapName": "mine", "matchedResources": ["x"]}
    source = gpu_templates.source({"gpuSharedResourceTemplatesConfig": given})
    assert source == gpu_templates.TemplateSource(
        "koordinator-system", "mine", frozenset({"x"}), named=True
    )


async def test_pods_wait_for_the_config_map_that_the_configuration_names(ram: Path) -> None:
    """It is watched, and its arrival wakes them; another one changes nothing."""
    args = {"gpuSharedResourceTemplatesConfig": {"configMapName": "mine"}}
    served = {schedulers.NAME: profile.default(schedulers.NAME, {"DeviceShare": args})}
    async with schedulers.world(ram, over_http=False) as world:
        await world.store.create(kinds.DEVICES, npus())
        await world.node("n", labels=NAMES)
        await world.store.create(kinds.CONFIG_MAPS, config_map(name="other"))
        async with schedulers.scheduler(world.client, profiles=served):
            shared = {"koordinator.sh/gpu.shared": "1", **SMALL}
            await world.pod("a", requests=shared)
            assert NO_MATCH in await world.until_told("a")
            await world.store.create(kinds.CONFIG_MAPS, config_map(name="mine"))
            await world.until_placed("a")
