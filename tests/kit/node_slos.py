"""A NodeSLO that names something of every kind, right and wrong.

Covers: the object as JSON. Does not cover: what is read from it (the tests).
"""

from __future__ import annotations

from typing import Any

OBJECT: dict[str, Any] = {
    "metadata": {"name": "n1", "resourceVersion": "7"},
    "spec": {
        "resourceUsedThresholdWithBE": {"enable": True, "cpuSuppressThresholdPercent": 60},
        "resourceQOSStrategy": {
            "policies": {"cpuPolicy": "coreSched"},
            "beClass": {
                "cpuQOS": {"enable": True},
                "resctrlQOS": {"enable": True, "mbaPercent": 50},
                "networkQOS": {"enable": True, "ingressLimit": 30, "egressLimit": "1G"},
            },
            "lsClass": {"memoryQOS": {"enable": False, "minLimitPercent": 9}},
        },
        "cpuBurstStrategy": {"policy": "auto", "sharePoolThresholdPercent": 40},
        "systemStrategy": {"totalNetworkBandwidth": "10Gi", "schedFeatures": {"CORE": True}},
        "hostApplications": [
            {"name": "a", "priority": "koord-prod", "qos": "LS"},
            {
                "name": "b",
                "qos": "BE",
                "cgroupPath": {"base": "KubepodsBesteffort", "relativePath": "b/"},
            },
            {"name": "c", "cgroupPath": {"relativePath": "../etc"}},
        ],
    },
}
