"""What is written of a promised volume names the revision that the promise was made on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from koordlet.kubeapi import kinds, objects
from koordlet.scheduler.store import adapter
from tests.kit import schedulers
from tests.scheduler.plugins.test_volume_binding import kind
from tests.scheduler.plugins.test_volumes import claim, mounts, volume

VOLUME = objects.Ref(kinds.PERSISTENT_VOLUMES, "v")
THEIRS = {"namespace": "d", "name": "theirs", "uid": "uid-theirs"}


class OvertakenStore(adapter.Store):
    """A store in which somebody is faster than the first write of a volume."""

    def __init__(self, path: Path, change: objects.Object) -> None:
        super().__init__(path)
        self._change: objects.Object | None = change

    async def patch(
        self, ref: objects.Ref, patch: Any, *, subresource: str = "", **more: Any
    ) -> objects.Object:
        change = self._change
        if ref == VOLUME and change is not None:
            self._change = None
            await super().patch(ref, objects.Merge(change))
        return await super().patch(ref, patch, subresource=subresource, **more)


@pytest.mark.parametrize(
    ("change", "owner"),
    [
        ({"spec": {"claimRef": THEIRS}}, "theirs"),
        ({"metadata": {"annotations": {"seen": "yes"}}}, "c"),
    ],
    ids=["taken", "touched"],
)
async def test_a_volume_that_changed_since_the_decision_is_decided_on_anew(
    ram: Path, change: objects.Object, owner: str
) -> None:
    """The volume controller gave it to another claim: two claims of one volume would lose data."""
    store = OvertakenStore(ram / "store.db", change)
    await store.open()
    world = schedulers.World(store, store, None)
    await store.create(kinds.NAMESPACES, {"metadata": {"name": "d"}})
    await world.node("n")
    await store.create(kinds.STORAGE_CLASSES, kind("local"))
    await store.create(VOLUME.kind, volume("v", kind="local", on="n"))
    await store.create(kinds.PERSISTENT_VOLUME_CLAIMS, claim("c", kind="local"))
    await world.pod("p", **mounts("c"))
    async with schedulers.scheduler(store):
        if owner == "theirs":
            await world.until_told("p", "persistent volumes to bind")
        await world.until(lambda known: owner_of(known["v"]) == owner, VOLUME.kind)
    await store.close()


def owner_of(body: objects.Object) -> str:
    """The name of the claim that has a volume."""
    return str(objects.part(objects.part(body, "spec"), "claimRef").get("name") or "")
