"""The service under a real systemd: starting, every way to end, and who puts the limits back.

Covers: systemd/*.service, ``koordlet restore --after-stop`` and ``--when-overdue`` in their place.
Does not cover: the decisions without systemd (``tests.agent.test_handover_keeper``), what a policy
decides.

One machine serves all tests. Each scenario begins with a healthy agent, whatever was before.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

import pytest

from tests.docs import commands, test_systemd_page
from tests.vm import machine, root
from tests.vm.fixtures import Boot

pytestmark = pytest.mark.vm

Scene = Callable[..., dict[str, Any]]

#: What the workloads get: CPU 0 of two is reserved.
LIMITED = {"web": "1", "batch": "1", "user": "1"}
RESTORED = {"web": "0-1", "batch": None, "user": None}
#: Everything that the agent changes here.
CHANGED = {
    "/sys/fs/cgroup/own/batch/cpuset.cpus",
    "/sys/fs/cgroup/own/cgroup.subtree_control",
    "/sys/fs/cgroup/own/user/cpuset.cpus",
    "/sys/fs/cgroup/system.slice/web.service/cpuset.cpus",
}
#: A scenario that waits for systemd to give up and for a deadline, beside whatever else runs here.
_PLAY_TIMEOUT = 3 * machine.COMMAND_TIMEOUT
#: Anything above it is a hole that nobody has thought about.
MOST_EXPOSED = 4.0


@pytest.fixture(scope="module")
def scene(boot: Boot) -> Scene:
    """Plays a scenario in a machine that has the units installed."""
    guest = boot("1s2c", systemd=True)

    def play(name: str, *args: str) -> dict[str, Any]:
        words = ["python3", "-m", "tests.vm.probes.scenes", name, *args]
        return cast("dict[str, Any]", guest.run(words, timeout=_PLAY_TIMEOUT).json())

    installed = play("install", f"{root.REPO}/systemd")
    assert installed == {"verify": ""}, "systemd-analyze verify has nothing to say"
    return play


def emptied(boot: Boot) -> str:
    """What a set of CPUs that was empty is when it is put back while processes live on it.

    Before 7.0 no kernel takes an empty one: it is as wide as can be.
    """
    release = boot("1s2c", systemd=True).run("uname -r").stdout
    return "" if int(release.partition(".")[0]) >= 7 else "0-1"


def test_ready_means_enforced(scene: Scene) -> None:
    """When ``systemctl start`` returns, the first verified pass is done: the limits are there."""
    seen = scene("start")

    at_ready = seen["at_ready"]
    assert at_ready["agent"] == ["active", "running"]
    assert at_ready["limits"] == LIMITED, "also where a group's files belong to another user"
    assert tuple(at_ready[k] for k in ("restarts", "helper", "deadline")) == (0, "inactive", None)
    assert "enforce" in seen["status"]


def test_exposure(scene: Scene) -> None:
    """Systemd's own measure of what a broken agent could do stays below the agreed one."""
    seen = scene("exposure")

    assert set(seen) == {"koordlet.service", "koordlet-restore.service"}
    assert max(seen.values()) <= MOST_EXPOSED, seen


def test_reload(scene: Scene) -> None:
    """A good file takes effect; a bad one fails the reload and changes nothing."""
    seen = scene("reloaded")

    assert (seen["good"], seen["again"]) == (0, 0)
    assert seen["bad"]
    assert [dict.fromkeys(LIMITED, "0")] * 2 == seen["kept"]
    assert seen["same_agent"]


def test_systemd_reads_its_units_again(scene: Scene) -> None:
    """What a daemon-reload overwrites is written again; agent and deadline are not concerned."""
    seen = scene("reloaded_units")

    assert seen["same_agent"]
    assert (seen["limits"], seen["helper"], seen["deadline"]) == (LIMITED, "inactive", None)


def test_limits_of_units_are_systemd_s_own(scene: Scene, boot: Boot) -> None:
    """They are properties: reading units again and restarting one keep them; then they go back.

    Also for a unit without any CPUs of its own, to which systemd hands the controller down itself.
    """
    seen = scene("through_systemd")

    limited = {"web": ["1", "1"], "plain": ["1", "1"]}
    assert seen["before"] == {"web": ["0-1", "0-1"], "plain": ["", ""]}, seen
    assert [limited] * 3 == [seen[at] for at in ("set", "reloaded", "restarted")], seen
    assert {**seen["before"], "plain": ["", emptied(boot)]} == seen["after"], seen
    assert seen["journal"].startswith("restored 0, left 0"), seen


