"""The strategies of the cluster, key by key, with who says them."""

from __future__ import annotations

import json

from koordlet.model import nodeslo
from koordlet.report import strategies_json
from koordlet.workloads import sloconfig

ARTICLE = {
    "resource-threshold-config": json.dumps(
        {
            "clusterStrategy": {"enable": True, "cpuSuppressThresholdPercent": 65},
            "nodeStrategies": [
                {
                    "nodeSelector": {"matchLabels": {"pool": "a"}},
                    "cpuEvictBESatisfactionLowerPercent": 20,
                }
            ],
        }
    ),
    "resource-qos-config": json.dumps(
        {
            "clusterStrategy": {
                "beClass": {
                    "resctrlQOS": {"enable": True, "MBAPercent": 30},
                    "blkioQOS": {
                        "enable": True,
                        "blocks": [{"name": "sda", "ioCfg": {"readBPS": 9}}],
                    },
                }
            }
        }
    ),
    "system-config": json.dumps({"clusterStrategy": {"watermarkScaleFactor": "much"}}),
}
NAME = "slo-controller-config"


def test_origins() -> None:
    """The map, its node's strategy over its cluster's, defaults below; keys as Go matches them."""
    slo = sloconfig.decode(ARTICLE, {"pool": "a"})
    origins = {key: (value, origin) for key, value, origin in strategies_json.rows(slo)}

    threshold, be = "resourceUsedThresholdWithBE", "resourceQOSStrategy.beClass"
    assert (True, slo.source) == origins[f"{threshold}.enable"]
    assert origins[f"{threshold}.cpuSuppressThresholdPercent"] == (65, "default")
    assert (20, slo.source) == origins[f"{threshold}.cpuEvictBESatisfactionLowerPercent"]
    assert (30, slo.source) == origins[f"{be}.resctrlQOS.mbaPercent"]
    assert origins[f"{be}.resctrlQOS.catRangeEndPercent"] == (30, "default")
    blocks = [{"name": "sda", "type": "device", "ioCfg": {"readBPS": 9}}]
    assert (blocks, slo.source) == origins[f"{be}.blkioQOS.blocks"]
    assert "systemStrategy.watermarkScaleFactor" not in origins


def test_the_document_is_json_and_says_what_is_wrong() -> None:
    """For programs: values, origins, problems."""
    document = json.loads(json.dumps(strategies_json.document(sloconfig.decode(ARTICLE, {}))))

    assert document["values"].keys() == document["origins"].keys()
    assert any("watermarkScaleFactor" in problem for problem in document["problems"])


def test_nobody_says_anything() -> None:
    """Without an object all of it is default."""
    assert {origin for _, _, origin in strategies_json.rows(nodeslo.DEFAULTS)} == {"default"}
