"""Containers of Docker: their names, and the agent at work on them.

Covers: the driver cgroupfs on cgroup v1. Does not cover: systemd's (``tests.vm.test_docker``).
"""

from __future__ import annotations

import contextlib
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from koordlet.host.cgroup import hierarchies, tree
from koordlet.workloads import containers, unmanaged
from tests.kit import agents, deadline, live, needs
from tests.kit.containerd import docker, programs, tidy

pytestmark = [pytest.mark.e2e, pytest.mark.soak]

CONFIG = """
policies:
  reserved_cpus: {{cpus: "0"}}
workloads:
  - {{name: batch, qos: BE, match: {{cgroup: "{group}"}}}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A daemon whose containers lie below a test group."""

    place: live.Place
    docker: docker.Docker

    def run(self, **more: object) -> str:
        """A container; its id."""
        return self.docker.run(f"/{self.place.name}/docker", **more)

    def cpus(self, group: str) -> str:
        """A set."""
        return self.place.read(f"{group}/cpuset.cpus")

    def allowed(self, group: str) -> str:
        """The CPUs that a group's first process may really use."""
        pid = self.place.read(f"{group}/cgroup.procs").split()[0]
        line = re.search(
            r"^Cpus_allowed_list:\s*(\S+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE
        )
        return line[1] if line is not None else ""

    def config(self, group: str) -> str:
        """A configuration that declares a group; the path of its file."""
        path = self.place.state / "config.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(agents.HEADER + CONFIG.format(group=group))
        return str(path)


@pytest.fixture
def scene(place: live.Place, tmp_path: Path) -> Iterator[Scene]:
    """Containers, their groups and the daemon are gone afterwards."""
    needs.unless(programs.why_not("docker"))
    needs.two_cpus()
    with contextlib.ExitStack() as stack:
        stack.callback(tidy.remove, place.name)
        daemon = stack.enter_context(docker.running(tmp_path / "d"))
        yield Scene(place=place, docker=daemon)
    assert tidy.tops(place.name) == []


def test_names_are_understood(scene: Scene) -> None:
    """One container, outside of pods; nobody declared it, so it is shown and left alone."""
    box = scene.run()
    reader = tree.CgroupReader(live.HOST, hierarchies.discover(live.HOST, scene.place.name))
    seen = containers.find(containers.walk(reader.children))
    strangers = unmanaged.Finder(live.HOST)
    strangers.look(reader.layout, [])

    assert {box: f"docker/{box}"} == {
        container.id: container.group for container in seen.containers.values()
    }
    assert seen.pods == {}
    assert [f"docker/{box}"] == [pod.group for pod in strangers.pods]


@pytest.mark.parametrize("whole", [True, False], ids=["parent", "container"])
def test_sets_come_stay_and_go(scene: Scene, *, whole: bool) -> None:
    """Declared by its own group or by its parent's: ours comes, outlives an update, and goes."""
    box = scene.run(CpusetCpus="0-1")
    group = f"docker/{box}"
    with scene.place.running("--config", scene.config("docker" if whole else group)) as agent:
        agent.until("READY=1")
        deadline.until(lambda: scene.cpus(group) == "1", "a set")
        assert scene.allowed(group) == "1"
        with contextlib.suppress(RuntimeError):  # v1 refuses what the group above has not
            scene.docker.update(box, CpusetCpus="0-1")
        deadline.until(lambda: scene.cpus(group) == "1", "the set after an update")
        late = scene.run()
        if whole:
            deadline.until(lambda: scene.cpus(f"docker/{late}") == "1", "a new container's set")
        assert ("1" if whole else "0-1") == scene.allowed(f"docker/{late}")
        assert agent.ends(signal.SIGTERM) == 0
        assert "Traceback" not in agent.err

    assert [scene.cpus(at) for at in (group, f"docker/{late}", "docker")] == ["0-1"] * 3


def test_what_a_killed_agent_leaves_is_put_back(scene: Scene) -> None:
    """``koordlet restore`` after kill -9."""
    box = scene.run()
    group = f"docker/{box}"
    before = scene.cpus(group)
    with scene.place.running("--config", scene.config(group)) as agent:
        agent.until("READY=1")
        deadline.until(lambda: scene.cpus(group) == "1", "a set")
        agent.process.kill()
        agent.process.wait()
    assert scene.place.call("restore").returncode == 0

    assert [before, "0-1"] == [scene.cpus(group), scene.allowed(group)]
