"""State files that are damaged, or that somebody forged: everything from one seed.

Covers: one forgery of a state directory of a settled agent.
Does not cover: what must come of it (``tests.agent.test_forged_state``).
"""

from __future__ import annotations

import json
import os
import random
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from koordlet.model import knob
from koordlet.state import paths, records

#: What no state file may ever lead to, by itself or through a link.
PRECIOUS = "precious"
_TARGETS = (
    *("/etc/shadow", "/etc/ld.so.preload", "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger"),
    *("/sys/fs/cgroup/../../../etc/passwd", "/sys/fs/cgroup/web/../../../etc/passwd", "//etc/cron"),
    *("/sys/fs/cgroup/cpuset/release_agent", "/sys/fs/cgroup/web/cgroup.kill", "relative", ""),
    *("/sys/fs/cgroup/cpuset/web/notify_on_release", "/proc/1/oom_score_adj", "/proc/1/mem"),
    *("/proc/self/attr/current", "/sys/fs/resctrl/schemata", "/net/eth0/egress", "/net//ingress"),
    *("/sys/fs/cgroup/cpuset/web/cpuset.cpus", "/sys/fs/cgroup/web/cpuset.cpus", "/cores/a"),
    *(
        "/sys/fs/cgroup/cpuset/web",
        "/sys/fs/cgroup/web/cgroup.procs",
        "/dev/sda",
        "/\0/x",
        "/\ud800",
    ),
    *("/sys/fs/cgroup/w\udcffeb/cpuset.cpus", "/sys/kernel/debug/x", "/sys/fs/cgroup/cpuset.cpus"),
)
_TEXTS = (
    *("", "0", "0-4", "1,3", "99999", "-1", "max", "x" * 300, "\0", "\udcff", "\ud800", "é"),
    *(
        "of process 1",
        "of process x",
        "deadbeef",
        "/etc",
        "/sys/fs/cgroup",
        "t:5",
        "L3:0=f",
        "+cpu",
    ),
)
_NUMBERS = (0, -1, 1, 1 << 31, (1 << 63) - 1, -(1 << 63), 1 << 64, 10**400, 1e300, -1e300, 0.5)
_KINDS = (
    *("WriteFile", "SetUnitProperty", "MakeDir", "MoveTasks", "Mount", "SetQdisc", "ShareCore"),
    *("RemoveDir", "Evict", "Reclaim", "Exec", ""),
)


