"""The file: damaged, full, locked, from the future, killed in between."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from koordlet.kubeapi import kinds, objects, refusals
from koordlet.scheduler.store import adapter, migrations

RESERVATION = objects.Ref(kinds.RESERVATIONS, "one")


def use(path: Path, work: Callable[[adapter.Store], Awaitable[None]]) -> None:
    """Open the store, do something, close it."""

    async def run() -> None:
        store = adapter.Store(path)
        await store.open()
        try:
            await work(store)
        finally:
            await store.close()

    asyncio.run(run())


async def write(store: adapter.Store) -> None:
    """One object."""
    await store.create(RESERVATION.kind, {"metadata": {"name": RESERVATION.name}})


async def read(store: adapter.Store) -> None:
    """The same object."""
    assert objects.text(await store.get(RESERVATION), "name") == "one"


def test_what_was_written_is_there_again(ram: Path) -> None:
    """The next process finds the objects, and revisions go on."""

    async def higher(store: adapter.Store) -> None:
        before = await store.get(RESERVATION)
        after = await store.patch(RESERVATION, objects.Merge({"spec": {"a": 1}}))
        assert int(objects.revision(after)) > int(objects.revision(before))

    use(ram / "store.db", write)
    use(ram / "store.db", higher)
    use(ram / "store.db", read)


@pytest.mark.parametrize(
    ("content", "word"), [(b"no database at all" * 100, "not a store"), (b"", "")]
)
def test_a_file_that_is_no_store(ram: Path, content: bytes, word: str) -> None:
    """It is refused with what to do, and left as it is; an empty file is a new store."""
    path = ram / "store.db"
    path.write_bytes(content)
    if not word:
        use(path, write)
        return

    with pytest.raises(refusals.Unavailable, match=word) as caught:
        use(path, read)

    assert caught.value.culprit == str(path)
    assert "backup" in caught.value.fix
    assert path.read_bytes() == content


def test_a_damaged_file(ram: Path) -> None:
    """Pages full of garbage are noticed at the start."""
    path = ram / "store.db"
    use(path, write)
    body = bytearray(path.read_bytes())
    body[4096:] = os.urandom(len(body) - 4096)
    path.write_bytes(body)

    with pytest.raises(refusals.Unavailable, match="damaged"):
        use(path, read)


def test_a_file_of_a_newer_koordlet(ram: Path) -> None:
    """It is not touched: an older program does not know what it means."""
    path = ram / "store.db"
    use(path, write)
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version={len(migrations.STEPS) + 1}")
    connection.close()

    with pytest.raises(refusals.Unavailable, match="newer koordlet"):
        use(path, read)


def test_one_process_at_a_time(ram: Path) -> None:
    """A second one that opens the file is told so."""
    path = ram / "store.db"

    async def second(_store: adapter.Store) -> None:
        other = adapter.Store(path)
        with pytest.raises(refusals.Unavailable, match="another process"):
            await other.open()

    use(path, second)


def test_no_directory(ram: Path) -> None:
    """A path that cannot be is named."""
    with pytest.raises(refusals.Unavailable, match="cannot be opened"):
        use(ram / "missing" / "store.db", read)


def test_a_full_disk(ram: Path) -> None:
    """The write is refused, what was there stays readable, and there is room again later."""
    path = ram / "store.db"

    def largest() -> int:
        return max(each.stat().st_size for each in ram.iterdir())

    async def fill(store: adapter.Store) -> None:
        await write(store)
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        room = largest() + 8192
        old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
        try:
            with pytest.raises(refusals.Unavailable, match="nothing was written"):
                await store.patch(RESERVATION, objects.Merge({"spec": {"a": "x" * 1_000_000}}))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            signal.signal(signal.SIGXFSZ, old)
        await read(store)
        await store.patch(RESERVATION, objects.Merge({"spec": {"a": "y"}}))

    use(path, fill)
    use(path, read)


_KILLED = """
import asyncio, os, pathlib, sys
from koordlet.kubeapi import kinds
from koordlet.scheduler.store import adapter

async def main():
    store = adapter.Store(pathlib.Path(sys.argv[1]))
    await store.open()
    for number in range(10_000):
        await store.create(kinds.RESERVATIONS, {"metadata": {"name": f"r{number}"}})
        print(number, flush=True)

