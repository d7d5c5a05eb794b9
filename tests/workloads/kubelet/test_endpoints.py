"""What the kubelet's endpoints say, and what they may say wrongly."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from koordlet.kubeapi import shapes
from koordlet.model import pod, surrogates
from koordlet.workloads.kubelet import configz, pods, summary
from tests.kit import pods as examples
from tests.kit.kubelet import server

PODS = (server.FIXTURES / "pods.json").read_bytes()
CONFIG = json.loads((server.FIXTURES / "configz.json").read_text())
SUMMARY = json.loads((server.FIXTURES / "summary.json").read_text())


def test_the_pods_of_a_node() -> None:
    """Classes, kinds of containers, amounts; nothing to complain about."""
    problems: list[str] = []
    found = {one.name: one for one in pods.PodListDecoder("kubelet").decode(PODS, problems)}

    assert problems == []
    assert found.keys() == {"web-1", "db-0", "job-0", "etcd-n1", "pinned-0"}
    assert (str(found["db-0"].cpus), found["db-0"].requests["cpu"]) == ("2-3", 2250)
    assert [one.kind for one in found["db-0"].containers] == [
        pod.Kind.INIT,
        pod.Kind.SIDECAR,
        pod.Kind.REGULAR,
    ]
    assert found["job-0"].requests["kubernetes.io/batch-cpu"] == 1000
    assert found["etcd-n1"].static
    assert found["etcd-n1"].critical
    assert all(not one.problems for one in found.values())


def test_pods_that_did_not_change_are_not_decoded_again() -> None:
    """The very same objects, also beside one that changed."""
    decoder = pods.PodListDecoder("kubelet")
    body = json.loads(PODS)
    first = {one.name: one for one in decoder.decode(json.dumps(body).encode(), [])}
    body["items"][0]["status"]["phase"] = "Pending"
    again = {one.name: one for one in decoder.decode(json.dumps(body).encode(), [])}

    assert {name for name, one in again.items() if one is not first[name]} == {"web-1"}


def test_a_pod_that_cannot_be_read_costs_itself() -> None:
    """The others are there."""
    problems: list[str] = []
    items = [examples.pod(1), {"metadata": {}}, 7, examples.pod(2)]
    found = pods.PodListDecoder("kubelet").decode(json.dumps({"items": items}).encode(), problems)

    assert [one.name for one in found] == ["web-1", "web-2"]
    assert [one.startswith(f"items[{at}]: ") for at, one in enumerate(problems, 1)] == [True, True]


@pytest.mark.parametrize("half", [rb"\ud800", b"\xff"])
def test_half_a_character_costs_itself(half: bytes) -> None:
    """All pods are there; the one that had it says so, by itself and not again."""
    items = [examples.pod(1), examples.pod(2, metadata__labels={"a": "HERE"}), examples.pod(3)]
    data = json.dumps({"items": items}).encode().replace(b"HERE", half)
    problems: list[str] = []
    decoder = pods.PodListDecoder("kubelet")
    found = decoder.decode(data, problems)

    assert [one.name for one in found] == ["web-1", "web-2", "web-3"]
    assert [one.problems for one in found] == [(), (surrogates.SAID,), ()]
    assert found[1].labels == {"a": "\ufffd"}
    assert problems == []
    assert all(one is two for one, two in zip(found, decoder.decode(data, []), strict=True))


def test_half_a_character_in_statistics() -> None:
    """The whole answer counts, and it is said once."""
    data = json.dumps(SUMMARY).replace('"n1"', r'"n\ud800"').encode()
    problems: list[str] = []
    found = summary.decode(shapes.parse_bytes(data, problems))

    assert summary.decode(SUMMARY).pods == found.pods
    assert problems == [surrogates.SAID]


@pytest.mark.parametrize("first_is_deleted", [True, False])
def test_one_uid_twice(first_is_deleted: object) -> None:
    """The one that is not being deleted counts; it is said."""
    gone = examples.pod(
        1, metadata__name="gone", metadata__deletionTimestamp="2026-01-01T00:00:00Z"
    )
    both = [gone, examples.pod(1)] if first_is_deleted else [examples.pod(1), gone]
    problems: list[str] = []
    found = pods.PodListDecoder("kubelet").decode(json.dumps({"items": both}).encode(), problems)

    assert [one.name for one in found] == ["web-1"]
    assert len(problems) == 1
    assert found[0].problems == ("its UID is also the UID of shop/gone, which is ignored",)


@pytest.mark.parametrize(
    "data", [b'{"kind":"PodList","items":[]}', b'{"kind":"PodList","items":null}']
)
def test_an_empty_list_is_an_empty_list(data: bytes) -> None:
    """A node may have no pods."""
    assert pods.PodListDecoder("kubelet").decode(data, []) == ()


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[]", b"<html>", PODS[:500], b'{"items": 3}', b"\xff"]
)
def test_what_is_no_list_is_refused(data: bytes) -> None:
    """It must not look like a node without pods."""
    with pytest.raises(ValueError, match=r".+"):
        pods.PodListDecoder("kubelet").decode(data, [])


def test_the_configuration() -> None:
    """What is left to us, and the thresholds."""
    found = configz.decode(CONFIG)

    assert (
        found.cpu_manager_policy,
        found.topology_manager_policy,
        str(found.reserved_cpus),
    ) == ("static", "best-effort", "0")
    assert found.system_reserved == {"cpu": 200, "memory": 256 << 20}
    assert found.eviction_hard["memory.available"] == "100Mi"
    assert found.problems == ()


@pytest.mark.parametrize("body", [{}, [], None, {"kubeletconfig": 3}])
def test_what_is_no_configuration_is_refused(body: object) -> None:
    """Its defaults would be a guess."""
    with pytest.raises(ValueError, match=r".+"):
        configz.decode(body)


def test_the_statistics() -> None:
    """Of the node, its file systems, and each pod."""
    found = summary.decode(SUMMARY)

    assert (
        found.node_fs.capacity_bytes,
        found.image_fs.used_bytes,
        found.max_pids,
    ) == (100 << 30, 20 << 30, 4194304)
    one = found.pods["0b6a7f0e-6a1e-4c1f-9f3f-000000000001"]
    assert (
        one.ephemeral.used_bytes,
        one.processes,
        one.logs["nginx"].used_bytes,
    ) == (53248, 7, 8192)
    assert found.problems == ()


@given(body=examples.broken(SUMMARY))
def test_no_statistics_raise_anything_but_a_value_error(body: Any) -> None:
    """However they are broken."""
    try:
        found = summary.decode(body)
    except ValueError:
        return
    assert found.max_pids is None or found.max_pids >= 0


@given(body=examples.broken(CONFIG))
def test_no_configuration_raises_anything_but_a_value_error(body: Any) -> None:
    """However it is broken."""
    try:
        found = configz.decode(body)
    except ValueError:
        return
    assert isinstance(found.cpu_manager_policy, str)
