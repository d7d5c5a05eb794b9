"""Device of ``scheduling.koordinator.sh``: the accelerators and network functions of a node.

Covers: the fields of the object. Does not cover: finding devices (``host.topology.devices``).
"""

from __future__ import annotations

from pydantic import Field

from koordlet.report.crds import fields


class Topology(fields.Open):
    """Where a device is plugged in."""

    socket_id: fields.Int32 = Field(default=-1, alias="socketID")
    node_id: fields.Int32 = Field(default=-1, alias="nodeID")
    # No default: API servers take an empty text there for none (seen with 1.20) and refuse it.
    pcie_id: str | None = Field(default=None, alias="pcieID")
    bus_id: str | None = Field(default=None, alias="busID")


class VirtualFunction(fields.Open):
    """One virtual function."""

    minor: fields.Int32 = -1
    bus_id: str | None = Field(default=None, alias="busID")


class VfGroup(fields.Open):
    """Virtual functions of one kind."""

    labels: fields.Texts | None = None
    vfs: list[VirtualFunction] | None = None


class DeviceInfo(fields.Open):
    """One device."""

    id: str | None = Field(default=None, description="UUID or PCI address.")
    labels: fields.Texts | None = None
    minor: fields.Int32 | None = Field(default=None, description="Number within the type.")
    type: str | None = Field(default=None, description="gpu, rdma, fpga or xpu.")
    module_id: fields.Int32 | None = Field(default=None, alias="moduleID")
    health: bool = Field(default=False, description="Whether it may be given to a pod.")
    resources: fields.ResourceList | None = None
    topology: Topology | None = None
    vf_groups: list[VfGroup] | None = None
    conditions: list[fields.Free] | None = None


class Spec(fields.Open):
    """The devices."""

    devices: list[DeviceInfo] | None = None


class Device(fields.Closed):
    """The devices of one node."""

    spec: Spec | None = None
    status: fields.Free | None = None
