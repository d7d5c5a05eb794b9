"""The SQLite file: opening, verification, migration, transactions on one thread.

Covers: pragmas, migrations, transactions, what to say when SQLite says no.
Does not cover: what the tables mean (``rows``).

Rules:
1. Every write is one transaction, on the disk (``synchronous=FULL``) before anybody hears of it.
2. One process: the file is locked for as long as it is open (two would not hear of each other).
3. A backup is a store itself: put in the place of a damaged one, it is opened as it is. A file of
   an older form is kept beside the new one before it is brought up to date.
4. A disk that is full or broken refuses the write and keeps the last good state; reads go on.
5. All rows are looked at when the file is opened (``proof``). Those that prove themselves go on in
   a new file; the damaged one, and with a lost object the last backup, stay beside it under names
   that nothing takes away. Where that cannot be certain the file is not opened: nothing is guessed.
6. A backup is replaced only by one that was read whole.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from koordlet.kubeapi import refusals
from koordlet.scheduler.store import migrations, proof

_Result = TypeVar("_Result")

Task = Callable[[sqlite3.Connection], _Result]


class Database:
    """One open file and the thread that uses it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._thread = concurrent.futures.ThreadPoolExecutor(1, "store")
        self._connection: sqlite3.Connection | None = None
        self._committed: Callable[[], object] = lambda: None
        #: What was wrong with the file when it was opened, and the files that were kept for it.
        self.damage = proof.Damage()
        self.kept: tuple[Path, ...] = ()

    def on_commit(self, tell: Callable[[], None]) -> None:
        """Call this in the running loop after every write, even one whose caller has gone."""
        loop = asyncio.get_running_loop()
        self._committed = lambda: loop.call_soon_threadsafe(tell)

    async def open(self) -> None:
        """Open or create the file; ``Unavailable`` where it cannot be used as it is."""
        await self._in_thread(self._open)

    async def read(self, task: Task[_Result]) -> _Result:
        """Read within one transaction."""
        return await self._in_thread(lambda: self._transact("BEGIN", task, keep=False))

    async def write(self, task: Task[_Result], *, keep: bool = True) -> _Result:
        """Change the tables, wholly or not at all; ``keep=False`` only pretends."""

        def work() -> _Result:
            result = self._transact("BEGIN IMMEDIATE", task, keep=keep)
            if keep:
                self._committed()
            return result

        return await self._in_thread(work)

    async def backup(self, path: Path) -> None:
        """Write one state of everything to another file, whole or not at all; writers wait."""
        await self._in_thread(lambda: self._back_up(path))

    async def close(self) -> None:
        """Close the file; later calls are ``Unavailable``."""
        try:
            await self._in_thread(self._close)
        except refusals.Unavailable:
            return  # it is closed already
        self._thread.shutdown(wait=False)

    async def _in_thread(self, work: Callable[[], _Result]) -> _Result:
        try:
            # A caller that is cancelled leaves the transaction to begin and end in its order.
            loop = asyncio.get_running_loop()
            return await asyncio.shield(loop.run_in_executor(self._thread, work))
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise self._explained(error) from error
        except RuntimeError as error:  # the thread has been shut down
            raise refusals.Unavailable("the store is closed", culprit=str(self.path)) from error

    def _open(self) -> None:
        connection = self._connected(self.path)
        try:
            self.damage = self._examined(connection)
            if self.damage:
                self._rescue(connection)
        except BaseException:
            connection.close()
            raise
        if self.damage:
            connection.close()
            self._take_over()
            connection = self._connected(self.path)
        self._connection = connection

    def _connected(self, path: Path) -> sqlite3.Connection:
        connection = sqlite3.connect(
            path, isolation_level=None, check_same_thread=False, timeout=1.0
        )
        connection.text_factory = proof.lenient
        try:
            connection.execute("PRAGMA locking_mode=EXCLUSIVE")
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
        except BaseException:
            connection.close()
            raise
        return connection

    def _examined(self, connection: sqlite3.Connection) -> proof.Damage:
        """Migrate the file, and verify all of it."""
        try:
            self._migrate(connection)
            return proof.look(connection)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:
                raise
            # Tables or columns are not there, or there already: nothing of ours says so.
            raise sqlite3.DatabaseError(str(error)) from error

    def _rescue(self, connection: sqlite3.Connection) -> None:
        """Copy intact rows to a new file; the damaged one is kept under another name."""
        fresh = self._beside("new")
        fresh.unlink(missing_ok=True)
        copy = self._connected(fresh)
        try:
            self._migrate(copy)
            copy.execute("BEGIN IMMEDIATE")
            revision = proof.save(connection, copy)
            copy.execute("COMMIT")
            copy.execute("PRAGMA journal_mode=DELETE")
        finally:
            copy.close()
        if self.damage.lost:
            self._keep_name(self._beside("backup"), revision)
        self._keep_name(self.path, revision)

    def _take_over(self) -> None:
        """Give the new file the name; until then the old one has it."""
        fresh = self._beside("new")
        _sync(fresh)
        for suffix in ("-wal", "-shm"):
            self.path.with_name(f"{self.path.name}{suffix}").unlink(missing_ok=True)
        fresh.replace(self.path)
        _sync(self.path.parent)

    def _beside(self, suffix: str) -> Path:
        return self.path.with_name(f"{self.path.name}.{suffix}")

    def _keep_name(self, path: Path, revision: int) -> None:
        """Keep a file under a name that no later file takes."""
        kept = path.with_name(f"{path.name}-{revision}")
        with contextlib.suppress(FileNotFoundError):
            kept.unlink(missing_ok=True)
            kept.hardlink_to(path)
            self.kept += (kept,)

    def _migrate(self, connection: sqlite3.Connection) -> None:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > len(migrations.STEPS):
            raise refusals.Unavailable(
                f"written by a newer koordlet (form {version}, known: {len(migrations.STEPS)})",
                culprit=str(self.path),
                fix="install that version again, or use another file",
            )
        if 0 < version < len(migrations.STEPS):
            problem = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if problem != "ok":
                raise sqlite3.DatabaseError(problem)
            # For a downgrade.
            kept = self._beside(f"form{version}")
            kept.unlink(missing_ok=True)
            connection.execute("VACUUM INTO ?", (str(kept),))
        connection.execute("BEGIN IMMEDIATE")
        try:
            for step in migrations.STEPS[version:]:
                for statement in step:
                    connection.execute(statement)
            if version < migrations.SEALED:
                proof.seal(connection)
            connection.execute(f"PRAGMA user_version={len(migrations.STEPS)}")
            connection.execute("COMMIT")
        except BaseException:
            _roll_back(connection)
            raise

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            raise refusals.Unavailable("the store is closed", culprit=str(self.path))
        return self._connection

    def _transact(self, begin: str, task: Task[_Result], *, keep: bool) -> _Result:
        connection = self._opened()
        connection.execute(begin)
        try:
            result = task(connection)
            connection.execute("COMMIT" if keep else "ROLLBACK")
        except BaseException:
            _roll_back(connection)
            raise
        return result

    def _back_up(self, path: Path) -> None:
        connection = self._opened()
        fresh = path.with_name(f"{path.name}.new")
        fresh.unlink(missing_ok=True)
        copy = sqlite3.connect(fresh)
        try:
            connection.backup(copy)
            # One file without a log beside it, and on the disk before it takes its name.
            copy.execute("PRAGMA journal_mode=DELETE")
            copy.text_factory = proof.lenient
            proof.check(copy)
        except BaseException:
            copy.close()
            fresh.unlink(missing_ok=True)
            raise
        copy.close()
        _sync(fresh)
        fresh.replace(path)

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _explained(self, error: Exception) -> refusals.Unavailable:
        """SQLite's error, and its remedy."""
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        why, fix = _WORDS.get(code, ("", ""))
        if not why and not isinstance(error, sqlite3.OperationalError):
            why, fix = _WORDS[sqlite3.SQLITE_CORRUPT]
        detail = f"{why}: {error}" if why else str(error)
        return refusals.Unavailable(detail, culprit=str(self.path), fix=fix)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _roll_back(connection: sqlite3.Connection) -> None:
    # SQLite has ended the transaction by itself after some errors, a full disk among them.
    if connection.in_transaction:
        connection.execute("ROLLBACK")


_DAMAGED = "put a backup in its place, or move it away to start empty"
_WORDS = {
    sqlite3.SQLITE_FULL: ("the disk is full, nothing was written", "make room"),
    sqlite3.SQLITE_IOERR: ("the disk failed, nothing was written", "look at the kernel's log"),
    sqlite3.SQLITE_READONLY: ("not writable", "make the scheduler's user its owner"),
    sqlite3.SQLITE_BUSY: (
        "another process has it open",
        "stop the other process, or use another file",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        "cannot be opened",
        "check that its directory exists and is writable",
    ),
    sqlite3.SQLITE_CORRUPT: ("damaged", _DAMAGED),
    sqlite3.SQLITE_NOTADB: ("not a store", _DAMAGED),
}
