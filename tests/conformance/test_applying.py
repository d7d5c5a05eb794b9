"""Server-side apply: who owns what, and what follows."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.kubeapi import kinds, objects, refusals
from tests.conformance.worlds import World


def apply(ref: objects.Ref, manager: str, *, force: bool = False, **spec: Any) -> objects.Apply:
    """What a manager wants of an object."""
    body = {
        "apiVersion": ref.kind.api_version,
        "kind": ref.kind.name,
        "metadata": {"name": ref.name},
        "spec": spec,
    }
    return objects.Apply(body, manager, force)


async def test_apply_creates(world: World) -> None:
    """What is missing is created, and applying it again changes nothing."""
    ref = objects.Ref(kinds.RESERVATIONS, world.name())

    made = await world.store.patch(ref, apply(ref, "one", ttl="1h"))
    again = await world.store.patch(ref, apply(ref, "one", ttl="1h"))

    assert made["spec"] == {"ttl": "1h"}
    assert objects.revision(again) == objects.revision(made)


async def test_apply_removes_what_it_no_longer_names(world: World) -> None:
    """A field that its only manager drops is removed; those of others stay."""
    ref = objects.Ref(kinds.RESERVATIONS, world.name())
    await world.store.patch(ref, apply(ref, "one", ttl="1h", extra="x"))
    await world.store.patch(ref, apply(ref, "two", other="y"))

    after = await world.store.patch(ref, apply(ref, "one", ttl="1h"))

    assert after["spec"] == {"ttl": "1h", "other": "y"}


async def test_apply_conflicts(world: World) -> None:
    """Another manager's field with another value is a conflict that names the field."""
    ref = objects.Ref(kinds.RESERVATIONS, world.name())
    await world.store.patch(ref, apply(ref, "one", ttl="1h"))

    with pytest.raises(refusals.Conflict) as caught:
        await world.store.patch(ref, apply(ref, "two", ttl="2h"))

    assert ".spec.ttl" in str(caught.value)
    assert [(cause.reason, cause.field) for cause in caught.value.causes] == [
        ("FieldManagerConflict", ".spec.ttl")
    ]
    assert (await world.store.get(ref))["spec"] == {"ttl": "1h"}


async def test_a_forced_apply_takes_the_field(world: World) -> None:
    """Forced, the field changes its owner, and the old owner meets a conflict now."""
    ref = objects.Ref(kinds.RESERVATIONS, world.name())
    await world.store.patch(ref, apply(ref, "one", ttl="1h"))

    after = await world.store.patch(ref, apply(ref, "two", ttl="2h", force=True))

    assert after["spec"] == {"ttl": "2h"}
    with pytest.raises(refusals.Conflict):
        await world.store.patch(ref, apply(ref, "one", ttl="1h"))


async def test_equal_values_are_shared(world: World) -> None:
    """Two managers that want the same do not disturb each other; the last one removes it."""
    ref = objects.Ref(kinds.RESERVATIONS, world.name())
    await world.store.patch(ref, apply(ref, "one", ttl="1h", mine=1))
    await world.store.patch(ref, apply(ref, "two", ttl="1h", yours=2))

    shared = await world.store.patch(ref, apply(ref, "one", mine=1))
    assert shared["spec"] == {"ttl": "1h", "mine": 1, "yours": 2}

    last = await world.store.patch(ref, apply(ref, "two", yours=2))
    assert last["spec"] == {"mine": 1, "yours": 2}


async def test_a_patch_makes_an_owner_too(world: World) -> None:
    """A field that somebody else patched is in the way of an apply."""
    ref = objects.Ref(kinds.RESERVATIONS, world.name())
    await world.store.patch(ref, apply(ref, "one", ttl="1h"))
    await world.store.patch(ref, objects.Merge({"spec": {"ttl": "5h"}}))

    with pytest.raises(refusals.Conflict):
        await world.store.patch(ref, apply(ref, "one", ttl="1h"))


