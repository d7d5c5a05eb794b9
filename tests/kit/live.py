"""A test group of our own on the real kernel, agents below it, and the program as a process.

Covers: the group in every v1 hierarchy that counts, always removed; forked agents that are killed;
``koordlet`` started, watched through its service-manager socket, ended.
Does not cover: machines without cgroup v1 (the virtual machine has v2).
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from koordlet import log
from koordlet.agent import lifecycle, tick
from koordlet.agent import restore as agent_restore
from koordlet.host.cgroup import hierarchies
from koordlet.host.fs import live_host, root
from koordlet.state import paths
from tests.kit import agents, deadline, dying, images

CONTROLLERS = ("cpuset", "cpu", "cpuacct")
PROJECT = Path(__file__).parents[2]
HOST = live_host.LiveHost()


def why_not() -> str:
    """Why nothing can be tried here; empty when it can."""
    if os.geteuid() != 0:
        return "needs root"
    layout = hierarchies.writable(HOST, hierarchies.discover(HOST))
    for name in CONTROLLERS:
        holder = layout.holder(name)
        if holder is None or holder.unified or not holder.writable:
            return f"no writable cgroup v1 hierarchy has {name}"
    return ""


@dataclass(slots=True)
class Place:
    """A test group in each hierarchy, and what runs in it."""

    name: str
    state: Path
    config: str = ""
    children: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def tops(self) -> list[str]:
        """The directory of the test group in each hierarchy, once each."""
        layout = hierarchies.discover(HOST)
        mounts = [h.mount for name in CONTROLLERS if (h := layout.holder(name)) is not None]
        return [f"{mount}/{self.name}" for mount in dict.fromkeys(mounts)]

    @property
    def cpuset(self) -> str:
        """The test group in the hierarchy of cpuset."""
        holder = hierarchies.discover(HOST).holder("cpuset")
        assert holder is not None
        return f"{holder.mount}/{self.name}"

    @property
    def paths(self) -> paths.Paths:
        """Where the agents keep what outlives them."""
        return paths.choose({}, root=True, state_dir=str(self.state))

    def group(self, path: str, cpus: str | None = None) -> str:
        """Make a group with a set, in the hierarchy of cpuset; its directory."""
        directory = f"{self.cpuset}/{path}"
        HOST.mkdir(HOST.at(directory))
        _fill(directory, cpus)
        return directory

    def sleeper(self, directory: str) -> int:
        """A process in a group."""
        process = subprocess.Popen(["sleep", "infinity"], stdin=subprocess.DEVNULL)
        self.children.append(process)
        HOST.write(HOST.at(f"{directory}/cgroup.procs"), b"%d\n" % process.pid)
        return process.pid

    def read(self, path: str) -> str:
        """A file below the test group of cpuset."""
        return HOST.text(HOST.at(f"{self.cpuset}/{path}")).strip()

    def image(self) -> images.Image:
        """Every writable control file below the test groups."""
        return images.image(HOST, *self.tops)

    # Agents in forked processes -------------------------------------------------------------------

    def forked(self, act: Callable[[lifecycle.Agent], object], host: root.HostRoot = HOST) -> int:
        """Let an agent act in a process of its own; how that process ended."""
        pid = os.fork()
        if pid == 0:
            with contextlib.suppress(BaseException):
                log.configure("error", "json")
                act(self.one_agent(host))
                os._exit(0)
            os._exit(1)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def one_agent(self, host: root.HostRoot = HOST) -> lifecycle.Agent:
        """An agent in this process; whoever asks closes it."""
        run = tick.Tick(host, agents.effective(self.config), base=self.name)
        return lifecycle.Agent(run, self.paths, enforce=True)

    def killed(self, act: Callable[[lifecycle.Agent], object], after: int, *, done: bool) -> bool:
        """Whether an agent was killed at its n-th change, really, by SIGKILL."""

        def to_the_end(who: lifecycle.Agent) -> None:
            try:
                act(who)
            except dying.Killed:
                os.kill(os.getpid(), signal.SIGKILL)

        return self.forked(to_the_end, dying.DyingHost(HOST, after, done=done)) == -signal.SIGKILL

    def restore(self) -> agent_restore.Summary:
        """Put everything back, here and now."""
        who = self.one_agent()
        try:
            return who.restore()
        finally:
            who.close()

    # The program ----------------------------------------------------------------------------------

    def command(self, name: str, *words: str) -> list[str]:
        """A command line that works below the test group and over this state."""
        where = ["--cgroup-root", self.name, "--state-dir", str(self.state)]
        return [sys.executable, "-m", "koordlet", name, *where, *words]

    def call(self, name: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return call(self.command(name, *words))

    @contextlib.contextmanager
    def running(
        self, *words: str, inside: Path | None = None, project: Path = PROJECT
    ) -> Iterator[Running]:
        """``koordlet run`` of that checkout; ended at the latest here. ``inside`` that cgroup."""
        command = self.command("run", "--http", "127.0.0.1:0", *words)
        if inside is not None:
            enter = 'echo $$ > "$0" && exec "$@"'
            command = ["sh", "-c", enter, str(inside / "cgroup.procs"), *command]
        agent = Running(command, self.state, project)
        try:
            yield agent
        finally:
            agent.close()


def call(
    words: Sequence[str], env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, in the project's directory."""
    return subprocess.run(
        words,
        capture_output=True,
        text=True,
        check=False,
        cwd=PROJECT,
        env={**os.environ, **(env or {})},
        timeout=deadline.PATIENCE,
    )


