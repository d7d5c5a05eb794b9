"""What kubectl prints is taken whole: pods, node, strategies, usage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from koordlet.model import errors
from koordlet.workloads import manifests
from tests.kit import pods
from tests.kubeapi import test_nodemetric
from tests.workloads import test_nodes, test_nodeslo, test_sloconfig

NODE = {"kind": "Node", **test_nodes.OBJECT}
SLO = {"kind": "NodeSLO", **test_nodeslo.OBJECT}
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
    where = tmp_path / "objects"
    where.write_text(
        json.dumps({"kind": "List", "items": objects})
        if form == "json"
        else yaml.safe_dump_all(objects)
    )
    found = manifests.load(str(where))

    assert [one.key for one in found.pods] == ["shop/web-1"]
    assert found.node is not None
    assert found.slo is not None
    assert found.metric is not None
    assert (found.node.name, found.slo.source) == ("n1", "NodeSLO")
    assert found.metric.pods == {"a/b": {"cpu": 100}}


def test_the_config_map_alone() -> None:
    """It counts where there is no NodeSLO; another ConfigMap is not used."""
    found = manifests.collect([CONFIG, {"kind": "ConfigMap"}], "f")

    assert found.slo is not None
    assert (
        found.slo.threshold.cpu_suppress_threshold_percent,
        found.slo.threshold.memory_evict_threshold_percent,
    ) == (60, 80)
    assert found.warnings == ("f: 1 of kind ConfigMap not used",)


def test_one_uid_twice() -> None:
    """The later document counts; a pod that has ended holds nothing."""
    ended = {"kind": "Pod", **pods.pod(2, status__phase="Succeeded")}
    again = {"kind": "Pod", **pods.pod(1, metadata__name="other")}
    found = manifests.collect([POD, again, ended], "f")

    assert [one.key for one in found.pods] == ["shop/other"]
    assert len(found.warnings) == 1


def test_what_is_no_object_is_an_error_with_its_place() -> None:
    """The operator sees which document: this is the wrong file."""
    with pytest.raises(errors.ConfigError, match="document 1"):
        manifests.collect([3], "f")


@pytest.mark.parametrize("item", [3, None, [], {"kind": "Pod"}, {"kind": "Pod", "metadata": {}}])
def test_an_item_that_cannot_be_used_costs_itself(item: object) -> None:
    """A warning says which one; the pod behind it counts."""
    found = manifests.collect([{"kind": "List", "items": [item, POD]}], "f")

    assert [one.key for one in found.pods] == ["shop/web-1"]
    (warning,) = found.warnings
    assert warning.startswith("f: document 1: items[0]: ")
    assert warning.endswith("it is ignored")


def test_a_device_without_an_end_is_not_read_to_it() -> None:
    """What does not tell its size is read up to the limit, and refused like any file beyond it."""
    with pytest.raises(errors.ConfigError, match="larger than 64 MiB"):
        manifests.load("/dev/zero")