async def test_the_status_is_applied_on_its_own(world: World) -> None:
    """An apply of the status leaves the wish, and owns only the status."""
    ref = await world.reservation(ttl="1h")
    body = {**apply(ref, "one", ttl="9h").body, "status": {"phase": "Available"}}

    await world.store.patch(ref, objects.Apply(body, "one"), subresource="status")

    after = await world.store.get(ref)
    assert after["spec"] == {"ttl": "1h"}
    assert after["status"] == {"phase": "Available"}


async def test_conditions_have_their_own_owners(world: World) -> None:
    """Managers of different conditions of a node do not meet."""
    ref = await world.node()

    async def say(manager: str, kind: str, status: str) -> None:
        condition = {"type": kind, "status": status, "reason": "Test", "message": "m"}
        body = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": ref.name},
            "status": {"conditions": [condition]},
        }
        await world.store.patch(ref, objects.Apply(body, manager), subresource="status")

    await say("kubelet", "Ready", "True")
    await say("us", "CPUPressure", "False")
    await say("kubelet", "Ready", "False")

    conditions = (await world.store.get(ref))["status"]["conditions"]
    assert {condition["type"]: condition["status"] for condition in conditions} == {
        "Ready": "False",
        "CPUPressure": "False",
    }


async def test_a_condition_goes_with_all_of_its_fields(world: World) -> None:
    """What is not applied any more leaves nothing, unless somebody else owns a part of it."""
    ref = await world.node()

    async def say(manager: str, *several: dict[str, str]) -> list[Any]:
        body: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": ref.name},
        }
        if several:
            body["status"] = {"conditions": list(several)}
        after = await world.store.patch(ref, objects.Apply(body, manager), subresource="status")
        conditions: list[Any] = (after.get("status") or {}).get("conditions") or []
        return conditions

    rest = {"status": "True", "reason": "Test", "message": "m"}
    await say("us", *({"type": f"example.com/{kind}", **rest} for kind in "ABC"))
    await say("them", {"type": "example.com/B", "status": "True"})

    conditions = await say("us", {"type": "example.com/C", **rest})
    assert {condition["type"] for condition in conditions} == {"example.com/B", "example.com/C"}
    assert [condition["type"] for condition in await say("us")] == ["example.com/B"]
    assert await say("them") == []


async def test_an_apply_with_a_revision(world: World) -> None:
    """An apply with a revision is compare and swap, as every patch is."""
    ref = objects.Ref(kinds.RESERVATIONS, world.name())
    made = await world.store.patch(ref, apply(ref, "one", ttl="1h"))
    await world.store.patch(ref, apply(ref, "two", other="x"))
    late = apply(ref, "one", ttl="2h", force=True)
    marked = {**late.body["metadata"], "resourceVersion": objects.revision(made)}

    body = {**late.body, "metadata": marked}
    with pytest.raises(refusals.Conflict) as caught:
        await world.store.patch(ref, objects.Apply(body, "one", force=True))

    assert (
        tuple(cause for cause in caught.value.causes if cause.reason == "FieldManagerConflict")
        == ()
    )


async def test_the_status_of_a_node_has_annotations(world: World) -> None:
    """An apply of a Node's status owns marks of its metadata, and takes them away again."""
    ref = await world.node()
    body = {"metadata": {"name": ref.name, "annotations": {"example.com/mark": "1"}}, "status": {
        "capacity": {"kubernetes.io/batch-cpu": "1k"}}}  # fmt: skip
    after = await world.store.patch(ref, objects.Apply(body, "us"), subresource="status")
    assert objects.metadata(after)["annotations"]["example.com/mark"] == "1"
    assert after["status"]["capacity"]["kubernetes.io/batch-cpu"] == "1k"

    plain = {"metadata": {"name": ref.name}, "status": {"phase": "Running"}}
    after = await world.store.patch(ref, objects.Apply(plain, "us"), subresource="status")
    assert "example.com/mark" not in (objects.metadata(after).get("annotations") or {})
    assert "kubernetes.io/batch-cpu" not in (after["status"].get("capacity") or {})