class Running:
    """The program as a service manager sees it."""

    def __init__(self, words: Sequence[str], state: Path, project: Path = PROJECT) -> None:
        state.mkdir(parents=True, exist_ok=True)
        self._place = state / "notify"
        self._place.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(self._place))
        self._socket.settimeout(0.2)
        self.told: list[str] = []
        self._out = (state / "out").open("wb")
        self._err = (state / "err").open("wb")
        self.process = subprocess.Popen(
            words,
            cwd=project,
            stdin=subprocess.DEVNULL,
            stdout=self._out,
            stderr=self._err,
            env={**os.environ, "NOTIFY_SOCKET": str(self._place)},
        )
        self._state = state

    @property
    def out(self) -> str:
        """What it printed for people."""
        return (self._state / "out").read_text()

    @property
    def err(self) -> str:
        """What it logged."""
        return (self._state / "err").read_text()

    @property
    def dead(self) -> bool:
        """Whether it has ended."""
        return self.process.poll() is not None

    @property
    def stands(self) -> bool:
        """Whether a signal has stopped it."""
        stat = Path(f"/proc/{self.process.pid}/stat").read_text()
        return stat.rpartition(")")[2].split()[0] == "T"

    def until(self, what: str) -> None:
        """Wait until it tells the service manager something."""
        try:
            deadline.until(lambda: self._heard(what), what)
        except AssertionError as error:
            error.add_note(self.err[-2000:])
            raise

    def _heard(self, what: str) -> bool:
        assert self.process.poll() is None, f"ended: {self.err[-2000:]}"
        with contextlib.suppress(TimeoutError):
            self.told.append(self._socket.recv(4096).decode())
        return any(what in message for message in self.told)

    def greets(self) -> str:
        """Wait until it has greeted a person; the greeting."""
        try:
            deadline.until(lambda: "Ctrl-C" in self.out, "the greeting")
        except AssertionError as error:
            error.add_note(self.err[-2000:])
            raise
        return self.out

    def ends(self, number: signal.Signals | None = None) -> int:
        """Its exit status, after a signal where one is given."""
        if number is not None:
            self.process.send_signal(number)
        return self.process.wait(deadline.PATIENCE)

    def close(self) -> None:
        """End it whatever happens: first so that it puts everything back."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(deadline.PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._socket.close()
        self._out.close()
        self._err.close()


@contextlib.contextmanager
def place(name: str, state: Path) -> Iterator[Place]:
    """A test group that is gone afterwards, with everything in it."""
    made = Place(name=name, state=state)
    try:
        for top in made.tops:
            HOST.mkdir(HOST.at(top))
        _fill(made.cpuset, None)
        yield made
    finally:
        for process in made.children:
            process.kill()
        for process in made.children:
            process.wait()
        for top in made.tops:
            _remove(top)


def _fill(directory: str, cpus: str | None) -> None:
    above = directory.rpartition("/")[0]
    for name, value in (("cpuset.cpus", cpus), ("cpuset.mems", None)):
        text = HOST.text(HOST.at(f"{above}/{name}")) if value is None else value
        HOST.write(HOST.at(f"{directory}/{name}"), text.encode())


def _remove(top: str) -> None:
    if not HOST.exists(HOST.at(top)):
        return
    for directory in sorted(images.groups(HOST, top), key=len, reverse=True):
        for pid in HOST.text(HOST.at(f"{directory}/cgroup.procs")).split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        deadline.removed(Path(directory))


def end(processes: Iterable[subprocess.Popen[bytes]], made: Sequence[Path]) -> None:
    """End all of them, close their pipes, remove the groups that were made, inner ones first."""
    for process in processes:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
    for path in reversed(made):
        with contextlib.suppress(OSError):
            path.rmdir()
