"""One pod of Kubernetes becomes one pod of ours, whatever is wrong with it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from koordlet.model import cpuset, pod, qos, resources
from koordlet.workloads import poddecode
from tests.kit import pods


def decode(body: dict[str, Any]) -> pod.Pod:
    """From bytes, as from a kubelet."""
    return poddecode.from_bytes(json.dumps(body).encode(), "kubelet", "here")


def test_a_plain_pod() -> None:
    """Identity, classes, priority, phase, amounts and the container are all there."""
    decoded = decode(pods.pod())

    assert (decoded.key, decoded.node, decoded.source) == ("shop/web-1", "n1", "kubelet")
    assert (decoded.qos, decoded.raw_qos, decoded.kube_qos) == (
        qos.Qos.LS,
        qos.Qos.LS,
        qos.KubeQos.BURSTABLE,
    )
    assert (decoded.priority, decoded.band, decoded.phase) == (
        9100,
        qos.Band.PROD,
        pod.Phase.RUNNING,
    )
    assert decoded.requests == {"cpu": 500, "memory": 256 << 20}
    assert decoded.limits == {"cpu": 1000, "memory": 512 << 20}
    (container,) = decoded.containers
    assert (container.runtime, container.id, container.running) == ("containerd", "ab" * 32, True)
    assert decoded.created == 1767225600.0
    assert decoded.problems == ()


def test_objects_and_bytes_say_the_same() -> None:
    """A pod from a manifest is decoded like one from a kubelet."""
    assert decode(pods.pod()) == poddecode.from_object(pods.pod(), "kubelet", "here")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"metadata__annotations": {"kubernetes.io/config.mirror": "hash"}}, ("hash", True)),
        (
            {
                "metadata__annotations": {
                    "kubernetes.io/config.source": "file",
                    "kubernetes.io/config.hash": "hash",
                }
            },
            ("hash", True),
        ),
        (
            {"metadata__annotations": {"kubernetes.io/config.source": "api"}, "metadata__uid": "u"},
            ("u", False),
        ),
        ({"metadata__uid": None}, ("shop/web-1", False)),
    ],
)
def test_a_static_pod_has_the_uid_of_its_manifest(
    changes: dict[str, Any], expected: tuple[str, bool]
) -> None:
    """Mirror and original are one pod, known by what names its cgroup."""
    decoded = decode(pods.pod(**changes))

    assert (decoded.uid, decoded.static) == expected


def test_a_hash_that_the_api_server_tells_is_nobodys() -> None:
    """Anybody may write it; what calls itself a mirror and is none, the kubelet deletes."""
    notes = {"kubernetes.io/config.source": "file", "kubernetes.io/config.hash": "hash"}
    body = pods.pod(metadata__annotations=notes, metadata__uid="u")
    decoded = poddecode.from_object(body, "cluster", "here")

    assert (decoded.uid, decoded.static) == ("u", False)


def test_a_pod_without_containers_or_status_is_pending() -> None:
    """What a pod does not say is unknown, not wrong."""
    decoded = decode({"metadata": {"name": "bare", "uid": "u"}})

    assert (
        decoded.phase,
        decoded.containers,
        decoded.requests,
        decoded.problems,
    ) == (pod.Phase.PENDING, (), {}, ())
    assert qos.Qos.BE is decoded.qos
    assert decoded.raw_qos is None


@pytest.mark.parametrize(
    ("resize", "cpu"),
    [
        ({}, 2000),
        (
            {"conditions": [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]},
            2000,
        ),
        (
            {
                "conditions": [
                    {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
                ]
            },
            900,
        ),
        ({"resize": "Infeasible"}, 900),
    ],
)
def test_a_resize_counts_the_larger_until_it_is_infeasible(
    resize: dict[str, Any], cpu: int
) -> None:
    """Spec, allocated and in force: the largest counts; an infeasible wish does not."""
    body = pods.pod()
    body["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "2"}, "limits": {"cpu": "3"}}
    body["status"]["containerStatuses"][0] |= {
        "allocatedResources": {"cpu": "900m"},
        "resources": {"requests": {"cpu": "800m"}, "limits": {"cpu": "1"}},
    }
    body["status"] |= resize
    decoded = decode(body)

    assert cpu == decoded.requests["cpu"]
    assert decoded.limits["cpu"] == 1000


def test_init_sidecar_and_ephemeral_containers_are_told_apart() -> None:
    """An init container that stays is a sidecar; an ephemeral one asks for nothing."""
    asks = {"resources": {"requests": {"cpu": "1"}}}
    decoded = decode(
        pods.pod(
            spec__initContainers=[
                {"name": "a", **asks},
                {"name": "b", "restartPolicy": "Always", **asks},
            ],
            spec__ephemeralContainers=[{"name": "debug", **asks}],
        )
    )

    kinds = {container.name: container.kind for container in decoded.containers}
    assert kinds == {
        "a": pod.Kind.INIT,
        "b": pod.Kind.SIDECAR,
        "nginx": pod.Kind.REGULAR,
        "debug": pod.Kind.EPHEMERAL,
    }
    assert decoded.requests["cpu"] == 1500


def test_batch_resources_come_from_spec_or_annotation() -> None:
    """The deprecated name is the same resource; the annotation fills what the spec lacks."""
    body = pods.annotated(
        "node.koordinator.sh/extended-resource-spec",
        '{"containers":{"nginx":{"requests":{"kubernetes.io/batch-memory":"1Gi"}}}}',
    )
    body["spec"]["containers"][0]["resources"] = {"requests": {"koordinator.sh/batch-cpu": 1500}}
    decoded = decode(body)

    assert decoded.requests == {resources.BATCH_CPU: 1500, resources.BATCH_MEMORY: 1 << 30}


def test_what_does_not_fit_is_said_and_the_rest_stays() -> None:
    """Wrong types cost the part that they are in."""
    body = pods.pod(
        spec__priority="high", metadata__labels={"a": 1, "koordinator.sh/qosClass": "X"}
    )
    body["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "lots"
    decoded = decode(body)

    assert decoded.limits == {"memory": 512 << 20}
    assert decoded.priority is None
    assert decoded.labels["a"] == "1"
    joined = "\n".join(decoded.problems)
    for culprit in ("$.spec.priority", "label a", "'X' is not a QoS class", "lots"):
        assert culprit in joined


@pytest.mark.parametrize("body", [{}, {"metadata": {}}, {"metadata": {"name": 3}}, [], None, 7])
def test_a_pod_without_a_name_is_refused(body: object) -> None:
    """The error names the place."""
    with pytest.raises(ValueError, match="here: "):
        poddecode.from_bytes(json.dumps(body).encode(), "kubelet", "here")


@pytest.mark.parametrize("text", ["", " ", ",", "\\n"])
def test_a_list_without_any_cpu_grants_none(text: str) -> None:
    """It is as if it were missing: an empty grant would be refused, and nothing chosen here."""
    key = "scheduling.koordinator.sh/resource-status"
    decoded = decode(pods.annotated(key, f'{{"cpuset":"{text}"}}'))

    assert decoded.cpus is None
    assert decoded.problems == ()


def test_the_grant_of_a_scheduler_is_the_pods_cpus() -> None:
    """``resource-status`` names them."""
    decoded = decode(
        pods.annotated("scheduling.koordinator.sh/resource-status", '{"cpuset":"0-3"}')
    )

    assert cpuset.CPUSet.parse("0-3") == decoded.cpus


@given(body=pods.broken())
def test_no_pod_raises_anything_but_a_value_error(body: Any) -> None:
    """However a pod is broken, it is decoded with problems, or refused."""
    try:
        decoded = poddecode.from_object(body, "kubelet", "here")
    except ValueError:
        return
    assert all(value >= 0 for value in (*decoded.requests.values(), *decoded.limits.values()))
    assert decoded.name


@pytest.mark.parametrize(
    ("status", "expected", "problems"),
    [
        ({"podIP": "10.0.0.7"}, ("10.0.0.7",), 0),
        ({"podIP": "10.0.0.7", "podIPs": [{"ip": "10.0.0.7"}]}, ("10.0.0.7",), 0),
        ({"podIPs": [{"ip": "10.0.0.7"}, {"ip": "FD00::7"}]}, ("10.0.0.7", "fd00::7"), 0),
        ({"podIPs": [{"ip": "10.0.0.7"}, {"ip": "10.0.0.777"}]}, ("10.0.0.7",), 1),
        ({"podIPs": [{}], "podIP": ""}, (), 0),
        ({"podIPs": None, "podIP": None}, (), 0),
    ],
)
def test_addresses(status: dict[str, Any], expected: tuple[str, ...], problems: int) -> None:
    """Both protocols, each once, in one spelling; what is none costs that one."""
    body = pods.pod()
    body["status"].update(status)
    body["spec"]["hostNetwork"] = True
    decoded = decode(body)

    assert (expected, True) == (decoded.addresses, decoded.host_network)
    assert problems == len(decoded.problems)


def test_containers_name_the_objects_of_their_claims() -> None:
    """By the object's name, or that of one made from a template; what is not there yet is left."""
    body = pods.pod()
    body["spec"]["resourceClaims"] = [
        {"name": "own", "resourceClaimName": "db"},
        {"name": "made", "resourceClaimTemplateName": "t"},
        {"name": "late", "resourceClaimTemplateName": "t"},
    ]
    body["status"]["resourceClaimStatuses"] = [{"name": "made", "resourceClaimName": "web-1-x"}]
    [container] = body["spec"]["containers"]
    container["resources"]["claims"] = [
        {"name": "own"},
        {"name": "made", "request": "cpus"},
        {"name": "late"},
        {"name": "unknown"},
    ]

    assert decode(body).containers[0].claims == ("db", "web-1-x/cpus")


def test_containers_have_the_requests_of_their_extended_resources() -> None:
    """A device class serves them: the scheduler's claim, and which of its requests are whose."""
    body = pods.pod()
    [container] = body["spec"]["containers"]
    mappings = [
        {"containerName": container["name"], "resourceName": "example.com/x", "requestName": "r-0"},
        {"containerName": "other", "resourceName": "example.com/x", "requestName": "r-1"},
    ]
    body["status"]["extendedResourceClaimStatus"] = {
        "resourceClaimName": "web-extended-resources-x",
        "requestMappings": mappings,
    }

    assert decode(body).containers[0].claims == ("web-extended-resources-x/r-0",)
