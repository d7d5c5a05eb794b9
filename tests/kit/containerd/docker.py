"""Docker's daemon as a process that leaves nothing behind, and as much of its API as tests need.

Covers: its start with a containerd of its own, one image, containers on the host's network.
Does not cover: networks, builds, its command line.

As ``runtime`` it gets namespaces of its own, unless the machine is its own (``bare``).
"""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import os
import socket
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.kit import deadline
from tests.kit.containerd import image, programs, runtime

_IMAGE = "koordlet-test"
#: No rule for packets, no bridge, no graph driver that the host would have to have.
_OPTIONS: tuple[str, ...] = (
    "--bridge=none",
    "--iptables=false",
    "--ip-masq=false",
    "--storage-driver=vfs",
)
_OPTIONS += ("--oom-score-adjust=0", "--userland-proxy=false")


class _Connection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=deadline.PATIENCE)
        self._path = path

    def connect(self) -> None:
        """To the path."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


@dataclass(frozen=True, slots=True, kw_only=True)
class Docker:
    """A daemon that runs."""

    folder: Path

    @property
    def log(self) -> str:
        """What it has logged, its containerd too."""
        return (self.folder / "log").read_text(errors="replace")

    def call(self, method: str, path: str, body: bytes | Mapping[str, Any] | None = None) -> Any:
        """One request; ``RuntimeError`` with its words where it refuses."""
        kind = "application/x-tar" if isinstance(body, bytes) else "application/json"
        data = json.dumps(body).encode() if isinstance(body, Mapping) else body
        connection = _Connection(self.folder / "docker.sock")
        with contextlib.closing(connection):
            connection.request(method, f"/v1.41{path}", data, {"Content-Type": kind})
            answer = connection.getresponse()
            text = answer.read()
        if answer.status >= http.HTTPStatus.BAD_REQUEST:
            raise RuntimeError(f"{method} {path}: {answer.status} {text[:500]!r}")
        return json.loads(text) if text.startswith((b"{", b"[")) else text

    def ready(self) -> bool:
        """Whether it answers."""
        with contextlib.suppress(OSError, RuntimeError, http.client.HTTPException):
            return bool(self.call("GET", "/_ping") == b"OK")
        return False

    def run(self, parent: str = "", **more: object) -> str:
        """A container that sleeps, with these settings of ``HostConfig``; its id."""
        settings = {"NetworkMode": "host", "CgroupParent": parent, **more}
        body = {"Image": f"{_IMAGE}:1", "Cmd": image.SLEEP, "HostConfig": settings}
        made = str(self.call("POST", "/containers/create", body)["Id"])
        self.call("POST", f"/containers/{made}/start")
        return made

    def update(self, container: str, **more: object) -> None:
        """``docker update``."""
        self.call("POST", f"/containers/{container}/update", more)

    def remove(self, container: str) -> None:
        """Kill and forget a container."""
        self.call("DELETE", f"/containers/{container}?force=true")


@contextlib.contextmanager
def running(folder: Path, *, bare: bool = False, systemd: bool = False) -> Iterator[Docker]:
    """A daemon with the image; at the end its containers and processes are gone."""
    bundle, own = programs.kept("docker"), programs.kept()
    folder.mkdir(parents=True)
    docker = Docker(folder=folder)
    words = [
        str(bundle.dockerd),
        f"--data-root={folder / 'data'}",
        f"--exec-root={folder / 'x'}",  # sockets lie below it, whose paths must be short
        f"--pidfile={folder / 'pid'}",
        f"--host=unix://{folder / 'docker.sock'}",
        f"--exec-opt=native.cgroupdriver={'systemd' if systemd else 'cgroupfs'}",
        *_OPTIONS,
    ]
    path = f"{own.bin}:{own.runc.parent}:{os.environ.get('PATH', '/usr/bin:/bin')}:/usr/sbin:/sbin"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*(() if bare else runtime.contained("runc")), *words],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, "PATH": path, "LD_LIBRARY_PATH": bundle.libraries},
        )
        try:
            _make_ready(docker, process, own.busybox)
            yield docker
        except BaseException as error:
            error.add_note(docker.log[-3000:])
            raise
        finally:
            _end(docker, process, bare=bare)


def _make_ready(docker: Docker, process: subprocess.Popen[bytes], busybox: Path) -> None:
    def up() -> bool:
        assert process.poll() is None, "dockerd has ended"
        return docker.ready()

    deadline.until(up, "dockerd answers")
    out, data = io.BytesIO(), busybox.read_bytes()
    with tarfile.open(fileobj=out, mode="w") as archive:
        entry = tarfile.TarInfo("bin/busybox")
        entry.size, entry.mode = len(data), 0o755
        archive.addfile(entry, io.BytesIO(data))
    asked = urlencode({"fromSrc": "-", "repo": _IMAGE, "tag": "1"})
    docker.call("POST", f"/images/create?{asked}", out.getvalue())


def _end(docker: Docker, process: subprocess.Popen[bytes], *, bare: bool) -> None:
    with contextlib.suppress(RuntimeError, OSError, http.client.HTTPException):
        for each in docker.call("GET", "/containers/json?all=true"):
            docker.remove(each["Id"])
    # In namespaces of its own, what it started ends with it; else it ends its containerd itself.
    process.send_signal(15 if bare else 9)
    process.wait(deadline.PATIENCE)
