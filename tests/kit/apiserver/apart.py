"""The API server of the tests in a process of its own: it is killed, and comes back.

Covers: the process, its objects (they survive it), what it was asked, tokens by a file.
Does not cover: what it answers (``api``).

    python -m tests.kit.apiserver.apart FOLDER ADDRESS:PORT       the process

In the folder: ``store.db``; ``seen.jsonl``, a line for each request; ``reviews.json``, token to the
status of its review and the ``paths`` that its bearer may get, read at the start; ``tls.crt`` and
``tls.key`` where it speaks TLS.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from koordlet.report.crds import definitions
from koordlet.scheduler.store import adapter
from tests.kit import deadline
from tests.kit.apiserver import server

_LISTENING = "listening"


@dataclass(frozen=True)
class Request:
    """One request, as it came in."""

    at: float
    method: str
    path: str
    query: str
    agent: str

    @property
    def lists(self) -> bool:
        """Whether it asks for all objects of a kind."""
        return self.method == "GET" and "limit=" in self.query


class Apart:
    """The process, and what is known of it from outside."""

    def __init__(self, folder: Path, address: str, *, prefix: Sequence[str] = ()) -> None:
        self.folder, self.address = folder, address
        self._prefix = prefix
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def store(self) -> Path:
        """The objects; to be touched only while the process is away."""
        return self.folder / "store.db"

    def start(self) -> None:
        """Come up; returns when it listens."""
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(*self._prefix, sys.executable, "-m", "tests.kit.apiserver.apart"),
                    *(str(self.folder), self.address),
                ],
                stdout=log,
                stderr=log,
            )
        starts = self._starts() + 1
        deadline.until(lambda: self._starts() >= starts, "the API server listens")

    def _starts(self) -> int:
        return (self.folder / "log").read_text().count(_LISTENING)

    def kill(self) -> None:
        """Gone, without a word to anybody."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(60)
            self._process = None

    def seen(self, since: float = 0.0) -> list[Request]:
        """Everything that was asked after a moment."""
        file = self.folder / "seen.jsonl"
        lines = file.read_text().splitlines() if file.exists() else []
        requests = [Request(**json.loads(line)) for line in lines]
        return [request for request in requests if request.at >= since]

    def kubeconfig(
        self,
        name: str = "kubeconfig",
        *,
        token: str = "secret",
        authority: Path | None = None,
    ) -> Path:
        """For a client; without TLS, unless its authority is given."""
        scheme, more = "http", {}
        if authority is not None:
            scheme, more = "https", {"certificate-authority": str(authority)}
        cluster = {"server": f"{scheme}://{self.address}", **more}
        config = server.kubeconfig(cluster, {"token": token})
        path = self.folder / name
        path.write_text(json.dumps(config))
        return path


class _Noted(list[server.Seen]):
    """Requests, written down at once: the process is killed."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file.open("a", buffering=1)

    def append(self, request: server.Seen) -> None:
        """Write it down."""
        agent = request.headers.get("user-agent", "")
        noted = Request(time.time(), request.method, request.path, request.query, agent)
        self._file.write(json.dumps(vars(noted)) + "\n")


def _tls(folder: Path) -> ssl.SSLContext | None:
    if not (folder / "tls.crt").exists():
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    return context


def _reviews(folder: Path) -> dict[str, dict[str, Any]]:
    file = folder / "reviews.json"
    reviews: dict[str, dict[str, Any]] = json.loads(file.read_text()) if file.exists() else {}
    return reviews


async def _serve(folder: Path, address: str) -> None:
    host, _, port = address.rpartition(":")
    store = adapter.Store(folder / "store.db")
    await store.open()
    custom = [
        replace(definition.kind, version=v)
        for definition in definitions.DEFINITIONS
        for v in definition.versions
    ]
    it = server.Server(store, custom=custom, tls=_tls(folder))
    it.seen = _Noted(folder / "seen.jsonl")
    reviews = _reviews(folder)
    it.api.bearers = {
        token: (status["user"]["username"], frozenset(status.pop("paths", ())))
        for token, status in reviews.items()
    }
    it.api.reviews = reviews
    it.tokens |= set(it.api.reviews)
    await it.start(int(port), host)
    sys.stdout.write(f"{_LISTENING}\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1]), sys.argv[2]))
