"""Create, patch, apply, delete: what the port promises about writing."""

from __future__ import annotations

import asyncio

import pytest

from koordlet.kubeapi import kinds, objects, refusals
from koordlet.model import moment
from tests.conformance.worlds import World, is_gone


async def test_a_new_object_gets_its_identity(world: World) -> None:
    """UID, time, generation and revision come from the store, whatever the object says."""
    name = world.name()
    mark = {"uid": "mine", "generation": 7, "creationTimestamp": "2001-01-01T00:00:00Z"}

    made = await world.store.create(
        kinds.RESERVATIONS, {"metadata": {"name": name, **mark}, "spec": {"ttl": "1h"}}
    )

    assert made == await world.store.get(objects.Ref(kinds.RESERVATIONS, name))
    assert made["metadata"]["generation"] == 1
    assert made["metadata"]["uid"] != "mine"
    created = moment.parse(made["metadata"]["creationTimestamp"])
    assert created == pytest.approx(world.store.now(), abs=5.0)
    assert objects.revision(made)


async def test_a_name_is_taken_once(world: World) -> None:
    """A second object of the same name and kind is refused."""
    ref = await world.reservation()

    with pytest.raises(refusals.AlreadyExists):
        await world.store.create(kinds.RESERVATIONS, {"metadata": {"name": ref.name}})


async def test_names_are_generated(world: World) -> None:
    """``generateName`` gives each object a name of its own."""
    body = {"metadata": {"generateName": "made-"}}

    names = {
        objects.text(await world.store.create(kinds.RESERVATIONS, body), "name") for _ in range(3)
    }

    assert len(names) == 3
    assert all(name.startswith("made-") and len(name) == 10 for name in names)


async def test_a_bad_name_is_invalid(world: World) -> None:
    """What breaks a rule of the kind is refused with the field."""
    with pytest.raises(refusals.Invalid) as caught:
        await world.store.create(kinds.RESERVATIONS, {"metadata": {"name": "Not a name"}})

    assert [cause.field for cause in caught.value.causes] == ["metadata.name"]


async def test_an_object_of_another_kind(world: World) -> None:
    """An object that says that it is something else is refused."""
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": world.name()}}

    with pytest.raises(refusals.Malformed):
        await world.store.create(kinds.RESERVATIONS, body)


async def test_unknown_fields_are_kept(world: World) -> None:
    """What we do not know comes back as it was, also after a patch beside it."""
    ref = await world.reservation(future={"a": [1, {"b": None}], "c": 1.5}, ttl="1h")

    await world.store.patch(ref, objects.Merge({"spec": {"ttl": "2h"}}))

    spec = (await world.store.get(ref))["spec"]
    assert spec["future"]["a"][0] == 1
    assert spec["future"]["c"] == 1.5
    assert spec["ttl"] == "2h"


async def test_a_merge_patch(world: World) -> None:
    """Mappings are merged, lists are replaced, null removes."""
    ref = await world.reservation(kept=1, gone=2, list=[1, 2, 3], inner={"a": 1, "b": 2})

    patch = {"spec": {"gone": None, "list": [4], "inner": {"b": None, "c": 3}}}
    answer = await world.store.patch(ref, objects.Merge(patch))

    assert answer["spec"] == {"kept": 1, "list": [4], "inner": {"a": 1, "c": 3}}
    assert answer == await world.store.get(ref)


async def test_a_patch_of_nothing(world: World) -> None:
    """A patch that changes nothing leaves the revision."""
    ref = await world.reservation(ttl="1h")
    before = await world.store.get(ref)

    after = await world.store.patch(ref, objects.Merge({"spec": {"ttl": "1h"}}))

    assert objects.revision(after) == objects.revision(before)


async def test_compare_and_swap(world: World) -> None:
    """A patch with the present revision is taken, one with another revision is a conflict."""
    ref = await world.reservation(ttl="1h")
    old = objects.revision(await world.store.get(ref))

    await world.store.patch(ref, objects.Merge({"spec": {"ttl": "2h"}}, old))
    with pytest.raises(refusals.Conflict):
        await world.store.patch(ref, objects.Merge({"spec": {"ttl": "3h"}}, old))

    assert (await world.store.get(ref))["spec"]["ttl"] == "2h"


