"""On this host: what cannot work says so in one clear line, with its status, changing nothing."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit import agents, deadline, images, live, live_workloads, needs

pytestmark = pytest.mark.e2e

needs_unshare = needs.program("unshare")


def in_own_mounts(change: str, words: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command in a mount namespace of its own, after a change to its mounts."""
    script = f'{change} && exec "$@"'
    return live.call(["unshare", "-m", "sh", "-c", script, "sh", *words])


def test_a_second_agent_names_the_first(place: live.Place) -> None:
    """The second agent over the same state is refused with 1, naming the first one's pid."""
    with place.running("--demo") as demo:
        demo.until("READY=1")
        before = place.image()
        second = place.call("run")
        restore = place.call("restore")
        changed = images.difference(before, place.image())

    # The first agent goes on: the demo switches its policies off and on, and its processes start
    # threads and children of their own.
    alive = ("/koordlet-demo/", "/cgroup.procs", "/tasks")
    assert not [path for path in changed if not any(word in path for word in alive)]
    for refused in (second, restore):
        assert refused.returncode == 1
        assert f"pid {demo.process.pid}" in refused.stderr
        assert "Traceback" not in refused.stderr


def test_a_second_agent_with_another_state_directory(place: live.Place, tmp_path: Path) -> None:
    """The claim is on the cgroup tree itself: another state directory does not get around it."""
    with place.running("--demo") as demo:
        demo.until("READY=1")
        words = place.command("run")
        words[words.index("--state-dir") + 1] = str(tmp_path)
        refused = live.call(words)

    assert refused.returncode == 1
    assert f"another koordlet manages this cgroup tree (pid {demo.process.pid}" in refused.stderr


@needs.program("setpriv")
def test_without_root_the_demo_plays_elsewhere(place: live.Place) -> None:
    """As nobody, ``run --demo`` says in one line where it plays, and changes nothing here."""
    place.state.parent.chmod(0o755)
    place.state.mkdir()
    os.chown(place.state, 65534, 65534)
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    if live.call([*nobody, sys.executable, "-c", "import koordlet"]).returncode:
        # Where a checkout lies, below /root for instance, is not for a set-up to decide.
        pytest.skip("nobody cannot read this installation")
    before = place.image()
    demo = live.Running(
        [*nobody, *place.command("run", "--demo", "--http", "127.0.0.1:0")], place.state
    )
    try:
        demo.greets()
        assert images.difference(before, place.image()) == {}
        assert demo.ends(signal.SIGINT) == 0
    finally:
        demo.close()

    assert demo.err.count("not running as root: the demo runs on a recorded machine") == 1
    assert "koordlet on two-sockets, enforcing" in demo.out
    assert "Traceback" not in demo.err
    assert images.difference(before, place.image()) == {}


@needs_unshare
def test_a_read_only_cgroup_mount(place: live.Place) -> None:
    """On a read-only mount the agent observes and names the mount; restore changes nothing."""
    mount = place.cpuset.rpartition("/")[0]
    before = place.image()
    checked = in_own_mounts(
        f"mount -o remount,ro,bind {mount}",
        [sys.executable, "-m", "koordlet", "check", "--cgroup-root", place.name],
    )
    strict = in_own_mounts(
        f"mount -o remount,ro,bind {mount}",
        [sys.executable, "-m", "koordlet", "check", "--strict", "--cgroup-root", place.name],
    )

    assert (checked.returncode, strict.returncode) == (0, 1), checked.stderr
    assert re.search(f"observe: {mount}.*mounted read-only", checked.stdout)
    assert images.difference(before, place.image()) == {}


@needs_unshare
def test_a_run_on_a_read_only_mount_observes(place: live.Place) -> None:
    """``run`` there starts, says in one line that it only observes and why, and stops with 0."""
    mount = place.cpuset.rpartition("/")[0]
    words = [
        *("unshare", "-m", "sh", "-c", f'mount -o remount,ro,bind {mount} && exec "$@"', "sh"),
        *place.command("run", "--http", "127.0.0.1:0"),
    ]
    before = place.image()
    agent = live.Running(words, place.state)
    try:
        agent.until("READY=1")
        assert agent.ends(signal.SIGTERM) == 0
    finally:
        agent.close()

    assert re.search(f"observing only, changing nothing: {mount}.*mounted read-only", agent.err)
    assert images.difference(before, place.image()) == {}


