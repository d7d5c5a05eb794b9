"""What every object has: how it is named, and where that is missing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from koordlet.kubeapi import kinds, objects


def test_names() -> None:
    """A kind and a reference read as kubectl writes them."""
    assert str(kinds.RESERVATIONS) == "reservations.scheduling.koordinator.sh"
    assert kinds.PODS.api_version == "v1"
    assert kinds.POD_DISRUPTION_BUDGETS.api_version == "policy/v1"
    assert str(objects.Ref(kinds.PODS, "a", "shop")) == "pods shop/a"
    assert str(objects.Ref(kinds.NODES, "n1")) == "nodes n1"


def test_metadata_of_any_shape() -> None:
    """What is missing or of another type is empty."""
    body = {"metadata": {"name": "a", "namespace": "shop", "resourceVersion": "7"}}

    assert objects.key(body) == ("shop", "a")
    assert objects.revision(body) == "7"
    assert objects.key({"metadata": [1]}) == ("", "")
    assert objects.text({"metadata": {"uid": 7}}, "uid") == ""


def test_collect() -> None:
    """The pages of a list become one, with the revision that they share."""

    async def pages() -> AsyncGenerator[objects.Page, None]:
        yield objects.Page(({"a": 1},), "5")
        yield objects.Page(({"b": 1},), "5")

    assert asyncio.run(objects.collect(pages())) == objects.Page(({"a": 1}, {"b": 1}), "5")
