"""Paths and queries of the API server."""

from __future__ import annotations

import pytest

from koordlet.kube import addresses
from koordlet.kubeapi import kinds, objects, refusals, selectors


def test_paths() -> None:
    """Groups, namespaces and names stand where the API server has them."""
    assert addresses.collection(kinds.NODES, "") == "/api/v1/nodes"
    assert addresses.collection(kinds.PODS, "a b") == "/api/v1/namespaces/a%20b/pods"
    assert (
        addresses.path(objects.Ref(kinds.RESERVATIONS, "x/../y"))
        == "/apis/scheduling.koordinator.sh/v1alpha1/reservations/x%2F..%2Fy"
    )


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_what_is_no_name(name: str) -> None:
    """A name that would be another path is refused."""
    with pytest.raises(refusals.Malformed, match="not a name"):
        addresses.path(objects.Ref(kinds.NODES, name))


def test_targets() -> None:
    """A proxy's path comes first; empty queries and selectors leave no trace."""
    some = selectors.Selector(labels="a=b", fields="")
    assert addresses.target("/proxy", "/api", addresses.selected(some)) == (
        "/proxy/api?labelSelector=a%3Db"
    )
    assert addresses.target("", "/api", {}) == "/api"
