"""NodeResourceTopology of ``topology.node.k8s.io``, in its two versions.

Covers: the fields that both versions and both peers know.
Does not cover: the annotations, which carry the CPU pools (``report.objects``).

One model serves ``v1alpha1`` and ``v1alpha2``: without a conversion webhook a server only renames
the version, and prunes what the version asked for does not know. With one shape nothing is lost on
the way of an object from one writer through the other version and back.
"""

from __future__ import annotations

from pydantic import Field

from koordlet.report.crds import fields


class Cost(fields.Closed):
    """Distance to another zone."""

    name: str = Field(description="Name of the other zone.")
    value: fields.Int64 = Field(description="NUMA distance; 10 is the zone itself.")


class Attribute(fields.Closed):
    """A named attribute."""

    name: str
    value: str


class Resource(fields.Open):
    """An amount of one resource in a zone."""

    name: str = Field(description="Name of the resource.")
    capacity: fields.Quantity = Field(description="Capacity of the hardware.")
    allocatable: fields.Quantity | None = fields.about("Amount that pods can use in total.")
    available: fields.Quantity = Field(description="Amount that is not allocated.")


class ZoneSchema(fields.Open):
    """A part of the machine, such as a NUMA node."""

    name: str = Field(description="Name of the zone: node-0, node-1, …")
    type: str = Field(description="Type of the zone; Node for a NUMA node.")
    parent: str | None = fields.about("Name of the parent zone.")
    costs: list[Cost] | None = None
    attributes: list[Attribute] | None = None
    resources: list[Resource] | None = None


class NodeResourceTopology(fields.Closed):
    """Hardware topology of a node with its free resources by zone."""

    topology_policies: list[str] | None = fields.about(
        "Policy and scope of the kubelet's topology manager."
    )
    zones: list[ZoneSchema] = Field(description="Zones of the node, ordered by number.")
    attributes: list[Attribute] | None = fields.about(
        "Attributes of the node, such as topologyManagerScope."
    )