async def test_nothing_is_lost_between_writers(world: World) -> None:
    """Eight writers that compare and swap add up to what each of them added."""
    ref = await world.reservation(count=0)

    async def add() -> None:
        while True:
            old = await world.store.get(ref)
            patch = objects.Merge(
                {"spec": {"count": old["spec"]["count"] + 1}}, objects.revision(old)
            )
            try:
                await world.store.patch(ref, patch)
            except refusals.Conflict:
                continue
            return

    await asyncio.gather(*(add() for _ in range(8)))

    assert (await world.store.get(ref))["spec"]["count"] == 8


async def test_a_patch_of_nobody(world: World) -> None:
    """Only an apply creates what is missing."""
    with pytest.raises(refusals.NotFound):
        await world.store.patch(
            objects.Ref(kinds.RESERVATIONS, "nobody"), objects.Merge({"spec": {}})
        )


async def test_status_and_wish_are_apart(world: World) -> None:
    """The object's patch leaves the status, the status' patch leaves everything else."""
    ref = await world.reservation(ttl="1h")
    both = {"spec": {"ttl": "9h"}, "status": {"phase": "Available"}}

    await world.store.patch(ref, objects.Merge({"status": {"phase": "Pending"}}))
    assert "status" not in await world.store.get(ref)

    await world.store.patch(ref, objects.Merge(both), subresource="status")
    after = await world.store.get(ref)
    assert after["spec"] == {"ttl": "1h"}
    assert after["status"] == {"phase": "Available"}

    await world.store.patch(ref, objects.Merge(both))
    assert (await world.store.get(ref))["spec"] == {"ttl": "9h"}


async def test_the_generation_counts_wishes(world: World) -> None:
    """A change of the wish counts, a change of status or labels does not."""
    ref = await world.reservation(ttl="1h")

    await world.store.patch(ref, objects.Merge({"status": {"phase": "x"}}), subresource="status")
    await world.store.patch(ref, objects.Merge({"metadata": {"labels": {"a": "b"}}}))
    assert (await world.store.get(ref))["metadata"]["generation"] == 1

    await world.store.patch(ref, objects.Merge({"spec": {"ttl": "2h"}}))
    assert (await world.store.get(ref))["metadata"]["generation"] == 2


async def test_conditions_are_merged_by_type(world: World) -> None:
    """A strategic patch of one condition leaves the conditions of others."""
    ref = await world.node()
    for kind, status in (("Ready", "True"), ("MemoryPressure", "False"), ("Ready", "False")):
        condition = {"type": kind, "status": status, "reason": "Test", "message": ""}
        await world.store.patch(
            ref, objects.Strategic({"status": {"conditions": [condition]}}), subresource="status"
        )

    conditions = (await world.store.get(ref))["status"]["conditions"]

    assert {merged["type"]: merged["status"] for merged in conditions} == {
        "Ready": "False",
        "MemoryPressure": "False",
    }


async def test_custom_resources_take_no_strategic_patch(world: World) -> None:
    """It is refused rather than taken for something else."""
    ref = await world.reservation()

    with pytest.raises(refusals.Refused):
        await world.store.patch(ref, objects.Strategic({"spec": {"ttl": "1h"}}))


async def test_nothing_is_kept_of_a_dry_run(world: World) -> None:
    """A dry run answers as if, and leaves everything."""
    ref = await world.reservation(ttl="1h")
    ghost = objects.Ref(kinds.RESERVATIONS, world.name("ghost"))

    await world.store.create(ghost.kind, {"metadata": {"name": ghost.name}}, dry_run=True)
    answer = await world.store.patch(ref, objects.Merge({"spec": {"ttl": "2h"}}), dry_run=True)
    await world.store.delete(ref, dry_run=True)

    assert answer["spec"]["ttl"] == "2h"
    assert (await world.store.get(ref))["spec"]["ttl"] == "1h"
    assert await is_gone(world, ghost)


async def test_delete(world: World) -> None:
    """What is deleted is gone; deleting it again finds nothing."""
    ref = await world.reservation()

    await world.store.delete(ref)

    assert await is_gone(world, ref)
    with pytest.raises(refusals.NotFound):
        await world.store.delete(ref)


async def test_delete_only_what_was_meant(world: World) -> None:
    """Another UID or another revision is a conflict, and nothing is deleted."""
    ref = await world.reservation()
    body = await world.store.get(ref)

    with pytest.raises(refusals.Conflict):
        await world.store.delete(ref, uid="somebody else")
    await world.store.patch(ref, objects.Merge({"spec": {"ttl": "2h"}}))
    with pytest.raises(refusals.Conflict):
        await world.store.delete(ref, revision=objects.revision(body))

    await world.store.delete(ref, uid=objects.text(body, "uid"))
    assert await is_gone(world, ref)
