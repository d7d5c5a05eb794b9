"""The kubelet's pod-resources socket: what its managers gave to each container.

Covers: ``v1.PodResourcesLister/List`` with a deadline and a bounded answer.
Does not cover: the checkpoints of the same managers (``workloads.kubelet``).
"""

from __future__ import annotations

import grpc.aio
from google.protobuf import message

from koordlet.model import cpuset, errors, kubelet
from koordlet.rpc import services
from koordlet.rpc.gen import podresources_pb2

_LIST = "/v1.PodResourcesLister/List"
_BOUND = ("grpc.max_receive_message_length", 16 << 20)


class PodResourcesError(errors.KoordletError):
    """The socket gave no answer that can be used."""

    code = "kubelet"


class PodResourcesClient:
    """Asks one socket; a connection serves one question, so a new kubelet is found at once."""

    def __init__(self, path: str, *, seconds: float) -> None:
        self.path = path
        self.seconds = seconds

    async def list(self) -> kubelet.Holdings:
        """Resources of every container."""
        culprit, options = f"pod-resources socket {self.path}", (_BOUND,)
        request = podresources_pb2.ListPodResourcesRequest()
        try:
            answer = await services.ask(self.path, _LIST, request, self.seconds, options)
            return decode(podresources_pb2.ListPodResourcesResponse.FromString(answer))
        except grpc.aio.AioRpcError as error:
            raise PodResourcesError(
                f"{error.code().name}: {error.details() or 'no details'}",
                culprit=culprit,
                fix="check that the kubelet runs, and that kubelet.podResourcesSocket is right",
            ) from error
        except message.DecodeError as error:
            why = "the response is not a list of pod resources"
            raise PodResourcesError(why, culprit=culprit) from error


def decode(answer: podresources_pb2.ListPodResourcesResponse) -> kubelet.Holdings:
    """The answer in our words; CPUs that no machine has are left out."""
    return {
        (f"{pod_resource.namespace}/{pod_resource.name}", container.name): kubelet.ContainerDevices(
            cpus=cpuset.CPUSet.of(cpu for cpu in container.cpu_ids if 0 <= cpu < cpuset.MAX_CPUS),
            devices=_devices(container),
            memory=tuple(
                kubelet.MemoryBlock(
                    nodes=tuple(node.ID for node in block.topology.nodes),
                    type=block.memory_type,
                    size=block.size,
                )
                for block in container.memory
            ),
        )
        for pod_resource in answer.pod_resources
        for container in pod_resource.containers
    }


def _devices(container: podresources_pb2.ContainerResources) -> dict[str, tuple[str, ...]]:
    """One resource may come in several parts, one for each place in the topology."""
    by_resource: dict[str, tuple[str, ...]] = {}
    for device in container.devices:
        name = device.resource_name
        by_resource[name] = (*by_resource.get(name, ()), *device.device_ids)
    return by_resource
