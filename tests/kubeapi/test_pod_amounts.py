"""What a pod asks for in total is what Kubernetes adds up."""

from __future__ import annotations

from koordlet.kubeapi import pod_amounts
from koordlet.model import pod


def container(kind: pod.Kind, cpu: int, limit: int | None = None) -> pod.Container:
    """One container that asks for so much CPU."""
    limits = {} if limit is None else {"cpu": limit}
    return pod.Container(name="c", kind=kind, requests={"cpu": cpu}, limits=limits)


def cpu(*containers: pod.Container) -> int:
    """The pod's request."""
    return pod_amounts.requests(containers, {}, {})["cpu"]


def test_regular_containers_add_up() -> None:
    """They run together."""
    assert cpu(container(pod.Kind.REGULAR, 100), container(pod.Kind.REGULAR, 200)) == 300


def test_the_largest_init_container_counts() -> None:
    """They run one after the other, before the regular ones."""
    init = (container(pod.Kind.INIT, 500), container(pod.Kind.INIT, 400))

    assert cpu(*init, container(pod.Kind.REGULAR, 200)) == 500
    assert cpu(*init, container(pod.Kind.REGULAR, 600)) == 600


def test_sidecars_stay_beside_later_init_containers() -> None:
    """A sidecar counts for what starts after it, and for the regular containers."""
    sidecar = container(pod.Kind.SIDECAR, 100)
    late = (container(pod.Kind.INIT, 500), sidecar, container(pod.Kind.INIT, 450))

    assert cpu(*late, container(pod.Kind.REGULAR, 200)) == 550
    assert cpu(*late, container(pod.Kind.REGULAR, 600)) == 700


def test_pod_level_requests_replace_the_sum_for_their_names() -> None:
    """Devices stay what the containers ask for."""
    whole = pod.Container(name="c", requests={"cpu": 100, "nvidia.com/gpu": 1})

    assert pod_amounts.requests((whole,), {"cpu": 2000, "nvidia.com/gpu": 7}, {}) == {
        "cpu": 2000,
        "nvidia.com/gpu": 1,
    }


def test_overhead_comes_on_top_of_requests_and_of_existing_limits() -> None:
    """A pod without a limit does not get one by its overhead."""
    limited = container(pod.Kind.REGULAR, 100, 200)

    assert pod_amounts.requests((limited,), {}, {"cpu": 10}) == {"cpu": 110}
    assert pod_amounts.limits((limited,), {}, {"cpu": 10, "memory": 5}) == {"cpu": 210}


def test_one_container_without_a_limit_makes_the_pod_unlimited() -> None:
    """As the kubelet decides it for the pod's cgroup."""
    both = (container(pod.Kind.REGULAR, 100, 200), container(pod.Kind.REGULAR, 100))

    assert pod_amounts.limits(both, {}, {}) == {}
    assert pod_amounts.limits(both, {"cpu": 500}, {}) == {"cpu": 500}
