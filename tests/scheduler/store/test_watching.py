"""What a watch tells, whatever happened: the list before and the changes make the list after."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import hypothesis
from hypothesis import strategies as st

from koordlet.kubeapi import kinds, objects, selectors
from koordlet.scheduler.store import adapter

_steps = st.lists(
    st.tuples(
        st.sampled_from(["paint", "delete", "nothing"]), st.integers(0, 3), st.integers(0, 2)
    ),
    max_size=25,
)
_selectors = st.sampled_from(["", "color=1", "color!=1", "color in (0,2)"])

State = dict[str, str]


async def _step(store: adapter.Store, what: str, number: int, color: int) -> None:
    ref = objects.Ref(kinds.RESERVATIONS, f"r{number}")
    labels = {"metadata": {"labels": {"color": str(color)}}}
    there = f"r{number}" in await _list(store, "")
    if what == "delete" and there:
        await store.delete(ref)
    elif what == "paint" and there:
        await store.patch(ref, objects.Merge(labels))
    elif what == "paint":
        body = {"metadata": {"name": ref.name, **labels["metadata"]}}
        await store.create(ref.kind, body)


async def _list(store: adapter.Store, labels: str) -> State:
    selector = selectors.Selector(labels=labels)
    listing = await objects.collect(store.list(kinds.RESERVATIONS, selector=selector))
    return {
        objects.text(body, "name"): body["metadata"]["labels"]["color"] for body in listing.items
    }


async def _replay(store: adapter.Store, state: State, since: str, labels: str, last: str) -> State:
    """A state after the changes up to a revision; each must make sense after the one before."""
    watch = store.watch(kinds.RESERVATIONS, since, selector=selectors.Selector(labels=labels))
    async for change in watch:
        if change.revision == last:
            break
        name = objects.text(change.object, "name")
        assert (name in state) is (change.verb is not objects.Verb.ADDED)
        if change.verb is objects.Verb.DELETED:
            del state[name]
        else:
            state[name] = change.object["metadata"]["labels"]["color"]
    await watch.aclose()
    return state


@hypothesis.given(_steps, _steps, _selectors)
def test_a_list_and_its_changes_are_the_next_list(
    before: list[tuple[str, int, int]], after: list[tuple[str, int, int]], labels: str
) -> None:
    """Whatever happened in between and whatever is selected."""

    async def run(path: Path) -> None:
        store = adapter.Store(path / "store.db")
        await store.open()
        for step in before:
            await _step(store, *step)
        listing = await objects.collect(store.list(kinds.RESERVATIONS))
        state = await _list(store, labels)
        for step in after:
            await _step(store, *step)
        end = await _list(store, labels)
        # Every selector above selects it, so that it marks the end.
        color = "2" if labels != "color=1" else "1"
        body = {"metadata": {"name": "end", "labels": {"color": color}}}
        last = objects.revision(await store.create(kinds.RESERVATIONS, body))
        assert await _replay(store, state, listing.revision, labels, last) == end
        await store.close()

    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:
        asyncio.run(run(Path(name)))
