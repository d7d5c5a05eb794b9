"""The informer: the event of an own write brings nothing new, unless somebody else wrote, too."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

from koordlet.kubeapi import informer, kinds, objects, refusals

NAMESPACE, NAME = "default", "p"


def pod(step: str) -> dict[str, Any]:
    """An object; ``"2 red"``: its revision, and what it says."""
    revision, _, color = step.partition(" ")
    meta = {"namespace": NAMESPACE, "name": NAME, "uid": "u", "resourceVersion": revision}
    return {"metadata": meta, "spec": {"color": color}}


class ScriptedStore:
    """One object, and what happens to it: all watches but the last one end with 410."""

    def __init__(self, listed: list[str], watches: list[list[str]]) -> None:
        self.over = asyncio.Event()
        #: Does what a step says that is no event.
        self.act: Callable[[str, str], None] = lambda _verb, _revision: None
        self._listed, self._watches = listed, watches

    async def list(self, *_: Any, **__: Any) -> AsyncGenerator[objects.Page, None]:
        body = pod(self._listed.pop(0))
        yield objects.Page((body,), objects.revision(body))

    async def watch(self, *_: Any, **__: Any) -> AsyncGenerator[objects.Change, None]:
        for step in self._watches.pop(0):
            if step.startswith(("holds", "wrote")):
                self.act(*step.split())
                continue
            body = pod(step)
            yield objects.Change(objects.Verb.MODIFIED, body, objects.revision(body))
        if self._watches:
            raise refusals.Gone("too old")
        self.over.set()
        await asyncio.Event().wait()


def followed(listed: list[str], *watches: list[str]) -> list[str]:
    """What is told: ``holds X``: we hold the value X, ``wrote 2``: our write has revision 2."""
    notes: list[str] = []

    async def run() -> None:
        store: Any = ScriptedStore(listed, [*watches])
        source = informer.Informer(
            *(store, kinds.PODS, lambda body: [body["spec"]["color"]]),
            changed=lambda _key, _old, new: notes.append(new[0] if new else "gone"),
        )
        values: dict[str, list[str]] = {}

        def act(verb: str, word: str) -> None:
            known = source.get(NAME, NAMESPACE)
            assert known is not None
            if verb == "holds":
                values["ours"] = known
                assert known == [word]
            else:
                source.wrote((NAMESPACE, NAME), values["ours"], word)

        store.act = act
        working = asyncio.ensure_future(source.run())
        async with asyncio.timeout(30):
            await store.over.wait()
        working.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await working

    asyncio.run(run())
    return notes


@pytest.mark.parametrize(
    ("steps", "notes"),
    [
        (["holds first", "wrote 2", "2 ours", "3 later"], ["first", "later"]),
        # Somebody else wrote before us: the value that we wrote of is not the last one.
        (["holds first", "wrote 3", "2 theirs", "3 both"], ["first", "theirs", "both"]),
        (["holds first", "2 theirs", "wrote 3", "3 both"], ["first", "theirs", "both"]),
        # The event was here before the answer.
        (["holds first", "2 ours", "wrote 2", "3 theirs"], ["first", "ours", "theirs"]),
    ],
)
def test_the_event_of_an_own_write_tells_nobody(steps: list[str], notes: list[str]) -> None:
    """Only where the value that is held is the one that has the write."""
    assert followed(["1 first"], steps) == notes


def test_the_event_of_an_own_write_after_a_list_is_read() -> None:
    """The list, a moment old, shows what somebody else wrote before us."""
    notes = followed(["1 first", "2 theirs"], ["holds first", "wrote 3"], ["3 both"])

    assert notes == ["first", "theirs", "both"]
