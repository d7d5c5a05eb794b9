"""Everything that is asked of one kubelet, as sources.

Covers: which endpoints and files, how often, how long each is believed.
Does not cover: merging what they say (``workloads.merging``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field

from koordlet.host.fs import root
from koordlet.kubeapi import shapes
from koordlet.model import kubelet, pod, spread
from koordlet.model.record import dataclass
from koordlet.workloads import source
from koordlet.workloads.kubelet import client, configz, manager_states, pods, summary

#: The configuration changes with a restart of the kubelet only.
_CONFIGZ_PERIOD = 60.0
#: Checkpoints are small files on the local disk, and say what a container may use since just now.
_FILE_PERIOD = 2.0
_MAX_CHECKPOINT = 4 << 20

#: Asks the pod-resources socket.
Holdings = Callable[[], Awaitable[kubelet.Holdings]]


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletSources:
    """Sources of one kubelet; ``None`` for each that is not in use."""

    pods: source.Polled[tuple[pod.Pod, ...]] | None = None
    configuration: source.Polled[kubelet.Configuration] | None = None
    summary: source.Polled[kubelet.Summary] | None = None
    cpu: source.Polled[kubelet.CpuState] | None = None
    memory: source.Polled[kubelet.MemoryState] | None = None
    holdings: PodResourcesSource | None = None
    #: How long its answers took, by path and status.
    took: Mapping[tuple[str, str], spread.Spread] = field(default_factory=dict)

    def all(self) -> tuple[source.WorkloadSource, ...]:
        """Sources in use."""
        every: tuple[source.WorkloadSource | None, ...] = (
            self.pods,
            self.configuration,
            self.summary,
            self.cpu,
            self.memory,
            self.holdings,
        )
        return tuple(workload_source for workload_source in every if workload_source is not None)

    def said(self) -> kubelet.Kubelet:
        """Last answers of the sources other than pods."""
        return kubelet.Kubelet(
            configuration=self.configuration.value if self.configuration is not None else None,
            summary=self.summary.value if self.summary is not None else None,
            cpu=self.cpu.value if self.cpu is not None else None,
            memory=self.memory.value if self.memory is not None else None,
            holdings=self.holdings.value if self.holdings is not None else None,
        )


class PodResourcesSource:
    """The pod-resources socket as a source."""

    def __init__(self, ask: Holdings, *, period: float, max_age: float) -> None:
        self.name = "kubelet pod-resources"
        self.period = period
        self.max_age = max_age
        self.problems: tuple[str, ...] = ()
        self.value: kubelet.Holdings | None = None
        self._ask = ask

    async def poll(self) -> bool:
        """Ask once."""
        value = await self._ask()
        changed = value != self.value
        self.value = value
        return changed


def endpoints(
    where: client.KubeletEndpoint, *, period: float, max_age: float, statistics: bool
) -> KubeletSources:
    """The HTTP endpoints; the read-only port serves no configuration."""
    asker = client.KubeletClient(where)
    decoder = pods.PodListDecoder("kubelet")

    def get(path: str) -> Callable[[], Awaitable[bytes]]:
        return lambda: asker.get(path)

    return KubeletSources(
        pods=source.Polled(
            "kubelet", get(pods.PATH), decoder.decode, period=period, max_age=max_age
        ),
        configuration=source.Polled(
            "kubelet configz",
            get(configz.PATH),
            _configuration,
            period=_CONFIGZ_PERIOD,
            max_age=max_age + _CONFIGZ_PERIOD,
        )
        if where.secure
        else None,
        summary=source.Polled(
            "kubelet stats", get(summary.PATH), _summary, period=period, max_age=max_age
        )
        if statistics
        else None,
        took=asker.took,
    )


def checkpoints(
    host: root.HostRoot, directory: str, *, max_age: float
) -> tuple[source.Polled[kubelet.CpuState], source.Polled[kubelet.MemoryState]]:
    """The files below the kubelet's directory."""

    def read(name: str) -> Callable[[], Awaitable[bytes]]:
        async def content() -> bytes:
            try:
                return host.content(host.at(f"{directory}/{name}"), _MAX_CHECKPOINT)
            except FileNotFoundError:
                # No kubelet, or one without the manager: nothing is held.
                return b""
            except OSError as error:
                raise client.Unreachable(
                    error.strerror or str(error), culprit=f"{directory}/{name}"
                ) from error

        return content

    return (
        source.Polled(
            "kubelet cpu_manager_state",
            read(manager_states.CPU_STATE),
            _cpu,
            period=_FILE_PERIOD,
            max_age=max_age,
        ),
        source.Polled(
            "kubelet memory_manager_state",
            read(manager_states.MEMORY_STATE),
            _memory,
            period=_FILE_PERIOD,
            max_age=max_age,
        ),
    )


def _configuration(data: bytes, problems: list[str]) -> kubelet.Configuration:
    configuration = configz.decode(shapes.parse_bytes(data, problems))
    problems.extend(configuration.problems)
    return configuration


def _summary(data: bytes, problems: list[str]) -> kubelet.Summary:
    statistics = summary.decode(shapes.parse_bytes(data, problems))
    problems.extend(statistics.problems)
    return statistics


def _cpu(data: bytes, problems: list[str]) -> kubelet.CpuState:
    del problems
    return manager_states.cpus(data.decode()) if data else kubelet.CpuState()


def _memory(data: bytes, problems: list[str]) -> kubelet.MemoryState:
    del problems
    return manager_states.memory(data.decode()) if data else kubelet.MemoryState()
