"""Extended resources that classes may serve: names, requests, which container uses which."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.scheduler.objects import extended_resources

GPU = "example.com/gpu"


def container(name: str, amount: int = 0, **fields: Any) -> dict[str, Any]:
    """A container that asks for GPUs, and for CPU and memory beside them."""
    asked = {"cpu": "1", "memory": "1Gi", **({GPU: amount} if amount else {})}
    return {"name": name, "resources": {"limits": asked}, **fields}


def asked(
    init: list[dict[str, Any]], plain: list[dict[str, Any]]
) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """The requests by name with their counts, and which container uses which."""
    several = extended_resources.decode(init, plain)
    requests, mappings = extended_resources.requests(several, {GPU: "gpu"})
    assert all(each["exactly"]["deviceClassName"] == "gpu" for each in requests)
    assert all(each["resourceName"] == GPU for each in mappings)
    counts = {each["name"]: each["exactly"]["count"] for each in requests}
    assert list(counts) == sorted(counts)
    return counts, [(each["containerName"], each["requestName"]) for each in mappings]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (GPU, True),
        ("deviceclass.resource.kubernetes.io/gpu", True),
        ("cpu", False),
        ("hugepages-2Mi", False),
        ("kubernetes.io/batch-cpu", False),
        ("requests.example.com/gpu", False),
    ],
)
def test_a_class_may_serve_what_is_not_a_resource_of_kubernetes(
    name: str, *, expected: bool
) -> None:
    """But for the name that every class has."""
    assert extended_resources.is_claimable(name) is expected


def test_each_container_has_a_request_by_its_number_and_that_of_the_resource() -> None:
    """Numbers are those of all containers, init containers first, and of all amounts by name."""
    assert asked([container("i")], [container("a", 2), container("b"), container("c", 1)]) == (
        {"container-1-request-1": 2, "container-3-request-1": 1},
        [("a", "container-1-request-1"), ("c", "container-3-request-1")],
    )


def test_an_init_container_uses_devices_of_containers_that_start_later() -> None:
    """A sidecar before it keeps its own; nothing more is asked for."""
    sidecar = container("s", 1, restartPolicy="Always")
    assert asked([sidecar, container("i", 3)], [container("a", 2), container("b", 2)]) == (
        {"container-0-request-1": 1, "container-2-request-1": 2, "container-3-request-1": 2},
        [
            ("s", "container-0-request-1"),
            ("a", "container-2-request-1"),
            ("b", "container-3-request-1"),
            ("i", "container-2-request-1"),
            ("i", "container-3-request-1"),
        ],
    )


def test_what_init_containers_need_beyond_that_is_one_request_the_largest() -> None:
    """They run one after the other: all use the devices of the one that needs most."""
    init = [container("i", 2), container("j", 4), container("k", 1)]
    assert asked(init, [container("a", 1)]) == (
        {"container-1-request-1": 3, "container-3-request-1": 1},
        [
            ("a", "container-3-request-1"),
            ("i", "container-3-request-1"),
            ("i", "container-1-request-1"),
            ("j", "container-3-request-1"),
            ("j", "container-1-request-1"),
            ("k", "container-3-request-1"),
        ],
    )
