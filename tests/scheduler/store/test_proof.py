"""One changed byte of a store: it costs the row that it is in, by name, and never a good backup.

``KOORDLET_SEED`` begins at another number; a failure names its seed.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from koordlet.kubeapi import kinds, objects, refusals
from koordlet.scheduler.store import adapter, migrations, proof

#: A soak changes so many bytes, the ordinary suite 2 % of them, at random.
SOAK = 10_000
ORDINARY = SOAK // 50
_COUNT = 30


def opened(path: Path) -> tuple[dict[str, objects.Object], str, int]:
    """Every namespace in a store, what it says of damage, and the newest revision."""

    async def run() -> tuple[dict[str, objects.Object], str, int]:
        store = adapter.Store(path)
        await store.open()
        try:
            listing = await objects.collect(store.list(kinds.NAMESPACES))
            named = {objects.text(body, "name"): body for body in listing.items}
            return named, store.damage, int(listing.revision)
        finally:
            await store.close()

    return asyncio.run(run())


def filled(path: Path) -> dict[str, objects.Object]:
    """A store with objects of any size, some changed, some gone; and its backup beside it."""
    chance = random.Random(7)

    async def run() -> None:
        store = adapter.Store(path)
        await store.open()
        for number in range(_COUNT):
            marks = {"x": "é" * chance.randrange(1, 400)}
            body = {"metadata": {"name": f"n{number}", "annotations": marks}}
            await store.create(kinds.NAMESPACES, body)
        for number in range(0, _COUNT, 5):
            ref = objects.Ref(kinds.NAMESPACES, f"n{number}")
            await store.patch(ref, objects.Merge({"metadata": {"labels": {"a": "b"}}}))
        await store.delete(objects.Ref(kinds.NAMESPACES, "n3"))
        await store.backup(path.with_name(f"{path.name}.backup"))
        await store.close()

    asyncio.run(run())
    return opened(path)[0]


def changed(path: Path, act: Callable[[sqlite3.Connection], object]) -> None:
    """Somebody changes a file behind our back."""
    connection = sqlite3.connect(path)
    with connection:
        act(connection)
    connection.close()


def bear(seed: int, good: bytes, right: Mapping[str, objects.Object], folder: Path) -> None:
    """Change one byte, and start again twice."""
    path, backup = folder / "store.db", folder / "store.db.backup"
    for file in folder.iterdir():
        file.unlink()
    chance = random.Random(seed)
    data = bytearray(good)
    at = chance.randrange(len(data))
    data[at] ^= 1 << chance.randrange(8)
    told = f"seed {seed}, byte {at}"
    path.write_bytes(data)
    backup.write_bytes(good)
    bodies, damage, refused = started(path)
    if refused is not None:
        assert (str(path), True) == (refused.culprit, bool(refused.fix)), told
        bodies = dict(right)
    missing = right.keys() - bodies.keys()
    assert all("lost: namespaces" in damage or name in damage for name in missing), told
    assert all(body == right[name] for name, body in bodies.items()), told
    assert len(missing) <= 1, told
    kept = [backup for backup in folder.glob("store.db.backup*") if backup.read_bytes() == good]
    assert len(kept) == 1 + bool(missing), told
    assert refused is not None or (bodies, "") == opened(path)[:2], told


def started(path: Path) -> tuple[dict[str, objects.Object], str, refusals.Unavailable | None]:
    """As ``opened``, or the refusal."""
    try:
        return (*opened(path)[:2], None)
    except refusals.Unavailable as refused:
        return {}, "", refused


@pytest.fixture
def folder(ram: Path) -> Path:
    """Where stores are damaged."""
    place = ram / "damaged"
    place.mkdir()
    return place


def test_a_changed_byte_costs_its_row(ram: Path, folder: Path) -> None:
    """It costs one object by name, or the file is refused in words; the backup is still there."""
    right = filled(ram / "store.db")
    good = (ram / "store.db").read_bytes()
    first = random.SystemRandom().randrange(SOAK)
    print(f"seeds from {first}")  # noqa: T201 -- shown where it fails
    for seed in range(first, first + ORDINARY):
        bear(seed, good, right, folder)


@pytest.mark.soak
def test_a_soak_of_changed_bytes(ram: Path, folder: Path) -> None:
    """The same, ten thousand times."""
    right = filled(ram / "store.db")
    good = (ram / "store.db").read_bytes()
    first = int(os.environ.get("KOORDLET_SEED", "0"))
    for seed in range(first, first + SOAK):
        bear(seed, good, right, folder)


def test_a_lost_row_is_named_and_the_backup_kept(ram: Path) -> None:
    """The others are there, and what is lost is told with the files that were kept."""
    path = ram / "store.db"
    right = filled(path)
    whole = (ram / "store.db.backup").read_bytes()
    changed(path, lambda db: db.execute("UPDATE objects SET body = 'x' WHERE name = 'n7'"))
    bodies, damage, revision = opened(path)

    assert right.keys() - bodies.keys() == {"n7"}
    assert "lost: namespaces /n7" in damage
    assert f"store.db.backup-{revision}" in damage
    assert whole == (ram / f"store.db.backup-{revision}").read_bytes()
    assert (ram / f"store.db-{revision}").exists()
    assert (bodies, "") == opened(path)[:2]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE clock SET revision = 3",
        "UPDATE clock SET compacted = -1",
        "DELETE FROM clock",
        "INSERT INTO clock VALUES (1, 1, 1)",
        "UPDATE events SET after = 'x' WHERE revision = 5",
    ],
)
def test_a_damaged_history_costs_the_history(ram: Path, statement: str) -> None:
    """Every object is there, revisions go on, and whoever watches from before lists again."""
    path = ram / "store.db"
    right = filled(path)
    newest = opened(path)[2]
    changed(path, lambda db: db.execute(statement))
    bodies, damage, revision = opened(path)

    assert (right, True) == (bodies, bool(damage))
    assert revision >= newest

    async def run() -> None:
        store = adapter.Store(path)
        await store.open()
        with pytest.raises(refusals.Gone):
            await anext(store.watch(kinds.NAMESPACES, str(newest - 3)))
        await store.create(kinds.NAMESPACES, {"metadata": {"name": "after"}})
        await store.close()

    asyncio.run(run())


def test_most_rows_damaged(ram: Path) -> None:
    """Where more is lost than saved nothing is opened: that is no row, it is the file."""
    path = ram / "store.db"
    filled(path)
    changed(path, lambda db: db.execute("UPDATE objects SET checksum = checksum + 1"))
    with pytest.raises(refusals.Unavailable, match="objects are damaged") as refused:
        opened(path)

    assert "backup" in refused.value.fix


def test_a_backup_is_replaced_only_by_a_whole_one(ram: Path) -> None:
    """A row that goes bad while the store is open: reads go on without it, and the backup stays."""
    path = ram / "store.db"
    right = filled(path)
    whole = (ram / "store.db.backup").read_bytes()

    async def run() -> None:
        store = adapter.Store(path)
        await store.open()

        def spoil(db: sqlite3.Connection) -> None:
            db.execute("UPDATE objects SET body = 'x' WHERE name = 'n7'")

        await store._database.write(spoil)
        listing = await objects.collect(store.list(kinds.NAMESPACES))
        with pytest.raises(refusals.NotFound):
            await store.get(objects.Ref(kinds.NAMESPACES, "n7"))
        with pytest.raises(refusals.Unavailable, match="lost: namespaces /n7"):
            await store.backup(ram / "store.db.backup")
        assert right.keys() - {objects.text(body, "name") for body in listing.items} == {"n7"}
        await store.close()

    asyncio.run(run())
    assert whole == (ram / "store.db.backup").read_bytes()


def before_checksums(path: Path, bodies: Mapping[str, Any]) -> None:
    """A store as it was before rows had checksums."""
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    with connection:
        for statement in migrations.STEPS[0]:
            connection.execute(statement)
        connection.execute("PRAGMA user_version=1")
        connection.execute("UPDATE clock SET revision = 50")
        for number, (name, body) in enumerate(bodies.items()):
            row = ("namespaces", "", name, number + 2, body)
            connection.execute("INSERT INTO objects VALUES (?, ?, ?, ?, ?)", row)
            event = (number + 2, "namespaces", "", "", body)
            connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?)", event)
    connection.close()


def test_a_store_without_checksums_gets_them(ram: Path) -> None:
    """It is opened with everything in it; a row that is no object even so is lost by name."""
    texts = {name: json.dumps({"metadata": {"name": name}}) for name in ("a", "b")}
    path = ram / "store.db"
    before_checksums(path, {**texts, "c": texts["a"][:-2]})
    bodies, damage, _ = opened(path)

    assert ({*bodies}, "lost: namespaces /c" in damage) == ({"a", "b"}, True)
    assert (ram / "store.db.form1").exists()
    before_checksums(path, texts)
    bodies, damage, revision = opened(path)
    assert ({*bodies}, damage, revision) == ({"a", "b"}, "", 50)


def test_a_checksum_is_of_every_column() -> None:
    """No two neighbours can change places, and a text that is no UTF-8 has one as well."""
    assert proof.checksum("a", "b", 1) != proof.checksum("b", "a", 1)
    assert proof.checksum("\ud800") != proof.checksum("?")


@pytest.mark.parametrize(("table", "refused"), [("objects", True), ("clock", False)])
def test_a_damaged_name_in_the_schema(ram: Path, table: str, *, refused: bool) -> None:
    """Python cannot read the name of a column: refused in words, or it costs the history alone."""
    path = ram / "store.db"
    right = filled(path)
    with path.open("r+b") as file:
        data = file.read()
        at = data.index(b"revision", data.index(f"CREATE TABLE {table}".encode()))
        file.seek(at)
        file.write(b"\xff")
    bodies, damage, refusal = started(path)

    if refused:
        assert refusal is not None
        assert (str(path), True) == (refusal.culprit, "damaged" in str(refusal))
    else:
        assert (right, True) == (bodies, bool(damage))
