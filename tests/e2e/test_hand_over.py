"""A reservation hands its CPUs over: held before, the owner's from its first instruction on.

The agent runs its scheduler as its child and is asked by a real container runtime (NRI). What a
kubelet does with a pod that was placed on its node, the test does: it starts it as it was written.
"""

from __future__ import annotations

import contextlib
import json
import re
import signal
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest

from koordlet.host.topology import discovery
from koordlet.kubeapi import objects
from koordlet.model import cpuset
from koordlet.rpc import placing
from koordlet.rpc.gen import scheduler_pb2
from tests.kit import deadline, live, needs
from tests.kit.containerd import cri, programs, runtime, tidy
from tests.kit.reservations import reservation

pytestmark = pytest.mark.e2e

#: The program's first act, executed without a shell before it, and all that it does.
PRINT = ("/bin/busybox", "grep", "Cpus_allowed_list", "/proc/self/status")
LSE = {"koordinator.sh/qosClass": "LSE"}
CONFIG = """
apiVersion: koordlet.io/v1
kind: Config
node: {{name: n1}}
nri: {{mode: on, socket: {socket}, deadlineMilliseconds: 1500}}
scheduler: {{run: true, http: "127.0.0.1:0", config: {profile}}}
workloads:
  - {{name: web, qos: LS, match: {{cgroup: web}}}}
"""
#: Whoever else is busy on this host is not what is tried.
PROFILE = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: koordlet-scheduler
    pluginConfig:
      - {name: LoadAwareScheduling, args: {usageThresholds: {cpu: 10000, memory: 10000}}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A runtime with NRI, an agent and its scheduler, and a latency-sensitive workload."""

    place: live.Place
    client: cri.Client
    folder: Path
    web: int

    def started(self, path: str, placed: objects.Object | None = None) -> str:
        """The CPUs that a pod's first act finds itself on; ``path`` is that of its class."""
        meta = objects.metadata(placed) if placed is not None else {}
        uid = str(uuid.uuid4())
        logs = self.folder / uid
        pod = self.client.run_pod(
            uid,
            f"/{self.place.name}/{path}/pod{uid}",
            meta.get("annotations"),
            labels=meta.get("labels"),
            logs=str(logs),
        )
        self.client.run(pod, "main", PRINT)

        def printed() -> str:
            text = (logs / "main.log").read_text() if (logs / "main.log").exists() else ""
            first = re.search(r"Cpus_allowed_list:\s*(\S+)\n", text)
            return first[1] if first is not None else ""

        return deadline.until(printed, "it has printed")

    def koordlet(self, *words: str) -> Any:
        """What a command says that asks the scheduler."""
        state = ["--state-dir", str(self.place.state), "-o", "json"]
        done = live.call([*self.place.command("")[:3], *words, *state])
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def file(self, body: objects.Object) -> str:
        """An object in a file, for a command."""
        path = self.folder / f"{objects.text(body, 'name')}.json"
        path.write_text(json.dumps(body))
        return str(path)

    def placed(self, name: str) -> objects.Object:
        """A pod as the scheduler wrote it, as soon as it has its node."""
        with grpc.insecure_channel(f"unix:{self.place.paths.scheduler_socket}") as channel:
            call = channel.unary_stream(
                f"/{placing.SERVICE}/WatchAssignments",
                request_serializer=scheduler_pb2.WatchAssignmentsRequest.SerializeToString,
                response_deserializer=scheduler_pb2.AssignmentEvent.FromString,
            )
            request = scheduler_pb2.WatchAssignmentsRequest(node="n1")
            for event in call(request, timeout=deadline.PATIENCE):
                if event.assignment.name == name:
                    pod: objects.Object = json.loads(event.assignment.manifest)
                    return pod
        raise AssertionError(f"{name} was not placed")


@pytest.fixture
def scene(place: live.Place, ram: Path, tmp_path: Path) -> Iterator[Scene]:
    """Pods, groups, the runtime and the agent are gone afterwards."""
    needs.unless(programs.why_not())
    needs.two_cpus()
    web = place.sleeper(place.group("web"))
    with contextlib.ExitStack() as stack:
        stack.callback(tidy.remove, place.name)
        stack.callback(live.end, place.children, ())
        containerd = stack.enter_context(runtime.running(ram / "containerd", nri=True))
        config = tmp_path / "agent.yaml"
        profile = tmp_path / "scheduler.yaml"
        profile.write_text(PROFILE)
        config.write_text(CONFIG.format(socket=containerd.nri_socket, profile=profile))
        agent = stack.enter_context(place.running("--config", str(config)))
        agent.until("READY=1")
        deadline.until(lambda: '-koordlet\\" connected' in containerd.log, "it is connected")
        deadline.until(place.paths.scheduler_socket.exists, "the scheduler listens")
        yield Scene(place=place, client=containerd.client, folder=tmp_path, web=web)
        assert agent.ends(signal.SIGTERM) == 0
    assert tidy.tops(place.name) == []


def cpus_of(pid: int) -> cpuset.CPUSet:
    """Where the kernel lets a process run."""
    status = Path(f"/proc/{pid}/status").read_text()
    [allowed] = [line for line in status.splitlines() if line.startswith("Cpus_allowed_list:")]
    return cpuset.CPUSet.parse(allowed.split()[1])


def test_the_owner_begins_on_what_was_held(scene: Scene) -> None:
    """Out of the pools when it is available; a stranger avoids it; the owner's first act is on it.

    Nobody else is on the owner's CPU afterwards, although the reservation is used up.
    """
    every = discovery.discover(live.HOST).online
    body = reservation("held", cpu="1", template_meta={"labels": LSE})
    body["spec"]["template"]["spec"]["schedulerName"] = "koordlet-scheduler"
    del body["status"]
    scene.koordlet("reserve", "held", "-f", scene.file(body))
    deadline.until(lambda: len(cpus_of(scene.web)) < len(every), "it has left the pool")
    held = every - cpus_of(scene.web)
    assert len(held) == 1
    assert scene.started("kubepods/besteffort") == str(every - held)

    inner = body["spec"]["template"]["spec"]
    meta = {"name": "owner", "namespace": "default", "labels": {**LSE, "app": "web"}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": inner}
    answer = scene.koordlet("schedule", "-f", scene.file(pod))
    assert [pod["node"] for pod in answer["pods"]] == ["n1"], answer
    assert scene.started("kubepods", scene.placed("owner")) == str(held)

    [used] = scene.koordlet("get", "reservations", "held")["reservations"]
    assert [owner["name"] for owner in used["status"]["currentOwners"]] == ["owner"]
    assert cpus_of(scene.web) == every - held
    audit = (scene.place.paths.log / "audit.jsonl").read_text().splitlines()
    wrote = [
        entry
        for entry in map(json.loads, audit)
        if str(entry.get("target")).endswith("web/cpuset.cpus")
    ]
    assert {entry["value"] for entry in wrote} == {str(every - held)}, "nor in between"
