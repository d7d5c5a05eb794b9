"""Everything that is asked of one kubelet, as sources.

Covers: which endpoints and files, how often, how long each is believed.
Does not cover: merging what they say (``workloads.merging``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from typing import TypeVar

from koordlet.host.fs import root
from koordlet.kubeapi import shapes
from koordlet.model import kubelet, pod, spread
from koordlet.model.record import dataclass
from koordlet.workloads import source
from koordlet.workloads.kubelet import client, configz, manager_states, pods, summary

_T = TypeVar("_T")
_AnswerT = TypeVar("_AnswerT", kubelet.Configuration, kubelet.Summary)

#: The configuration changes with a restart of the kubelet only.
_CONFIGZ_PERIOD = 60.0
#: Checkpoints are small files on the local disk, and say what a container may use since just now.
_FILE_PERIOD = 2.0
_MAX_CHECKPOINT = 4 << 20

#: Sources beside the pods, by the field of ``model.kubelet.Kubelet`` that they answer for.
_ANSWERS = ("configuration", "summary", "cpu", "memory", "holdings")

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
        every = (getattr(self, name) for name in ("pods", *_ANSWERS))
        return tuple(workload_source for workload_source in every if workload_source is not None)

    def listed(self) -> bool:
        """Whether it has listed its pods."""
        return self.pods is not None and self.pods.value is not None

    def said(self) -> kubelet.Kubelet:
        """Last answers of the sources other than pods."""
        asked = {name: getattr(self, name) for name in _ANSWERS}
        return kubelet.Kubelet(**{name: polled and polled.value for name, polled in asked.items()})


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
            _whole(configz.decode),
            period=_CONFIGZ_PERIOD,
            max_age=max_age + _CONFIGZ_PERIOD,
        )
        if where.secure
        else None,
        summary=source.Polled(
            kubelet.STATISTICS,
            get(summary.PATH),
            _whole(summary.decode),
            period=period,
            max_age=max_age,
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

    def checkpoint(name: str, decode: Callable[[str], _T], empty: _T) -> source.Polled[_T]:
        return source.Polled(
            f"kubelet {name}",
            read(name),
            lambda data, _problems: decode(data.decode()) if data else empty,
            period=_FILE_PERIOD,
            max_age=max_age,
        )

    return (
        checkpoint(manager_states.CPU_STATE, manager_states.cpus, kubelet.CpuState()),
        checkpoint(manager_states.MEMORY_STATE, manager_states.memory, kubelet.MemoryState()),
    )


def _whole(decode: Callable[[object], _AnswerT]) -> Callable[[bytes, list[str]], _AnswerT]:
    """Decoder of an answer that is one JSON object and brings its own problems."""

    def read(data: bytes, problems: list[str]) -> _AnswerT:
        answer = decode(shapes.parse_bytes(data, problems))
        problems.extend(answer.problems)
        return answer

    return read
