"""Device of ``scheduling.koordinator.sh``: the accelerators and network functions of a node.

Covers: the fields of the object. Does not cover: finding devices (``host.topology.devices``).
"""

from __future__ import annotations

from pydantic import Field

from koordlet.report.crds import fields


class DeviceTopologySchema(fields.Open):
    """Position of a device: socket, NUMA node, PCI bus."""

    socket_id: fields.Int32 = Field(default=-1, alias="socketID")
    node_id: fields.Int32 = Field(default=-1, alias="nodeID")
    # No default: API servers take an empty text there for none (seen with 1.20) and refuse it.
    pcie_id: str | None = Field(default=None, alias="pcieID")
    bus_id: str | None = Field(default=None, alias="busID")


class VirtualFunction(fields.Open):
    """An SR-IOV virtual function."""

    minor: fields.Int32 = -1
    bus_id: str | None = Field(default=None, alias="busID")


class VfGroup(fields.Open):
    """Virtual functions with the same labels."""

    labels: fields.Texts | None = None
    vfs: list[VirtualFunction] | None = None


class DeviceInfo(fields.Open):
    """A device of the node."""

    id: str | None = fields.about("UUID or PCI address.")
    labels: fields.Texts | None = None
    minor: fields.Int32 | None = fields.about("Number of the device within its type.")
    type: str | None = fields.about("Type: gpu, rdma, fpga or xpu.")
    module_id: fields.Int32 | None = Field(default=None, alias="moduleID")
    health: bool = Field(default=False, description="True if pods may use the device.")
    resources: fields.ResourceList | None = None
    topology: DeviceTopologySchema | None = None
    vf_groups: list[VfGroup] | None = None
    conditions: list[fields.Free] | None = None


class DeviceSpecSchema(fields.Open):
    """Devices of the node."""

    devices: list[DeviceInfo] | None = None


class DeviceSchema(fields.Closed):
    """Devices of one node."""

    spec: DeviceSpecSchema | None = None
    status: fields.Free | None = None
