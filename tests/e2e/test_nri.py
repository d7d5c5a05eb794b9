"""A real container runtime asks the agent: containers are right from their first instruction."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import signal
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent import futures
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest

from koordlet.model import adjustment, cpuset
from koordlet.workloads.nri import messages, plugin, session
from tests.kit import agents, deadline, live, needs
from tests.kit.containerd import cri, programs, runtime, tidy

pytestmark = pytest.mark.e2e

_T = TypeVar("_T")

#: The program's first act, executed without a shell before it, and all that it does.
PRINT = ("/bin/busybox", "grep", "Cpus_allowed_list", "/proc/self/status")
#: CPU 0 is kept for the system, so whatever is managed gets less than the machine.
CONFIG = """
nri:
  {{mode: on, socket: {socket}, failedStarts: 2, deadlineMilliseconds: 1500, quietSeconds: {quiet}}}
policies:
  reserved_cpus: {{cpus: "0"}}
"""
#: With the kubelet's static policy new containers are given its default set: only containers are
#: narrowed then, so each has to be adjusted by itself.
STATIC = """
kubelet: {{mode: on, directory: {kubelet}, address: "127.0.0.1:1", intervalSeconds: 300}}
"""
_NO_CHECKSUM = '{"policyName":"static","defaultCpuSet":"0-1","entries":{},"checksum":0}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A runtime with NRI, and a test group that its pods lie in."""

    place: live.Place
    runtime: runtime.Runtime
    folder: Path

    @property
    def client(self) -> cri.Client:
        """What a kubelet would say it with."""
        return self.runtime.client

    def config(self, more: str = "", quiet: int = 300) -> str:
        """The agent's configuration; the path of its file."""
        path = self.folder / "config.yaml"
        (self.folder / "kubelet").mkdir(exist_ok=True)
        (self.folder / "kubelet" / "cpu_manager_state").write_text(_NO_CHECKSUM)
        text = (CONFIG + more).format(
            socket=self.runtime.nri_socket, kubelet=self.folder / "kubelet", quiet=quiet
        )
        path.write_text(agents.HEADER + text)
        return str(path)

    @contextlib.contextmanager
    def agent(self, more: str = "", quiet: int = 300) -> Iterator[live.Running]:
        """The agent, connected to the runtime."""
        with self.place.running("--config", self.config(more, quiet)) as agent:
            agent.until("READY=1")
            self.connected()
            yield agent

    def connected(self) -> None:
        """Wait until the runtime has one plugin more; the log has only whole lines."""
        wanted = self.runtime.log.count("synchronizing plugin")
        deadline.until(
            lambda: self.runtime.log.count('-koordlet\\" connected') >= max(1, wanted),
            "it is connected",
        )

    def pod(self, labels: Mapping[str, str] | None = None) -> cri.Sandbox:
        """A best-effort pod."""
        uid = str(uuid.uuid4())
        parent = f"/{self.place.name}/{self.group(uid)}"
        return self.client.run_pod(uid, parent, labels=labels, logs=str(self.folder / uid))

    def group(self, uid: str) -> str:
        """Where a kubelet has its group, below the test group."""
        return f"kubepods/besteffort/pod{uid}"

    def cpus(self, pod: cri.Sandbox, container: str = "") -> str:
        """The set of a pod or of one of its containers."""
        parts = (self.group(pod.uid), container, "cpuset.cpus")
        return self.place.read("/".join(part for part in parts if part))

    def printed(self, pod: cri.Sandbox, name: str) -> str:
        """The CPUs that a container's program found itself on."""
        path = self.folder / pod.uid / f"{name}.log"

        def found() -> str:
            text = path.read_text() if path.exists() else ""
            first = re.search(r"Cpus_allowed_list:\s*(\S+)\n", text)
            return first[1] if first is not None else ""

        return deadline.until(found, f"{name} has printed")


@pytest.fixture
def scene(
    place: live.Place, ram: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Scene]:
    """Pods, groups and the runtime are gone afterwards. runc makes containers, or who is named."""
    oci = getattr(request, "param", "runc")
    needs.unless(programs.why_not(oci))
    needs.two_cpus()
    with contextlib.ExitStack() as stack:
        stack.callback(tidy.remove, place.name)
        where = ram / "containerd"
        engine = stack.enter_context(runtime.running(where, nri=True, oci=oci))
        yield Scene(place=place, runtime=engine, folder=tmp_path)
    assert tidy.tops(place.name) == []