asyncio.run(main())
"""


def test_killed_while_writing(ram: Path) -> None:
    """Everything that was acknowledged before the kill is there, and the file is whole."""
    path = ram / "store.db"
    writer = subprocess.Popen(
        [sys.executable, "-c", _KILLED, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    for _ in range(20):
        last = int(writer.stdout.readline())
    writer.kill()
    rest = writer.stdout.read().split()
    last = int(rest[-1]) if rest else last
    writer.wait()
    writer.stdout.close()

    async def count(store: adapter.Store) -> None:
        listing = await objects.collect(store.list(kinds.RESERVATIONS))
        assert len(listing.items) in {last + 1, last + 2}

    use(path, count)


def test_a_cancelled_writer(ram: Path) -> None:
    """A write whose caller goes away is whole all the same, and watchers are told of it."""

    async def run(store: adapter.Store) -> None:
        since = (await objects.collect(store.list(kinds.RESERVATIONS))).revision
        task = asyncio.create_task(write(store))
        await asyncio.sleep(0)
        task.cancel()
        change = await asyncio.wait_for(anext(store.watch(kinds.RESERVATIONS, since)), 10)
        assert objects.text(change.object, "name") == "one"

    use(ram / "store.db", run)


def test_history_is_bounded(ram: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old changes are forgotten by themselves; who asks for them is told that they are gone."""
    monkeypatch.setattr("koordlet.scheduler.store.rows.HISTORY", 10)

    async def run(store: adapter.Store) -> None:
        await write(store)
        for number in range(20):
            await store.patch(RESERVATION, objects.Merge({"spec": {"a": number}}))
        with pytest.raises(refusals.Gone):
            await anext(store.watch(kinds.RESERVATIONS, "2"))

    use(ram / "store.db", run)


@pytest.mark.parametrize("value", [float("nan"), object(), {1, 2}])
def test_what_is_no_json(ram: Path, value: object) -> None:
    """It is refused, and nothing is half written."""

    async def run(store: adapter.Store) -> None:
        body = {"metadata": {"name": "one"}, "spec": {"a": value}}
        with pytest.raises(refusals.Malformed):
            await store.create(kinds.RESERVATIONS, body)
        with pytest.raises(refusals.NotFound):
            await store.get(RESERVATION)

    use(ram / "store.db", run)


async def test_a_backup_takes_the_place_of_a_damaged_file(ram: Path) -> None:
    """It is a store itself, with everything up to its moment; the old one may be anything."""
    store = adapter.Store(ram / "store.db")
    await store.open()
    await store.create(kinds.NAMESPACES, {"metadata": {"name": "before"}})
    await store.backup(ram / "backup")
    await store.create(kinds.NAMESPACES, {"metadata": {"name": "after"}})
    await store.close()
    replaced(ram)
    again = adapter.Store(ram / "store.db")
    await again.open()
    listing = await objects.collect(again.list(kinds.NAMESPACES))
    assert [objects.text(body, "name") for body in listing.items] == ["before"]
    await again.create(kinds.NAMESPACES, {"metadata": {"name": "new"}})
    await again.close()


def replaced(folder: Path) -> None:
    """The file is damaged, and the backup takes its place."""
    for path in folder.glob("store.db*"):
        path.unlink()
    (folder / "store.db").write_bytes(b"broken" * 1000)
    (folder / "backup").replace(folder / "store.db")


async def test_the_form_before_is_kept(ram: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of an older form is brought up to date, and stays beside it as it was."""
    store = adapter.Store(ram / "store.db")
    await store.open()
    await store.create(kinds.NAMESPACES, {"metadata": {"name": "old"}})
    await store.close()
    steps = (*migrations.STEPS, ("CREATE TABLE more (one INTEGER)",))
    monkeypatch.setattr(migrations, "STEPS", steps)
    await store_opened(ram / "store.db")
    monkeypatch.undo()
    await store_opened(ram / f"store.db.form{len(migrations.STEPS)}")


async def store_opened(path: Path) -> None:
    """A file that can be opened and has what was written."""
    store = adapter.Store(path)
    await store.open()
    listing = await objects.collect(store.list(kinds.NAMESPACES))
    assert [objects.text(body, "name") for body in listing.items] == ["old"]
    await store.close()