@needs_unshare
def test_no_cgroup_mount_at_all(place: live.Place) -> None:
    """Without any cgroup mount check and plan say so, and nothing breaks."""
    change = "umount -R /sys/fs/cgroup 2>/dev/null || umount -l /sys/fs/cgroup"
    before = place.image()
    checked = in_own_mounts(change, [sys.executable, "-m", "koordlet", "check"])
    planned = in_own_mounts(change, [sys.executable, "-m", "koordlet", "plan"])

    assert (checked.returncode, planned.returncode) == (0, 0), checked.stderr + planned.stderr
    assert "no cgroup hierarchy is mounted" in checked.stdout
    assert "no mounted hierarchy has cpuset" in planned.stdout
    assert images.difference(before, place.image()) == {}


@pytest.mark.parametrize(
    ("content", "refusal"),
    [
        (None, "directory"),
        (b"\x00\x01\xff" * 50, "config.yaml"),
        (b"", None),
        (b"# " + b"x" * (10 << 20), "config.yaml"),
        (
            b"apiVersion: koordlet.io/v1\nkind: Config\na: &a [x,x,x,x,x,x,x,x,x]\n"
            + b"".join(
                b"%c: &%c [%s]\n" % (n, n, b",".join([b"*%c" % (n - 1)] * 9)) for n in b"bcdefghi"
            ),
            "config.yaml",
        ),
        (b"apiVersion: koordlet.io/v1\nkind: Config\nmod: observe\n", "mode"),
    ],
    ids=["directory", "binary", "empty", "10 MB", "bomb", "unknown key"],
)
def test_bad_configurations(
    place: live.Place, tmp_path: Path, content: bytes | None, refusal: str | None
) -> None:
    """An agent with a bad file names it and the reason, goes on, and changes nothing."""
    path = tmp_path / "config.yaml"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    before = place.image()
    if refusal is None:
        words = [sys.executable, "-m", "koordlet", "plan", "--config", str(path)]
        assert live.call(words).returncode == 0
        return
    with place.running("--config", str(path)) as agent:
        agent.until("READY=1")
        first = agent.err.partition("\n{")[0]
        assert agent.ends(signal.SIGTERM) == 0

    assert str(path) in first
    assert refusal in first
    assert "Traceback" not in agent.err
    assert len(first) < 2000
    assert images.difference(before, place.image()) == {}


def test_configuration_changes_while_running(place: live.Place) -> None:
    """A changed file is taken with and without SIGHUP; a bad one keeps the old one and is said."""
    live_workloads.furnish(place)
    path = live_workloads.config(place)
    with place.running("--config", str(path)) as agent:
        agent.until("READY=1")
        first = place.read("batch/cpuset.cpus")
        path.write_text(agents.HEADER + place.config.replace('cpus: "0"', 'cpus: "1"'))
        second = deadline.until(
            lambda: (now := place.read("batch/cpuset.cpus")) != first and now, "no signal needed"
        )
        path.write_text(agents.HEADER + "nonsense: true\n")
        agent.process.send_signal(signal.SIGHUP)
        deadline.until(lambda: "config.refused" in agent.err, "the refusal")
        kept = place.read("batch/cpuset.cpus")
        path.write_text(agents.HEADER + place.config)
        agent.process.send_signal(signal.SIGHUP)
        deadline.until(lambda: place.read("batch/cpuset.cpus") == first, "back to the first")
        assert agent.ends(signal.SIGTERM) == 0

    assert second == kept
    assert second != first


def test_a_journal_that_nobody_can_read(place: live.Place) -> None:
    """What it held is not put back: ``restore`` fails, and names where the file is kept."""
    lib = place.state / "lib"
    lib.mkdir(parents=True, mode=0o700)
    (lib / "journal").write_bytes(b"garbage\n")
    done = place.call("restore")

    assert (done.returncode, done.stdout) == (1, "restored 0, left 0, failed 0\n")
    assert f"{lib}/journal.damaged: was not readable as a journal" in done.stderr
    assert place.call("restore").returncode == 0
