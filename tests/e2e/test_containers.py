"""Containers of a real runtime: their names, their nesting, and the agent at work on them."""

from __future__ import annotations

import contextlib
import re
import signal
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from koordlet.host.cgroup import hierarchies, tree
from koordlet.model import absence, container_names, grouppath, pod, qos
from koordlet.workloads import containers, declared
from tests.kit import agents, deadline, live, needs
from tests.kit.containerd import cri, programs, runtime, tidy

pytestmark = pytest.mark.e2e

#: The agent keeps CPU 0 for the system, so whatever it manages gets less than the machine.
CONFIG = """
policies:
  reserved_cpus: {{cpus: "0"}}
workloads:
  - {{name: batch, qos: BE, match: {{cgroup: "{group}"}}}}
"""


def group_of(uid: str) -> str:
    """Where a kubelet with the driver cgroupfs has a best-effort pod, spelled as it spells it."""
    return f"kubepods/besteffort/pod{uid}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A best-effort pod of a real runtime, below a test group."""

    place: live.Place
    client: cri.Client
    sandbox: cri.Sandbox

    @property
    def group(self) -> str:
        """The pod's group, below the test group."""
        return group_of(self.sandbox.uid)

    @property
    def reader(self) -> tree.CgroupReader:
        """What the agent would read with."""
        return tree.CgroupReader(live.HOST, hierarchies.discover(live.HOST, self.place.name))

    def cpus(self, container: str = "") -> str:
        """The set of the pod, or of one of its containers."""
        return self.place.read("/".join(p for p in (self.group, container, "cpuset.cpus") if p))

    def allowed(self, container: str) -> str:
        """The CPUs that a container's first process may really use."""
        pid = self.place.read(f"{self.group}/{container}/cgroup.procs").split()[0]
        line = re.search(
            r"^Cpus_allowed_list:\s*(\S+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE
        )
        assert line is not None
        return line[1]

    def config(self) -> str:
        """A configuration that declares the pod; the path of its file."""
        path = self.place.state / "config.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(agents.HEADER + CONFIG.format(group=self.group))
        return str(path)


@pytest.fixture(params=["runc", "crun"])
def scene(place: live.Place, ram: Path, request: pytest.FixtureRequest) -> Iterator[Scene]:
    """A runtime with one pod; the pod, its groups and the runtime are gone afterwards."""
    needs.unless(programs.why_not(request.param))
    needs.two_cpus()
    uid = str(uuid.uuid4())
    parent = f"{place.name}/{group_of(uid)}"
    with contextlib.ExitStack() as stack:
        stack.callback(tidy.remove, place.name)
        containerd = stack.enter_context(runtime.running(ram / "containerd", oci=request.param))
        client = containerd.client
        yield Scene(place=place, client=client, sandbox=client.run_pod(uid, f"/{parent}"))
    assert tidy.tops(place.name) == []


def test_names_and_nesting_are_understood(scene: Scene) -> None:
    """What the runtime made is a kubelet's pod with two containers, found by their ids."""
    box = scene.client.run(scene.sandbox, "main")
    reader = scene.reader
    seen = containers.find(containers.walk(reader.children))
    pod_group = seen.pods[scene.sandbox.uid]
    wanted = pod.Pod(
        uid=scene.sandbox.uid,
        name="batch",
        namespace="default",
        match=f"pod={scene.sandbox.uid}",
        kube_qos=qos.KubeQos.BEST_EFFORT,
        qos=qos.Qos.BE,
        source="test",
        containers=(pod.Container(name="main", id=box),),
    )
    (placed,) = declared.Declared(reader.layout, reader).find([wanted], search=True)

    assert cri.State.RUNNING is scene.client.state(box)
    assert (scene.group, qos.KubeQos.BEST_EFFORT) == (pod_group.group, pod_group.kube_qos)
    assert {box, scene.sandbox.id} == {container.id for container in pod_group.containers}
    assert grouppath.Place(
        tree=grouppath.USUAL[1],
        kube_qos=qos.KubeQos.BEST_EFFORT,
        uid=scene.sandbox.uid,
        container=container_names.parse(box),
    ) == grouppath.parse(f"{scene.group}/{box}")
    assert (scene.group, f"{scene.group}/{box}") == (placed.group, placed.containers[0].group)


def test_a_container_that_has_ended_is_gone(scene: Scene) -> None:
    """Its group reads as Gone, its pod's and its neighbour's as before."""
    first, second = (scene.client.run(scene.sandbox, name) for name in ("first", "second"))
    reader = scene.reader
    paths = [f"{scene.group}/{box}" for box in (first, second)]
    assert set(paths) == set(reader.read_all(paths))
    scene.client.stop(first)

    assert cri.State.EXITED is scene.client.state(first)
    scene.client.remove(first)
    assert absence.Gone(paths[0]) == reader.read(paths[0])
    assert {paths[1], scene.group} == set(reader.read_all([*paths, scene.group]))


def test_what_a_killed_agent_leaves_is_put_back(scene: Scene) -> None:
    """``koordlet restore`` after kill -9: pod and container have what they had."""
    whole = scene.cpus()
    old = scene.client.run(scene.sandbox, "old")
    with scene.place.running("--config", scene.config()) as agent:
        agent.until("READY=1")
        ours = deadline.until(lambda: scene.cpus() if scene.cpus() != whole else "", "a set")
        deadline.until(lambda: scene.cpus(old) == ours, "the container's set")
        agent.process.kill()
        agent.process.wait()
    assert ours == scene.allowed(old)
    assert scene.place.call("restore").returncode == 0

    assert [whole] * 3 == [scene.cpus(), scene.cpus(old), scene.allowed(old)]


def test_sets_come_stay_and_go(scene: Scene) -> None:
    """Pod, old and new containers run on the agent's set; afterwards on what they had before."""
    whole = scene.cpus()
    old, ended = (scene.client.run(scene.sandbox, name) for name in ("old", "ended"))
    before = {box: scene.cpus(box) for box in (scene.sandbox.id, old)}
    with scene.place.running("--config", scene.config()) as agent:
        agent.until("READY=1")
        ours = deadline.until(lambda: scene.cpus() if scene.cpus() != whole else "", "a set")
        deadline.until(lambda: scene.cpus(old) == ours, "the container's set")
        assert ours == scene.allowed(old)
        scene.client.stop(ended)
        new = scene.client.run(scene.sandbox, "new")
        deadline.until(lambda: scene.cpus(new) == ours, "the new container's set")
        assert (ours, ours) == (scene.allowed(new), scene.allowed(old))
        assert agent.ends(signal.SIGTERM) == 0
        assert "Traceback" not in agent.err

    assert whole == scene.cpus()
    assert before == {box: scene.cpus(box) for box in before}
    assert whole == scene.cpus(old)
