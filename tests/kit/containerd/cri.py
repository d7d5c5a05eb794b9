"""A client of the container runtime interface: what a kubelet says to start and end containers.

Covers: pods on the host's network, their containers, states, changes of a container's resources.
Does not cover: pulling images, exec, logs. Field numbers are those of ``runtime.v1``.
"""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import grpc

from tests.kit import deadline
from tests.kit.containerd import image, wire

#: NamespaceMode NODE: a network of its own would need plugins that nobody has here.
_HOST_NETWORK: wire.Message = {1: 2}


class State(enum.Enum):
    """Of a container."""

    CREATED = 0
    RUNNING = 1
    EXITED = 2
    UNKNOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """One pod as the runtime knows it."""

    id: str
    uid: str
    config: wire.Message


class Client:
    """One connection to a runtime's socket."""

    def __init__(self, socket: str) -> None:
        self._channel = grpc.insecure_channel(f"unix:{socket}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._channel.close()

    def _call(
        self, method: str, message: wire.Message, service: str = "Runtime"
    ) -> dict[int, list[int | bytes]]:
        call = self._channel.unary_unary(
            f"/runtime.v1.{service}Service/{method}",
            request_serializer=wire.encode,
            response_deserializer=wire.decode,
        )
        try:
            return call(message, timeout=deadline.PATIENCE)
        except grpc.RpcError as error:
            raise RuntimeError(f"{method}: {error}") from error

    def ready(self) -> bool:
        """Whether it answers and has the image."""
        with contextlib.suppress(RuntimeError):
            return b"localhost" in b"".join(
                listed
                for listed in self._call("ListImages", {}, "Image").get(1, ())
                if listed is bytes(listed)
            )
        return False

    # Pods -----------------------------------------------------------------------------------------

    def run_pod(
        self,
        uid: str,
        cgroup_parent: str,
        annotations: Mapping[str, str] | None = None,
        *,
        labels: Mapping[str, str] | None = None,
        logs: str = "",
    ) -> Sandbox:
        """Start a pod, whose group must lie at ``cgroup_parent`` (absolute, below each mount).

        ``logs`` is the folder for what its containers print.
        """
        config: wire.Message = {
            1: {1: f"pod-{uid}", 2: uid, 3: "default"},
            3: logs,
            6: [{1: key, 2: value} for key, value in (labels or {}).items()],
            7: [{1: key, 2: value} for key, value in (annotations or {}).items()],
            8: {1: cgroup_parent, 2: {1: _HOST_NETWORK}},
        }
        return Sandbox(
            id=wire.text(self._call("RunPodSandbox", {1: config}), 1), uid=uid, config=config
        )

    def end_pod(self, sandbox: str) -> None:
        """Kill and remove a pod with all its containers."""
        self._call("StopPodSandbox", {1: sandbox})
        self._call("RemovePodSandbox", {1: sandbox})

    def pods(self) -> list[str]:
        """The ids of all pods."""
        return self._ids("ListPodSandbox")

    # Containers -----------------------------------------------------------------------------------

    def create(
        self,
        pod: Sandbox,
        name: str,
        command: Sequence[str] = image.SLEEP,
        resources: wire.Message | None = None,
    ) -> str:
        """Make a container; its id. ``resources`` are LinuxContainerResources."""
        config: wire.Message = {
            1: {1: name},
            2: {1: image.NAME},
            3: list(command),
            11: f"{name}.log",
            15: {1: resources or {}, 2: {3: _HOST_NETWORK}},
        }
        return wire.text(self._call("CreateContainer", {1: pod.id, 2: config, 3: pod.config}), 1)

    def start(self, container: str) -> None:
        """Let a container that was made run."""
        self._call("StartContainer", {1: container})

    def run(
        self,
        pod: Sandbox,
        name: str,
        command: Sequence[str] = image.SLEEP,
        resources: wire.Message | None = None,
    ) -> str:
        """Make a container and start it; its id."""
        made = self.create(pod, name, command, resources)
        self.start(made)
        return made

    def update(self, container: str, resources: wire.Message) -> None:
        """Change a container's resources, as the kubelet's CPU manager does."""
        self._call("UpdateContainerResources", {1: container, 2: resources})

    def stop(self, container: str) -> None:
        """Kill a container at once; its group goes, its record stays."""
        self._call("StopContainer", {1: container})

    def remove(self, container: str) -> None:
        """Forget a container."""
        self._call("RemoveContainer", {1: container})

    def containers(self) -> list[str]:
        """The ids of all containers."""
        return self._ids("ListContainers")

    def _ids(self, method: str) -> list[str]:
        listed = self._call(method, {}).get(1, ())
        return [wire.text(wire.decode(each), 1) for each in listed if isinstance(each, bytes)]

    def state(self, container: str) -> State:
        """What the runtime says of it."""
        (status,) = self._call("ContainerStatus", {1: container})[1]
        assert isinstance(status, bytes)
        (number,) = wire.decode(status).get(3, [0])
        return State(number)
