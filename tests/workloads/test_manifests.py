"""What kubectl prints is taken whole: pods, node, strategies, usage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from koordlet.model import errors
from koordlet.workloads import manifests
from tests.kit import node_slos, pods
from tests.kubeapi import test_nodemetric
from tests.workloads import test_nodes, test_sloconfig

NODE = {"kind": "Node", **test_nodes.OBJECT}
SLO = {"kind": "NodeSLO", **node_slos.OBJECT}
METRIC = {"kind": "NodeMetric", **test_nodemetric.OBJECT}
CONFIG = {
    "kind": "ConfigMap",
    "metadata": {"name": "slo-controller-config"},
    "data": {"resource-threshold-config": json.dumps(test_sloconfig.THRESHOLD)},
}
POD = {"kind": "Pod", **pods.pod()}


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_everything_in_one_file(tmp_path: Path, form: str) -> None:
    """A List in JSON, or documents in YAML; the NodeSLO wins over the ConfigMap."""
    objects = [POD, NODE, SLO, METRIC, CONFIG]
    path = tmp_path / "objects"
    path.write_text(
        json.dumps({"kind": "List", "items": objects})
        if form == "json"
        else yaml.safe_dump_all(objects)
    )
    loaded = manifests.load(str(path))

    assert [pod.key for pod in loaded.pods] == ["shop/web-1"]
    assert loaded.node is not None
    assert loaded.slo is not None
    assert loaded.metric is not None
    assert (loaded.node.name, loaded.slo.source) == ("n1", "NodeSLO")
    assert loaded.metric.pods == {"a/b": {"cpu": 100}}


def test_the_config_map_alone() -> None:
    """It counts where there is no NodeSLO; another ConfigMap is not used."""
    collected = manifests.collect([CONFIG, {"kind": "ConfigMap"}], "f")

    assert collected.slo is not None
    assert (
        collected.slo.threshold.cpu_suppress_threshold_percent,
        collected.slo.threshold.memory_evict_threshold_percent,
    ) == (60, 80)
    assert collected.warnings == ("f: 1 of kind ConfigMap not used",)


def test_one_uid_twice() -> None:
    """The later document counts; a pod that has ended holds nothing."""
    ended = {"kind": "Pod", **pods.pod(2, status__phase="Succeeded")}
    again = {"kind": "Pod", **pods.pod(1, metadata__name="other")}
    collected = manifests.collect([POD, again, ended], "f")

    assert [pod.key for pod in collected.pods] == ["shop/other"]
    assert len(collected.warnings) == 1


def test_what_is_no_object_is_an_error_with_its_place() -> None:
    """The operator sees which document: this is the wrong file."""
    with pytest.raises(errors.ConfigError, match="document 1"):
        manifests.collect([3], "f")


@pytest.mark.parametrize("item", [3, None, [], {"kind": "Pod"}, {"kind": "Pod", "metadata": {}}])
def test_an_item_that_cannot_be_used_costs_itself(item: object) -> None:
    """A warning says which one; the pod behind it counts."""
    collected = manifests.collect([{"kind": "List", "items": [item, POD]}], "f")

    assert [pod.key for pod in collected.pods] == ["shop/web-1"]
    (warning,) = collected.warnings
    assert warning.startswith("f: document 1: items[0]: ")
    assert warning.endswith("it is ignored")


def test_a_device_without_an_end_is_not_read_to_it() -> None:
    """What does not tell its size is read up to the limit, and refused like any file beyond it."""
    with pytest.raises(errors.ConfigError, match="larger than 64 MiB"):
        manifests.load("/dev/zero")
