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
    by_name = {
        listed.name: listed for listed in pods.PodListDecoder("kubelet").decode(PODS, problems)
    }

    assert problems == []
    assert by_name.keys() == {"web-1", "db-0", "job-0", "etcd-n1", "pinned-0"}
    assert (str(by_name["db-0"].cpus), by_name["db-0"].requests["cpu"]) == ("2-3", 2250)
    assert [listed.kind for listed in by_name["db-0"].containers] == [
        pod.Kind.INIT,
        pod.Kind.SIDECAR,
        pod.Kind.REGULAR,
    ]
    assert by_name["job-0"].requests["kubernetes.io/batch-cpu"] == 1000
    assert by_name["etcd-n1"].static
    assert by_name["etcd-n1"].critical
    assert all(not listed.problems for listed in by_name.values())


def test_pods_that_did_not_change_are_not_decoded_again() -> None:
    """The very same objects, also beside one that changed."""
    decoder = pods.PodListDecoder("kubelet")
    body = json.loads(PODS)
    first = {listed.name: listed for listed in decoder.decode(json.dumps(body).encode(), [])}
    body["items"][0]["status"]["phase"] = "Pending"
    again = {listed.name: listed for listed in decoder.decode(json.dumps(body).encode(), [])}

    assert {name for name, listed in again.items() if listed is not first[name]} == {"web-1"}


def test_a_pod_that_cannot_be_read_costs_itself() -> None:
    """The others are there."""
    problems: list[str] = []
    items = [examples.pod(1), {"metadata": {}}, 7, examples.pod(2)]
    decoded = pods.PodListDecoder("kubelet").decode(json.dumps({"items": items}).encode(), problems)

    assert [listed.name for listed in decoded] == ["web-1", "web-2"]
    assert [line.startswith(f"items[{at}]: ") for at, line in enumerate(problems, 1)] == [
        True,
        True,
    ]


@pytest.mark.parametrize("half", [rb"\ud800", b"\xff"])
def test_half_a_character_costs_itself(half: bytes) -> None:
    """All pods are there; the one that had it says so, by itself and not again."""
    items = [examples.pod(1), examples.pod(2, metadata__labels={"a": "HERE"}), examples.pod(3)]
    data = json.dumps({"items": items}).encode().replace(b"HERE", half)
    problems: list[str] = []
    decoder = pods.PodListDecoder("kubelet")
    decoded = decoder.decode(data, problems)

    assert [listed.name for listed in decoded] == ["web-1", "web-2", "web-3"]
    assert [listed.problems for listed in decoded] == [(), (surrogates.SAID,), ()]
    assert decoded[1].labels == {"a": "\ufffd"}
    assert problems == []
    again = decoder.decode(data, [])
    assert all(first is second for first, second in zip(decoded, again, strict=True))


def test_half_a_character_in_statistics() -> None:
    """The whole answer counts, and it is said once."""
    data = json.dumps(SUMMARY).replace('"n1"', r'"n\ud800"').encode()
    problems: list[str] = []
    decoded = summary.decode(shapes.parse_bytes(data, problems))

    assert summary.decode(SUMMARY).pods == decoded.pods
    assert problems == [surrogates.SAID]


@pytest.mark.parametrize("first_is_deleted", [True, False])
def test_one_uid_twice(first_is_deleted: object) -> None:
    """The one that is not being deleted counts; it is said."""
    gone = examples.pod(
        1, metadata__name="gone", metadata__deletionTimestamp="2026-01-01T00:00:00Z"
    )
    items = [gone, examples.pod(1)] if first_is_deleted else [examples.pod(1), gone]
    problems: list[str] = []
    decoded = pods.PodListDecoder("kubelet").decode(json.dumps({"items": items}).encode(), problems)

    assert [listed.name for listed in decoded] == ["web-1"]
    assert len(problems) == 1
    assert decoded[0].problems == ("its UID is also the UID of shop/gone, which is ignored",)


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
    configuration = configz.decode(CONFIG)

    assert (
        configuration.cpu_manager_policy,
        configuration.topology_manager_policy,
        str(configuration.reserved_cpus),
    ) == ("static", "best-effort", "0")
    assert configuration.system_reserved == {"cpu": 200, "memory": 256 << 20}
    assert configuration.eviction_hard["memory.available"] == "100Mi"
    assert configuration.problems == ()


@pytest.mark.parametrize(
    ("gates", "read"), [(None, {}), ({"A": True, "B": False}, {"A": True, "B": False})]
)
def test_gates_that_are_set(gates: dict[str, bool] | None, read: dict[str, bool]) -> None:
    """Files and flags together; most kubelets have none."""
    assert configz.decode({"kubeletconfig": {"featureGates": gates}}).feature_gates == read


@pytest.mark.parametrize("body", [{}, [], None, {"kubeletconfig": 3}])
def test_what_is_no_configuration_is_refused(body: object) -> None:
    """Its defaults would be a guess."""
    with pytest.raises(ValueError, match=r".+"):
        configz.decode(body)


def test_the_statistics() -> None:
    """Of the node, its file systems, and each pod."""
    statistics = summary.decode(SUMMARY)

    assert (
        statistics.node_fs.capacity_bytes,
        statistics.image_fs.used_bytes,
        statistics.max_pids,
    ) == (100 << 30, 20 << 30, 4194304)
    of_pod = statistics.pods["0b6a7f0e-6a1e-4c1f-9f3f-000000000001"]
    assert (
        of_pod.ephemeral.used_bytes,
        of_pod.processes,
        of_pod.logs["nginx"].used_bytes,
    ) == (53248, 7, 8192)
    assert statistics.problems == ()


@given(body=examples.broken(SUMMARY))
def test_no_statistics_raise_anything_but_a_value_error(body: Any) -> None:
    """However they are broken."""
    try:
        statistics = summary.decode(body)
    except ValueError:
        return
    assert statistics.max_pids is None or statistics.max_pids >= 0


@given(body=examples.broken(CONFIG))
def test_no_configuration_raises_anything_but_a_value_error(body: Any) -> None:
    """However it is broken."""
    try:
        configuration = configz.decode(body)
    except ValueError:
        return
    assert isinstance(configuration.cpu_manager_policy, str)
