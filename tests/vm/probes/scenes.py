"""Scenarios of the koordlet service in the guest: what was seen, as JSON.

Covers: installing, starting, reloading, every way to end (``python3 -m tests.vm.probes.scenes``).
Does not cover: what must be seen (``tests.vm.test_systemd``).
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import signal
import sys
import time
from collections.abc import Callable

from tests.vm.probes import service

#: In a drop-in: a start that fails for good.
_FAILS = "ExecStartPre=/bin/false"


def install(units: str) -> dict[str, object]:
    """Units, configuration, workloads."""
    service.PROGRAM.parent.mkdir(parents=True)
    service.PROGRAM.write_text(service.COMMAND)
    service.PROGRAM.chmod(0o755)
    units_of_ours = (service.AGENT, service.HELPER, service.SWITCH, service.LOOK)
    for unit in units_of_ours:
        shutil.copy(pathlib.Path(units, unit), service.UNITS)
    service.configure()
    service.tune()
    service.work()
    paths = [str(service.UNITS / unit) for unit in units_of_ours]
    verified = service.sh("systemd-analyze", "verify", *paths)
    return {"verify": verified.stderr + verified.stdout}


def start() -> dict[str, object]:
    """Start; then a group whose files belong to another user, as below user@.service."""
    service.begin()
    at_ready, status = service.facts(), service.state().agent["StatusText"]
    group = service.FILES["user"].parent
    for path in (group, *group.iterdir()):
        os.chown(path, 1000, 1000)
    service.FILES["user"].write_text("0-1")
    service.wait("the limit in a group of another user", service.healthy, 30)
    return {"at_ready": at_ready, "status": status}


def exposure() -> dict[str, object]:
    """What systemd-analyze says of both units, as they run here."""
    scores: dict[str, object] = {}
    for unit in (service.AGENT, service.HELPER):
        last = service.sh("systemd-analyze", "security", "--no-pager", unit).stdout.splitlines()[-1]
        scores[unit] = float(last.partition(": ")[2].split()[0])
    return scores


def killed() -> dict[str, object]:
    """SIGKILL, and systemd reads its units again while the agent is away."""
    pid = service.begin()
    before = service.starts()
    with service.watching() as seen:
        os.kill(pid, signal.SIGKILL)
        away = service.wait("a deadline", lambda _: service.DEADLINE.exists()).agent["ActiveState"]
        deadline = service.read(service.DEADLINE)
        service.sh("systemctl", "daemon-reload").check_returncode()
        kept = service.read(service.DEADLINE) in (deadline, None)
        service.wait("another agent", service.came_back(pid))
    return {
        "seen": seen,
        "away": away,
        "kept": kept,
        "more": service.starts() - before,
        **service.facts(),
        "undone": service.undone(),
    }


def reloaded_units() -> dict[str, object]:
    """A daemon-reload beside a running agent: systemd writes its own values again."""
    pid = service.begin()
    service.FILES["web"].write_text("0-1")
    service.sh("systemctl", "daemon-reload").check_returncode()
    now = service.wait("the limits are back", service.healthy)
    return {"same_agent": now.pid == pid, **service.facts()}


def through_systemd() -> dict[str, object]:
    """Limits of units: set, units read again, a unit restarted, put back; what systemd shows."""
    (service.UNITS / "plain.service").write_text(service.PLAIN)
    service.sh("systemctl", "daemon-reload").check_returncode()
    service.sh("systemctl", "start", "plain.service").check_returncode()
    service.sh("systemctl", "stop", service.AGENT)
    plain = "workloads:\n  - {name: plain, qos: BE, match: {unit: plain.service}}\n"
    before = service.shown()
    service.configure()
    config = service.CONFIG.read_text()
    service.CONFIG.write_text(config.replace("workloads:\n", plain))
    service.begin()
    limited: dict[str, list[str | None]] = {"web": ["1", "1"], "plain": ["1", "1"]}
    seen: dict[str, object] = {"before": before, "set": service.settled(limited)}
    service.sh("systemctl", "daemon-reload").check_returncode()
    seen["reloaded"] = service.settled(limited)
    service.sh("systemctl", "restart", "plain.service").check_returncode()
    seen["restarted"] = service.settled(limited)
    service.sh("systemctl", "stop", service.AGENT).check_returncode()
    # What systemd was too slow for is done by asking again; then there is nothing left.
    service.sh("/opt/koordlet/bin/koordlet", "restore")
    seen["after"] = service.shown()
    seen["journal"] = service.sh("/opt/koordlet/bin/koordlet", "restore").stdout
    service.sh("systemctl", "stop", "plain.service")
    service.configure()
    return seen


def beyond(*lines: str) -> dict[str, object]:
    """Policies that write elsewhere than into cgroups, with these lines in both units."""

    def where() -> list[str | None]:
        main = service.sh("systemctl", "show", "-P", "MainPID", "web.service").stdout.strip()
        setting = pathlib.Path("/proc/sys/vm/watermark_scale_factor")
        score = pathlib.Path("/proc", main, "oom_score_adj")
        policy = str(os.sched_getscheduler(int(main)))
        return [service.read(setting), service.read(score), policy]

    service.sh("systemctl", "stop", service.AGENT).check_returncode()
    before, config = where(), service.CONFIG.read_text()
    more = (
        "  system_qos: {mode: enforce, watermarkScaleFactor: 200}\n  oom_score: {mode: enforce}\n"
        "  real_time: {mode: enforce}\n"
    )
    asking = config.replace("web, qos: LS,", "web, qos: LSR, realTime: true,")
    service.CONFIG.write_text(asking + more)
    folders = [
        pathlib.Path("/run/systemd/system", f"{unit}.d") for unit in (service.AGENT, service.HELPER)
    ]
    for folder in folders:
        folder.mkdir(exist_ok=True)
        (folder / "beyond.conf").write_text("\n".join(["[Service]", *lines]) + "\n")
    service.sh("systemctl", "daemon-reload").check_returncode()
    service.begin()
    wanted = ["200", "-997", str(os.SCHED_RR)]
    service.wait("settings, scores and a scheduling class", lambda _: where() == wanted)
    service.sh("systemctl", "stop", service.AGENT).check_returncode()
    after = where()
    for folder in folders:
        (folder / "beyond.conf").unlink()
    service.configure()
    service.sh("systemctl", "daemon-reload").check_returncode()
    return {"before": before, "after": after}


def restarted() -> dict[str, object]:
    """A restart."""
    pid = service.begin()
    with service.watching() as seen:
        service.sh("systemctl", "restart", service.AGENT).check_returncode()
        after = service.facts()
        now = service.wait("another agent", service.came_back(pid))
    return {"seen": seen, "another": now.pid != pid, **after, "undone": service.undone()}


def reloaded() -> dict[str, object]:
    """Reload with a good file and with bad ones, of which one reaches the agent."""
    pid = service.begin()
    service.configure(reserved="1")
    good = service.sh("systemctl", "reload", service.AGENT).returncode
    service.wait("the new limits", lambda _: service.limited("0"))
    service.configure(extra="no_such_key: 1\n")
    bad = service.sh("systemctl", "reload", service.AGENT).returncode
    kept = [service.limits()]
    service.configure(extra="{\n")
    os.kill(pid, signal.SIGHUP)  # around ExecReload='s own look at the file
    service.wait("the agent's word", lambda _: "config.refused" in service.said())
    kept.append(service.limits())
    service.configure()
    again = service.sh("systemctl", "reload", service.AGENT).returncode
    now = service.wait("the first limits", service.healthy)
    return {"good": good, "bad": bad, "again": again, "kept": kept, "same_agent": now.pid == pid}


def hung() -> dict[str, object]:
    """SIGSTOP: nobody pets the watchdog.

    On a slow machine it may also end an agent that is only late: then systemd starts another, and
    does not give up.
    """
    service.tune("WatchdogSec=20", "[Unit]", "StartLimitBurst=100")
    service.sh("systemctl", "restart", service.AGENT).check_returncode()
    pid = service.begin()
    with service.watching() as seen:
        os.kill(pid, signal.SIGSTOP)
        service.wait("another agent", service.came_back(pid))
    service.tune()
    return {"seen": seen, "timeout": "Watchdog timeout" in service.said(), **service.facts()}


def crash_loop() -> dict[str, object]:
    """Something that no start survives: the helper restores at the deadline, once."""
    service.tune(handover=6)
    pid = service.begin()
    with service.watching() as seen:
        service.tune(_FAILS, handover=6)
        os.kill(pid, signal.SIGKILL)
        late = _put_back()
        service.wait("systemd gives up", lambda now: now.ended)
        restarts = int(service.state().agent["NRestarts"])
    after = {"undone": service.undone(), "different": service.different()}
    service.tune()
    service.sh("systemctl", "reset-failed", service.AGENT)
    service.sh("systemctl", "start", service.AGENT).check_returncode()
    return {"seen": seen, "late": late, "restarts": restarts, **after, "recovered": service.facts()}


def _put_back() -> float:
    """Wait until everything is put back: how many seconds after the deadline that was.

    The timer's look may record one first, with the patience of the file; an earlier one wins.
    """
    deadlines: list[float] = []

    def back(_: service.State) -> bool:
        if text := service.read(service.DEADLINE):
            deadlines.append(json.loads(text)["boottime"])
        return service.limits()["batch"] is None

    service.wait("a deadline", lambda now: back(now) or deadlines)
    service.wait("everything is put back", back)
    return time.clock_gettime(time.CLOCK_BOOTTIME) - min(deadlines)


def stopped_after_giving_up() -> dict[str, object]:
    """Stop of a unit that has failed, long before the deadline."""
    pid = service.begin()
    service.tune(_FAILS)
    os.kill(pid, signal.SIGKILL)
    service.wait("systemd gives up", lambda now: now.agent["ActiveState"] == "failed" and now.waits)
    service.tune()
    return _stop()


def broken_file() -> dict[str, object]:
    """A typing error, and then a crash: the next agent runs with the last good configuration."""
    pid = service.begin()
    service.configure(extra="no_such_key: 1\n")
    with service.watching() as seen:
        os.kill(pid, signal.SIGKILL)
        service.wait("another agent", service.came_back(pid))
    facts = {"seen": seen, "status": service.state().agent["StatusText"], **service.facts()}
    service.configure()
    service.wait("the file is mended", lambda now: "in force" not in now.agent["StatusText"])
    return facts


def _switched(broke: Callable[[], object], mend: Callable[[], object]) -> dict[str, object]:
    """Nothing of the unit can run any more: the timer alone is left to see to the limits."""
    service.begin()
    with service.watching() as seen:
        broke()
        service.wait("systemd gives up", lambda now: now.agent["ActiveState"] == "failed")
        limits = service.limits()
        mend()
        service.wait("the switch", lambda now: now.waits)
        late = _put_back()
        service.wait("the helper ends", lambda now: now.alone)
    scene = {
        "after_giving_up": limits,
        "seen": seen,
        "late": late,
        "undone": service.undone(),
        "different": service.different(),
        "journal": pathlib.Path("/var/lib/koordlet/journal").exists(),
    }
    service.tune()
    return scene


def out_of_memory() -> dict[str, object]:
    """A limit in which not even ExecStopPost= fits."""

    def broke() -> None:
        service.tune("MemoryHigh=infinity", "MemoryMax=12M", handover=40)
        service.sh("systemctl", "restart", service.AGENT)

    return _switched(broke, lambda: None)


def half_upgraded() -> dict[str, object]:
    """The program is away while the agent dies, and comes back when systemd has given up."""
    away = service.PROGRAM.with_name("away")

    def broke() -> None:
        service.tune(handover=40)
        service.PROGRAM.rename(away)
        os.kill(service.state().pid, signal.SIGKILL)

    return _switched(broke, lambda: away.rename(service.PROGRAM))


def cut_off_stop() -> dict[str, object]:
    """An agent that does not end when told, and no time for what should follow."""

    def broke() -> None:
        # systemd wakes it with SIGCONT: it may still record a deadline of its own.
        service.tune(handover=40)
        service.sh("systemctl", "restart", service.AGENT).check_returncode()
        # A helper that still ends would put everything back together with the agent's stop.
        service.wait("nobody waits", lambda now: service.healthy(now) and now.alone)
        service.tune("TimeoutStopSec=300ms", handover=40)
        os.kill(service.state().pid, signal.SIGSTOP)
        service.sh("systemctl", "stop", service.AGENT)

    return _switched(broke, lambda: None)


def stopped_slice() -> dict[str, object]:
    """A clean stop where a workload is a slice, from which systemd takes the file away itself."""
    service.sh("systemctl", "stop", service.AGENT).check_returncode()
    words = ("--slice=jobs.slice", "--unit=job", "sleep", "infinity")
    service.sh("systemd-run", *words).check_returncode()
    config = service.CONFIG.read_text()
    more = "workloads:\n  - {name: jobs, qos: BE, match: {unit: jobs.slice}}\n"
    service.CONFIG.write_text(config.replace("workloads:\n", more))
    file = service.CGROUPS / "jobs.slice/cpuset.cpus"
    before = service.read(file)
    service.begin()
    service.wait("the slice's limit", lambda _: service.read(file) == "1")
    stopped = service.sh("systemctl", "stop", service.AGENT).returncode
    facts = {"before": before, "after": service.read(file), "status": stopped, **service.facts()}
    service.sh("systemctl", "stop", "job.service", "jobs.slice")
    service.configure()
    service.begin()
    return facts


def stopped_while_away() -> dict[str, object]:
    """Stop between a crash and the restart: systemd then runs nothing of the unit."""
    service.tune("RestartSec=60")
    pid = service.begin()
    os.kill(pid, signal.SIGKILL)
    service.wait(
        "the long pause", lambda now: now.agent["SubState"] == "auto-restart" and now.waits
    )
    facts = _stop()
    service.tune()
    return facts


def stopped_while_waiting() -> dict[str, object]:
    """Stop of an agent that has just come back, while the helper waits and the timer looks."""
    pid = service.begin()
    os.kill(pid, signal.SIGKILL)
    service.wait("another process", lambda now: now.pid not in (0, pid) and now.waits)

    def look() -> None:
        service.sh("systemctl", "stop", "--no-block", service.AGENT).check_returncode()
        service.wait("a stop", lambda now: now.helper["ActiveState"] == "deactivating")
        service.sh("systemctl", "start", service.LOOK)

    facts = _stop(look)
    look_state = service.sh("systemctl", "show", "-P", "ActiveState", service.LOOK).stdout.strip()
    service.sh("systemctl", "reset-failed", service.LOOK)
    return {**facts, "look": look_state}


def stopped() -> dict[str, object]:
    """A final stop, and an explicit restore after it."""
    service.begin()
    facts = _stop()
    again = service.sh("/opt/koordlet/bin/koordlet", "restore")
    return {**facts, "again": again.stdout + again.stderr}


def _stop(meanwhile: Callable[[], None] = lambda: None) -> dict[str, object]:
    before = service.facts()
    meanwhile()
    service.sh("systemctl", "stop", service.AGENT).check_returncode()
    service.wait("both are gone", lambda now: now.ended)
    return {
        "before": before,
        "undone": service.undone(),
        "different": service.different(),
        **service.facts(),
    }


if __name__ == "__main__":
    try:
        print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))
    except BaseException:
        # The next scenario begins as if this had not been.
        service.tune()
        service.configure()
        raise