def starts(scene: Scene, many: int, each: int) -> list[str]:
    """What the first act of many containers prints, in pods of so many."""
    seen = []
    for _ in range(many // each):
        pod = scene.pod()
        for number in range(each):
            scene.client.run(pod, f"c{number}", PRINT)
            seen.append(scene.printed(pod, f"c{number}"))
        # A shim that ends at this very moment makes containerd say "ttrpc: closed", once.
        deadline.until(functools.partial(_ended, scene, pod), "the pod has ended")
    return seen


def _ended(scene: Scene, pod: cri.Sandbox) -> bool:
    with contextlib.suppress(RuntimeError):
        scene.client.end_pod(pod.id)
        return True
    return False


@pytest.mark.parametrize(("scene", "many"), [("runc", 25), ("crun", 5)], indirect=["scene"])
@pytest.mark.parametrize("more", ["", STATIC], ids=["inherited", "adjusted"])
def test_right_from_the_first_instruction(scene: Scene, more: str, many: int) -> None:
    """Every container's first act sees the right CPUs, inherited or by adjustment."""
    with scene.agent(more) as agent:
        assert ["1"] * many == starts(scene, many, 5)
        assert (many if more else 0) == agent.err.count('"nri.adjusted"')
        assert "ContainerAdjustmentCeased" not in agent.err
        assert "nri.failed" not in agent.err
        assert agent.ends(signal.SIGTERM) == 0
        assert "Traceback" not in agent.err


def test_a_silent_connection_is_made_anew(scene: Scene) -> None:
    """It may be dead; the runtime knows us once, and the next container is right as before."""

    def connections() -> int:
        return scene.runtime.log.count('-koordlet\\" connected')

    with scene.agent(STATIC, quiet=10) as agent:
        before = connections()
        deadline.until(lambda: connections() > before + 1, "it was silent twice")
        assert starts(scene, 2, 2) == ["1"] * 2
        # Two connections would both set the field, and the creation fail.
        assert agent.err.count('"nri.adjusted"') == 2
        assert agent.ends(signal.SIGTERM) == 0


@pytest.mark.parametrize("scene", ["runc", "crun"], indirect=True)
def test_restarts_and_kills(scene: Scene) -> None:
    """A killed agent's tiers go on narrowing what starts; the next one has all of it in hand."""
    with scene.agent() as first:
        pod = scene.pod()
        old = scene.client.run(pod, "old")
        os.kill(first.process.pid, signal.SIGKILL)
        first.process.wait()
        late = scene.pod()
        for where, name in ((pod, "away"), (late, "stray")):
            scene.client.run(where, name, PRINT)
            assert scene.printed(where, name) == "1"
        stays = scene.client.run(late, "stays")
    with scene.agent() as second:
        scene.client.stop(old)
        scene.client.remove(old)
        scene.client.run(pod, "again", PRINT)
        assert scene.printed(pod, "again") == "1"
        new = scene.client.run(pod, "new")
        assert second.ends(signal.SIGTERM) == 0

    everybody = [(pod, ""), (pod, new), (late, ""), (late, stays)]
    assert [scene.cpus(*where) for where in everybody] == ["0-1"] * 4


@pytest.mark.parametrize("scene", ["runc", "crun"], indirect=True, ids=["runc", "crun"])
@pytest.mark.parametrize("more", ["", STATIC], ids=["inherited", "adjusted"])
def test_an_update_does_not_undo_us(scene: Scene, more: str) -> None:
    """The kubelet's CPU manager asks for other CPUs and gets ours; other fields are applied.

    Afterwards the container has what it would have had without us, in the runtime's record, too.
    """
    with scene.agent(more) as agent:
        pod = scene.pod()
        box = scene.client.run(pod, "main")
        scene.client.update(box, {6: "0-1", 3: 512})
        assert scene.cpus(pod, box) == "1"
        assert agent.ends(signal.SIGTERM) == 0

    deadline.until(lambda: scene.cpus(pod, box) == "0-1", "it has what it would have had")
    scene.client.update(box, {3: 600})
    assert scene.cpus(pod, box) == "0-1"


@dataclass
class Rival:
    """Another plugin that gives every container a set."""

    def on_event(self, heard: session.Heard) -> adjustment.Adjustment:
        """CPU 1 for everybody."""
        del heard
        return adjustment.Adjustment(cpus=cpuset.CPUSet.parse("1"))

    def on_timeout(self, heard: session.Heard) -> None:
        """Nothing depends on it."""

    def on_synchronize(
        self, pods: tuple[messages.NriPod, ...], containers: tuple[messages.NriContainer, ...]
    ) -> None:
        """Nothing depends on it."""


@contextlib.contextmanager
def rival(scene: Scene) -> Iterator[None]:
    """A second plugin, connected."""

    def ask(question: Callable[[], _T]) -> futures.Future[_T]:
        answer: futures.Future[_T] = futures.Future()
        answer.set_result(question())
        return answer

    settings = plugin.NriSettings(socket=str(scene.runtime.nri_socket), name="rival", index="20")
    nri = plugin.NriPlugin(settings, Rival(), ask)
    nri.start()
    try:
        deadline.until(lambda: nri.status.connected, "the rival is connected")
        yield
    finally:
        nri.stop()


def test_a_second_plugin_that_sets_the_same_field(scene: Scene) -> None:
    """Creations fail; each is tried again without us, and after so many we cease until told."""
    with scene.agent(STATIC) as agent, rival(scene):
        pod = scene.pod()
        for name in ("first", "second"):
            with pytest.raises(RuntimeError, match="both tried to set"):
                scene.client.run(pod, name, PRINT)
        scene.client.run(pod, "first", PRINT)
        scene.client.run(pod, "third", PRINT)
        deadline.until(lambda: "ContainerAdjustmentCeased" in agent.err, "it is said")
        agent.process.send_signal(signal.SIGHUP)
        deadline.until(lambda: "nri.reset" in agent.err, "the operator has seen to it")
        with pytest.raises(RuntimeError, match="both tried to set"):
            scene.client.run(pod, "fourth", PRINT)


def test_a_program_that_is_not_there(scene: Scene) -> None:
    """A container that fails by itself, again and again, is not held against us."""
    with scene.agent(STATIC) as agent:
        pod = scene.pod()
        for _ in range(5):
            with pytest.raises(RuntimeError, match="no such file"):
                scene.client.run(pod, "broken", ["/bin/none"])
            for box in scene.client.containers():
                scene.client.remove(box)
        scene.client.run(pod, "good", PRINT)
        assert scene.printed(pod, "good") == "1"
        assert "ContainerAdjustmentCeased" not in agent.err


def test_a_stopped_agent_never_blocks_a_container(scene: Scene) -> None:
    """The runtime gives it up, the container starts, and once it goes on the agent comes back."""
    with scene.agent() as agent:
        pod = scene.pod()
        os.kill(agent.process.pid, signal.SIGSTOP)
        try:
            scene.client.run(pod, "first", PRINT)
            scene.printed(pod, "first")
        finally:
            os.kill(agent.process.pid, signal.SIGCONT)
        before = scene.runtime.log.count("koordlet")
        deadline.until(lambda: scene.runtime.log.count("koordlet") > before, "it is back")
        late = scene.pod()
        scene.client.run(late, "second", PRINT)
        assert scene.printed(late, "second") == "1"


@pytest.mark.soak
@pytest.mark.parametrize("round_", range(10))
@pytest.mark.parametrize("more", ["", STATIC], ids=["inherited", "adjusted"])
def test_a_thousand_starts(scene: Scene, more: str, round_: int) -> None:
    """Every start of a thousand, half of them adjusted, is right at its first act."""
    with scene.agent(more) as agent:
        assert set(starts(scene, 50, 10)) == {"1"}, (round_, agent.err)
        assert (50 if more else 0) == agent.err.count('"nri.adjusted"'), (round_, agent.err)
        assert "ContainerAdjustmentCeased" not in agent.err
        assert agent.ends(signal.SIGTERM) == 0
