"""Watches: what the port promises about being told."""

from __future__ import annotations

import asyncio

import pytest

from koordlet.kubeapi import kinds, objects, refusals, selectors
from tests.conformance.worlds import World, told
from tests.kit.watches import drained


async def test_a_watch_goes_on_where_a_list_ended(world: World) -> None:
    """Everything after the list is told, once, in order, with the object as it was then."""
    old = await world.pod()
    since = await world.revision(kinds.PODS)

    ref = await world.pod()
    await world.store.patch(ref, objects.Merge({"metadata": {"labels": {"a": "b"}}}))
    await world.store.delete(old)

    changes = await world.changes(kinds.PODS, since, 3)
    if changes[-1].verb is objects.Verb.MODIFIED:
        # An API server marks a pod before it removes it, also where nobody has to stop it.
        (changes[-1],) = await world.changes(kinds.PODS, changes[-1].revision, 1)
    assert told(changes) == [("ADDED", ref.name), ("MODIFIED", ref.name), ("DELETED", old.name)]
    assert "a" not in (changes[0].object["metadata"].get("labels") or {})
    assert changes[1].object["metadata"]["labels"] == {"a": "b"}
    assert [change.revision for change in changes] == [
        objects.revision(change.object) for change in changes
    ]


async def test_a_watch_waits_for_what_comes(world: World) -> None:
    """A watch that has told everything tells what happens next."""
    since = await world.revision(kinds.PODS)
    waiting = asyncio.create_task(world.changes(kinds.PODS, since, 2))
    await asyncio.sleep(0)

    first, two = await world.pod(), await world.pod()

    assert told(await waiting) == [("ADDED", first.name), ("ADDED", two.name)]


async def test_a_watch_resumes(world: World) -> None:
    """From the revision of any change the rest is told, and only the rest."""
    since = await world.revision(kinds.PODS)
    names = [(await world.pod()).name for _ in range(4)]

    first = await world.changes(kinds.PODS, since, 2)
    rest = await world.changes(kinds.PODS, first[-1].revision, 2)

    assert [name for _, name in told(first + rest)] == names


async def test_a_selector_of_a_watch(world: World) -> None:
    """Objects that begin to match are added, and those that cease to match are deleted."""
    ref, _ = await world.pod(), await world.pod()
    since = await world.revision(kinds.PODS)
    for labels in ({"app": "web"}, {"app": "web", "x": "y"}, {"app": None}):
        await world.store.patch(ref, objects.Merge({"metadata": {"labels": labels}}))

    changes = await world.changes(kinds.PODS, since, 3, selectors.Selector(labels="app=web"))

    assert told(changes) == [("ADDED", ref.name), ("MODIFIED", ref.name), ("DELETED", ref.name)]


async def test_a_watch_by_field(world: World) -> None:
    """A pod appears to its node when it is bound."""
    since = await world.revision(kinds.PODS)
    _, ref = await world.pod(), await world.pod()
    await world.store.bind(ref, "node-7")

    changes = await world.changes(
        kinds.PODS, since, 1, selectors.Selector(fields="spec.nodeName=node-7")
    )

    assert told(changes) == [("ADDED", ref.name)]
    assert changes[0].object["spec"]["nodeName"] == "node-7"


async def test_kinds_are_watched_apart(world: World) -> None:
    """A watch of one kind is not told of another."""
    since = await world.revision(kinds.PODS)
    await world.reservation()
    ref = await world.pod()

    assert told(await world.changes(kinds.PODS, since, 1)) == [("ADDED", ref.name)]


async def test_an_old_revision_is_gone(world: World) -> None:
    """Where changes since a revision are lost, the watch says so instead of skipping them."""
    await world.reservation()
    old = await world.age()

    with pytest.raises(refusals.Gone):
        await drained(world.store.watch(kinds.RESERVATIONS, old))


async def test_what_changed_nothing_is_not_told(world: World) -> None:
    """Neither an empty patch, a refused write nor a dry run reaches a watcher."""
    ref = await world.reservation(ttl="1h")
    since = await world.revision(kinds.RESERVATIONS)
    await world.store.patch(ref, objects.Merge({"spec": {"ttl": "1h"}}))
    await world.store.patch(ref, objects.Merge({"spec": {"ttl": "2h"}}), dry_run=True)
    with pytest.raises(refusals.Conflict):
        await world.store.patch(ref, objects.Merge({"spec": {"ttl": "3h"}}, "1"))
    await world.store.patch(ref, objects.Merge({"spec": {"ttl": "4h"}}))

    changes = await world.changes(kinds.RESERVATIONS, since, 1, world.mine)

    assert changes[0].object["spec"]["ttl"] == "4h"


async def test_closing_ends_watches(world: World) -> None:
    """A watch does not outlive its store."""
    since = await world.revision(kinds.PODS)
    watch = world.store.watch(kinds.PODS, since, namespace=world.namespace)

    async def follow() -> None:
        async for change in watch:
            assert change.verb is objects.Verb.BOOKMARK

    waiting = asyncio.create_task(follow())
    await asyncio.sleep(0)
    await world.store.close()

    with pytest.raises(refusals.Unavailable):
        await waiting
    with pytest.raises(refusals.Unavailable):
        await world.store.get(objects.Ref(kinds.NODES, "any"))
