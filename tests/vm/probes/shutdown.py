"""A shutdown that is delayed until the workloads have ended, and is given up in the end, as JSON.

Covers: lock, limit and signals of the real login manager. Does not cover: what must be seen
(``tests.vm.test_systemd``).

The machine lives on: while one workload is still there, the target that would reboot it is masked.
"""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import urllib.request

from tests.vm.probes import service

_RECORD = pathlib.Path("/var/lib/koordlet/node-shutdown.json")
#: More than anybody waits here: what ends earlier does not use its seconds up.
_ROWS = """nodeShutdown:
  byPriority: [{priority: 0, seconds: 900}, {priority: 9000, seconds: 600}]
"""
_DROP_IN = (service.DROP_INS / f"{service.AGENT}.d").joinpath("node-shutdown.conf")
_LOGIN = ("org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager")
#: Ends when it is killed, and not by SIGTERM: what is ignored stays ignored through an exec.
_STUBBORN = ("sh", "-c", 'trap "" TERM; exec sleep infinity')


def main(drop_in: str) -> dict[str, object]:
    """Play it, with the drop-in that is shipped."""
    _DROP_IN.parent.mkdir(parents=True, exist_ok=True)
    _DROP_IN.write_text(pathlib.Path(drop_in).read_text())
    service.configure(extra=_ROWS)
    group = service.FILES["batch"].parent
    with subprocess.Popen(_STUBBORN) as process:
        (group / "cgroup.procs").write_text(str(process.pid))
        service.sh("systemctl", "daemon-reload").check_returncode()
        service.sh("systemctl", "stop", service.AGENT)
        service.begin()
        service.wait("the lock", lambda _: _locks() == 1)
        seen: dict[str, object] = {"limit": _limit()}
        service.sh("busctl", "call", *_LOGIN, "Reboot", "b", "false").check_returncode()
        service.wait("the user's work has ended", lambda _: _ended() == ["host/user"])
        seen["meanwhile"] = {"web": _web(), "locks": _locks(), "conditions": _conditions()}
        service.sh("systemctl", "mask", "--runtime", "reboot.target").check_returncode()
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    service.wait("the end is recorded", lambda _: (_record() or {}).get("endTime"))
    service.wait("another lock", lambda _: _locks() == 1 and not _conditions())
    seen |= {"ended": _ended(), "web": _web(), "record": sorted(_record() or {})}
    _clean(group)
    return seen


def _clean(group: pathlib.Path) -> None:
    """Leave the machine as the other scenarios want it."""
    service.sh("systemctl", "unmask", "--runtime", "reboot.target").check_returncode()
    service.sh("systemctl", "start", "web.service").check_returncode()
    for place in (group, service.FILES["user"].parent):
        with subprocess.Popen(["sleep", "infinity"]) as process:
            (place / "cgroup.procs").write_text(str(process.pid))
            process.returncode = 0  # it stays
    _DROP_IN.unlink()
    service.configure()
    service.sh("systemctl", "daemon-reload").check_returncode()
    service.sh("systemctl", "stop", service.AGENT).check_returncode()  # the next one begins it


def _locks() -> int:
    listed = service.sh("systemd-inhibit", "--list", "--no-legend", "--no-pager").stdout
    return sum(line.split()[:1] == ["koordlet"] for line in listed.splitlines())


def _limit() -> str:
    return service.sh("busctl", "get-property", *_LOGIN, "InhibitDelayMaxUSec").stdout.strip()


def _web() -> str:
    return service.sh("systemctl", "is-active", "web.service").stdout.strip()


def _record() -> dict[str, object] | None:
    text = service.read(_RECORD)
    return None if text is None else json.loads(text)


def _ended() -> list[str]:
    """The workloads that ended for the shutdown, in that order."""
    lines = map(json.loads, (service.read(service.AUDIT) or "").splitlines())
    return [line["pod"] for line in lines if line.get("policy") == "node_shutdown"]


def _conditions() -> list[str]:
    """Of the agent, that are of the shutdown."""
    try:
        with urllib.request.urlopen("http://127.0.0.1:9316/metrics", timeout=5) as answer:
            shown = answer.read().decode()
    except OSError:
        return ["no answer"]
    return [word for word in ("NodeShutdown", "ShutdownNotDelayed") if f'"{word}"' in shown]


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