class Forger:
    """One seed's hand."""

    def __init__(self, seed: int, where: paths.Paths) -> None:
        self.chance = random.Random(seed)
        self.where = where
        self.precious = where.lib.parent / PRECIOUS
        self.precious.write_text(PRECIOUS)
        self.precious.chmod(0o600)

    def forge(self, count: int) -> str:
        """Forge so many times; what it was, for whoever reads of a failure."""
        weights: dict[Callable[[], str], int] = {
            self._entry: 12,
            self._header: 1,
            self._checkpoint: 8,
            self._handover: 2,
            self._damage: 5,
            self._other_kind: 2,
        }
        ways = self.chance.choices(tuple(weights), tuple(weights.values()), k=count)
        return "\n".join(way() for way in ways)

    def _files(self) -> list[Path]:
        there = [path for path in sorted(self.where.lib.rglob("*")) if not path.is_dir()]
        return [*there, self.where.lock, self.where.audit, self.where.handover]

    # The journal ---------------------------------------------------------------------------------

    def _add(self, line: bytes) -> None:
        if self._is_plain(self.where.journal):
            with self.where.journal.open("ab") as file:
                file.write(line)

    def _entry(self) -> str:
        any_of = self.chance.choice
        body: dict[str, Any] = {
            "kind": any_of(_KINDS),
            "target": any_of(_TARGETS),
            "policy": any_of(("shared_pools", "nobody", "")),
            "original": any_of((None, *_TEXTS)),
            "values": [any_of(_TEXTS) for _ in range(self.chance.randrange(3))],
            "knob": any_of(("", "schemata", any_of(tuple(knob.TABLE)), "no such")),
            "group": any_of(("", "web", "api/one", "..", "a/../../b", "/", "\ud800")),
            "inode": any_of(_NUMBERS),
            "unix_time": any_of(_NUMBERS),
        }
        if self.chance.random() < 0.3:
            body |= {
                "unit": any_of(("nginx.service", "", "x")),
                "properties": [[any_of(("AllowedCPUs", "ExecStart")), any_of(_TEXTS)]],
            }
        if self.chance.random() < 0.3:
            body[any_of((*body, "more"))] = self._odd()
        kind = any_of(("intent", "intent", "intent", "done", "forget", "else"))
        self._add(records.framed(json.dumps({kind: body}).encode()))
        return f"journal: {kind} {body!r:.300}"

    @staticmethod
    def _is_plain(path: Path) -> bool:
        """Whether it is a file with one name: what is precious is not ours to forge."""
        return path.is_file() and not path.is_symlink() and path.stat().st_nlink == 1

    def _header(self) -> str:
        lines = self.where.journal.read_bytes() if self._is_plain(self.where.journal) else b""
        header: dict[str, Any] = {"format": 2, "machine_id": "", "boot_id": "", "root": ""}
        for line in lines.split(b"\n"):
            record = records.parse(line)
            if record is not None and "format" in record:
                header = dict(record)
                break
        name = self.chance.choice(tuple(header))
        header[name] = self.chance.choice(("../..", "/etc", "a\0b", self._odd()))
        data = records.framed(json.dumps(header).encode())
        if self._is_plain(self.where.journal):
            self.where.journal.write_bytes(data * 2 + lines)
        return f"journal: header {header!r:.300}"

    # The others ----------------------------------------------------------------------------------

    def _odd(self) -> Any:
        deep: Any = []
        for _ in range(self.chance.choice((1, 70, 900))):
            deep = [deep] if self.chance.random() < 0.5 else {"a": deep}
        return self.chance.choice((*_NUMBERS, *_TEXTS, None, True, {}, [], deep, float("nan")))

    def _checkpoint(self) -> str:
        every = [path for path in self.where.checkpoints.glob("*.json") if self._is_plain(path)]
        if not every:
            return "nothing"
        path = self.chance.choice(sorted(every))
        try:
            document = json.loads(path.read_bytes())
        except ValueError:
            return "nothing"
        place = self._somewhere(document)
        path.write_text(json.dumps(document))
        return f"{path.name}: {place}: {document!r:.300}"

    def _somewhere(self, document: Any) -> str:
        """Replace one value, however deep it is."""
        here, steps = document, ""
        while isinstance(here, dict | list) and here:
            keys = list(here) if isinstance(here, dict) else list(range(len(here)))
            key = self.chance.choice(keys)
            steps += f".{key}"
            inside = here[key]
            if not isinstance(inside, dict | list) or not inside or self.chance.random() < 0.2:
                here[key] = self._odd()
                break
            here = inside
        return steps

    def _handover(self) -> str:
        body = {"boot_id": self._odd(), "boottime": self._odd()}
        text = self.chance.choice((json.dumps(body), json.dumps(self._odd()), "[" * 100_000))
        self._put(self.where.handover, text.encode("utf-8", "surrogatepass"))
        return f"handover: {text[:200]}"

    def _put(self, path: Path, data: bytes) -> None:
        if path.is_dir() or (path.exists() and not path.is_file()):
            return
        path.unlink(missing_ok=True)
        path.write_bytes(data)

    def _damage(self) -> str:
        plain = [path for path in self._files() if self._is_plain(path)]
        if not plain:
            return "nothing"
        path = self.chance.choice(plain)
        data = bytearray(path.read_bytes())
        how = self.chance.choice(("flip", "flip", "cut", "zero", "noise", "empty"))
        at = self.chance.randrange(len(data)) if data else 0
        if how == "flip" and data:
            data[at] ^= 1 << self.chance.randrange(8)
        elif how == "cut":
            del data[at:]
        elif how == "zero":
            data[at:] = bytes(len(data) - at)
        elif how == "noise":
            data[at:] = self.chance.randbytes(64)
        else:
            data = bytearray()
        path.write_bytes(data)
        return f"{path.name}: {how} at {at}"

    def _listen(self, path: Path) -> None:
        # A socket's name has a bound, a directory's descriptor has not.
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(f"/proc/self/fd/{folder}/{path.name}")
        finally:
            os.close(folder)

    def _other_kind(self) -> str:
        """Something else in the place of a file."""
        path = self.chance.choice(self._files())
        if path.is_dir():
            return "nothing"
        path.unlink(missing_ok=True)
        path.parent.mkdir(exist_ok=True)
        how = self.chance.choice(
            ("link", "dangling", "pipe", "directory", "socket", "name", "mode")
        )
        if how == "link":
            path.symlink_to(self.precious)
        elif how == "dangling":
            path.symlink_to(self.precious.with_name("nothing"))
        elif how == "pipe":
            os.mkfifo(path)
        elif how == "directory":
            path.mkdir()
        elif how == "socket":
            self._listen(path)
        elif how == "name":
            os.link(self.precious, path)
        else:
            path.write_bytes(b"")
            path.chmod(0o666)
        return f"{path.name}: a {how}"