def test_what_the_page_says_that_policies_need(scene: Scene) -> None:
    """With its lines in both units, all three are set, and put back by a final stop.

    What runs after the agent sees another mount of procfs, with other inodes.
    """
    page = test_systemd_page.PAGE.read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| `([^`]+)`", page, re.MULTILINE))
    shipped = [
        line
        for policy in ("oom_score", "real_time")
        for line in (commands.REPO / "systemd" / rows[policy]).read_text().splitlines()
        if "=" in line and not line.startswith("#")
    ]

    seen = scene("beyond", rows["system_qos"], *shipped)

    assert ["10", "0", "0"] == seen["before"] == seen["after"]


@pytest.mark.soak  # tests.agent.test_node_shutdown has the rules
def test_a_shutdown_waits_until_workloads_have_ended_in_order(scene: Scene, boot: Boot) -> None:
    """By the real login manager: best-effort work first, then the rest, then the lock goes.

    The limit of five seconds is raised first. A shutdown that is given up takes the lock anew.
    """
    del scene  # the units are installed
    words = ["python3", "-m", "tests.vm.probes.shutdown"]
    words.append(f"{root.REPO}/systemd/drop-ins/node-shutdown.conf")
    played = boot("1s2c", systemd=True).run(words, timeout=_PLAY_TIMEOUT)
    seen = cast("dict[str, Any]", played.json())

    assert seen["limit"] == "t 1500000000"
    assert seen["meanwhile"] == {"web": "active", "locks": 1, "conditions": ["NodeShutdown"]}
    assert seen["ended"] == ["host/user", "host/batch", "host/web"]
    assert (seen["web"], seen["record"]) == ("inactive", ["endTime", "startTime"])


def test_kill(scene: Scene) -> None:
    """After kill -9 the limits stay without a gap, and a new agent ends the hand-over."""
    seen = scene("killed")

    assert seen["seen"] == ["1"]
    assert seen["kept"], "a daemon-reload in between moves no deadline"
    assert (seen["more"], seen["limits"], seen["deadline"]) == (1, LIMITED, None)
    assert seen["undone"] == {}


def test_restart(scene: Scene) -> None:
    """A restart hands the limits over without a gap; READY has cleared the deadline."""
    seen = scene("restarted")

    assert seen["another"]
    assert seen["seen"] == ["1"]
    assert (seen["limits"], seen["deadline"], seen["undone"]) == (LIMITED, None, {})


def test_watchdog(scene: Scene) -> None:
    """An agent that hangs is killed and replaced; the limits stay."""
    seen = scene("hung")

    assert seen["timeout"]
    assert seen["seen"] == ["1"]
    assert seen["agent"] == ["active", "running"]


@pytest.mark.soak  # tests.state.test_handover has the deadline
def test_crash_loop(scene: Scene) -> None:
    """Nobody becomes ready: all is put back at the deadline, not before; a good start recovers."""
    seen = scene("crash_loop")

    # Put back to all CPUs (7.0: to no wish), and then the controller is switched off; a look may
    # miss the first.
    assert [cpus for cpus in seen["seen"] if cpus not in ("0-1", "")] == ["1", None]
    assert seen["late"] >= 0
    assert seen["restarts"] >= 1
    assert dict.fromkeys(CHANGED, 1) == seen["undone"]
    assert seen["different"] == []
    assert (seen["recovered"]["limits"], seen["recovered"]["deadline"]) == (LIMITED, None)


@pytest.mark.soak  # test_kill has the kill, tests.agent.test_reload the file
def test_a_typing_error_costs_itself(scene: Scene) -> None:
    """A crash beside a broken file: the limits stay without a gap, and the status says why."""
    seen = scene("broken_file")

    assert seen["seen"] == ["1"]
    assert (
        seen["agent"],
        seen["limits"],
        seen["deadline"],
    ) == (["active", "running"], LIMITED, None)
    assert "no_such_key" in seen["status"]
    assert "in force: the last good configuration" in seen["status"]


@pytest.mark.soak  # minutes each: nothing runs until the deadline
@pytest.mark.parametrize(
    "name",
    [
        "half_upgraded",
        "out_of_memory",
        "cut_off_stop",
    ],
)
def test_where_nothing_of_the_unit_can_run(scene: Scene, name: str) -> None:
    """The timer has everything put back at the deadline, not before, and once."""
    seen = scene(name)

    assert seen["after_giving_up"] == LIMITED, "for good, were it not for the timer"
    assert seen["late"] >= 0
    assert dict.fromkeys(CHANGED, 1) == seen["undone"]
    assert seen["different"] == []
    assert not seen["journal"], "nothing is looked after any more"


@pytest.mark.soak  # test_final_stop has the clean stop
def test_a_workload_that_is_a_slice(scene: Scene, boot: Boot) -> None:
    """A clean stop is one, although systemd has taken the file away before we could clean it up."""
    seen = scene("stopped_slice")

    assert (seen["status"], seen["result"]) == (0, "success")
    assert seen["after"] in (seen["before"], emptied(boot), None)


@pytest.mark.parametrize(
    "name",
    [
        "stopped_while_away",
        # From there the same way back.
        pytest.param("stopped", marks=pytest.mark.soak),
        pytest.param("stopped_after_giving_up", marks=pytest.mark.soak),
        pytest.param("stopped_while_waiting", marks=pytest.mark.soak),
    ],
)
def test_final_stop(scene: Scene, name: str) -> None:
    """However the agent was when it is stopped for good, everything is put back at once, once."""
    seen = scene(name)

    assert LIMITED["batch"] == seen["before"]["limits"]["batch"]
    assert seen["different"] == []
    assert dict.fromkeys(CHANGED, 1) == seen["undone"]
    assert (seen["limits"], seen["deadline"]) == (RESTORED, None)
    assert seen["helper"] == "inactive"
    if name == "stopped":
        assert (seen["agent"], seen["result"]) == (["inactive", "dead"], "success")
        assert seen["again"] == "restored 0, left 0, failed 0\n"
    if name == "stopped_while_waiting":
        assert seen["look"] == "inactive", "refused, and not failed"
