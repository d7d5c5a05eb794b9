"""Words, numbers and names of a pod that an API server refuses are named by their path."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.kubeapi import validation
from tests.kit import clusters

Body = dict[str, Any]


@pytest.mark.parametrize(
    "spec",
    [
        {"restartPolicy": "Never", "dnsPolicy": "None", "dnsConfig": {"nameservers": ["1.1.1.1"]}},
        {"hostname": "a-b", "nodeName": "a.b", "schedulingGates": [{"name": "x.io/y"}]},
        {"activeDeadlineSeconds": 1, "volumes": [{"name": "v"}, {"name": "w", "emptyDir": {}}]},
        {
            "containers": [
                {"name": "c", "volumeMounts": [{"name": "v"}], "env": [{"name": "a.b"}]}
            ],
            "initContainers": [{"name": "i", "imagePullPolicy": "Always"}],
            "volumes": [{"name": "v", "hostPath": {"path": "/"}}],
        },
    ],
)
def test_what_an_api_server_takes_has_no_faults(spec: Body) -> None:
    """Words of each kind, and names that are there."""
    assert validation.faults({"kind": "Pod", "metadata": {"name": "p"}, "spec": spec}) == []


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        (
            {"restartPolicy": "Maybe"},
            "spec.restartPolicy: 'Maybe' is none of Always, OnFailure, Never",
        ),
        ({"dnsPolicy": "Maybe"}, "spec.dnsPolicy: 'Maybe' is none of ClusterFirst,"),
        ({"dnsPolicy": "None"}, "spec.dnsConfig.nameservers: must name one with dnsPolicy None"),
        ({"os": {"name": "plan9"}}, "spec.os.name: 'plan9' is none of linux, windows"),
        ({"hostname": "A_b"}, "spec.hostname: 'A_b' is not a DNS label"),
        ({"subdomain": "a.b"}, "spec.subdomain: 'a.b' is not a DNS label"),
        ({"nodeName": "A"}, "spec.nodeName: 'A' is not a DNS subdomain"),
        (
            {"schedulingGates": [{"name": "a b"}]},
            "spec.schedulingGates[0].name: 'a b' is not a key",
        ),
        ({"readinessGates": [{"conditionType": "-"}]}, "spec.readinessGates[0].conditionType: '-'"),
        ({"activeDeadlineSeconds": 0}, "spec.activeDeadlineSeconds: 0 is less than 1"),
        ({"containers": [{"name": "C"}]}, "spec.containers[0].name: 'C' is not a DNS label"),
        (
            {"containers": [{"name": "c"}], "initContainers": [{"name": "c"}]},
            "spec.initContainers[0].name: 'c' is there twice",
        ),
        ({"containers": [{"imagePullPolicy": "x"}]}, "spec.containers[0].imagePullPolicy: 'x' is"),
        ({"containers": [{"env": [{"name": "a=b"}]}]}, "spec.containers[0].env[0].name: 'a=b' is"),
        (
            {"containers": [{"volumeMounts": [{"name": "v"}]}], "volumes": [{"name": "w"}]},
            "spec.containers[0].volumeMounts[0].name: no volume is named 'v'",
        ),
        (
            {"containers": [{"volumeMounts": [{"name": {}}]}], "volumes": [{"name": []}]},
            "spec.containers[0].volumeMounts[0].name: no volume is named '{}'",
        ),
        ({"volumes": [{"name": "v"}, {"name": "v"}]}, "spec.volumes[1].name: 'v' is there twice"),
        (
            {"volumes": [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]},
            "spec.volumes[0]: is both emptyDir and hostPath",
        ),
        (
            {"affinity": clusters.affinity("podAffinity", "zone", weight=101)},
            "[0].weight: 101 is not from 1 to 100",
        ),
        (
            {"topologySpreadConstraints": [clusters.spread("z", maxSkew=0)]},
            "spec.topologySpreadConstraints[0].maxSkew: 0 is less than 1",
        ),
        (
            {"topologySpreadConstraints": [clusters.spread("z", minDomains=0)]},
            "spec.topologySpreadConstraints[0].minDomains: 0 is less than 1",
        ),
        (
            {"topologySpreadConstraints": [clusters.spread("z", "Maybe")]},
            "spec.topologySpreadConstraints[0].whenUnsatisfiable: 'Maybe' is none of DoNot",
        ),
    ],
)
def test_each_fault_is_named_by_its_path(spec: Body, fault: str) -> None:
    """One sentence for each, which says what would be right."""
    [problem] = validation.faults({"kind": "Pod", "metadata": {"name": "p"}, "spec": spec})

    assert fault in problem
