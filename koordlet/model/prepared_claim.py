"""Resource claims (DRA) that this node has prepared, and the devices that it offers to claims.

Covers: the values. Does not cover: what is offered (``policy.cpu.dra_driver``), which CPUs a claim
gets (``policy.cpu.exclusive_cpus``), preparing (``agent.dra_driver``), objects of the API server
(``report.objects.resource_slices``, ``workloads.claim_status``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from koordlet.model import cpuset
from koordlet.model.record import dataclass

AttributeValue = int | bool | str

#: Names of capacities in slices, and in what a claim consumed.
CPU, WAYS, BANDWIDTH, GROUPS = "cpu", "ways", "mbaPercent", "groups"
#: What the driver counts (``ReportView.driver``): the number of the kubelet's registration that is
#: in force; 0 while the kubelet does not have the driver.
REGISTRATION = "registration"


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedCapacity:
    """An amount of a device that claims share, and the amounts that one claim may take of it."""

    value: int
    #: What a claim takes that names no amount; also the smallest amount.
    least: int = 1
    step: int = 1
    #: False: a claim takes ``least``, no more.
    ranges: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedDevice:
    """One device that this node offers to claims."""

    name: str
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    capacity: Mapping[str, OfferedCapacity] = field(default_factory=dict)
    #: CPUs among which a claim's CPUs are chosen; empty for a cache.
    cpus: cpuset.CPUSet = field(default_factory=cpuset.CPUSet)
    #: The L3 domain whose ways and bandwidth it is; ``None`` for CPUs.
    cache: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceOffer:
    """All devices that this node offers, under the name of one driver."""

    driver: str
    devices: tuple[OfferedDevice, ...] = ()

    def including(self, claim: PreparedClaim) -> DeviceOffer:
        """The same with the devices of a prepared claim, where they are offered no more."""
        names = {device.name for device in self.devices}
        held = (share.as_device() for share in claim.shares if share.device not in names)
        return replace(self, devices=(*self.devices, *held))


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuShare:
    """A number of CPUs of one device."""

    request: str
    device: str
    #: The CPUs of the device.
    within: cpuset.CPUSet
    count: int
    #: Which share of the device it is, as the scheduler numbers them; empty where it does not.
    share_id: str = ""

    def as_device(self) -> OfferedDevice:
        """The device that it is of, as far as the share tells."""
        capacity = {CPU: OfferedCapacity(value=self.count)}
        return OfferedDevice(name=self.device, capacity=capacity, cpus=self.within)


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheShare:
    """Ways and bandwidth of one L3 domain."""

    request: str
    device: str
    cache: int
    #: Ways that no other group has; 0: its ways are those of everybody.
    ways: int = 0
    #: The most of the domain's bandwidth, in percent; 0: no limit.
    percent: int = 0
    #: As that of ``CpuShare``.
    share_id: str = ""

    def as_device(self) -> OfferedDevice:
        """The device that it is of, as far as the share tells."""
        amounts = {WAYS: self.ways, BANDWIDTH: self.percent}
        capacity = {name: OfferedCapacity(value=amount) for name, amount in amounts.items()}
        return OfferedDevice(name=self.device, capacity=capacity, cache=self.cache)


Share = CpuShare | CacheShare


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedClaim:
    """One claim, as far as it is allocated from this node's devices."""

    uid: str
    namespace: str
    name: str
    #: Unix time at which it was prepared.
    since: float
    cpus: tuple[CpuShare, ...] = ()
    caches: tuple[CacheShare, ...] = ()

    @property
    def holder(self) -> str:
        """The claim in ledger, conditions and reasons."""
        return f"claim/{self.namespace}/{self.name}"

    @property
    def control_group(self) -> str:
        """The name of its resctrl group."""
        return f"koordlet-claim-{self.uid}"

    @property
    def shares(self) -> tuple[Share, ...]:
        """All that it has."""
        return *self.cpus, *self.caches

    @property
    def count(self) -> int:
        """The number of its CPUs."""
        return sum(share.count for share in self.cpus)

    def of(self, namespace: str, used: tuple[str, ...], shares: Sequence[Share]) -> bool:
        """Whether a container that uses these claims (``pod.Container.claims``) has the shares."""
        names = {share.request.partition("/")[0] for share in shares}
        return (
            namespace == self.namespace
            and bool(names)
            and any(
                name == self.name and (not request or request in names)
                for name, _, request in (claim.partition("/") for claim in used)
            )
        )
