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
    """What it costs to reach another zone."""

    name: str = Field(description="The other zone.")
    value: fields.Int64 = Field(description="The kernel's distance; 10 is the zone itself.")


class Attribute(fields.Closed):
    """A named fact."""

    name: str
    value: str


class Resource(fields.Open):
    """An amount of one resource in a zone."""

    name: str = Field(description="Name of the resource.")
    capacity: fields.Quantity = Field(description="What the hardware has.")
    allocatable: fields.Quantity | None = Field(
        default=None, description="What pods may have together."
    )
    available: fields.Quantity = Field(description="What is not given to anybody.")


class Zone(fields.Open):
    """A part of the machine, such as a NUMA node."""

    name: str = Field(description="node-0, node-1, …")
    type: str = Field(description="Node for a NUMA node.")
    parent: str | None = Field(default=None, description="The zone that this one is part of.")
    costs: list[Cost] | None = None
    attributes: list[Attribute] | None = None
    resources: list[Resource] | None = None


class NodeResourceTopology(fields.Closed):
    """The hardware of a node and what of it is free, zone by zone."""

    topology_policies: list[str] | None = Field(
        default=None, description="The policy of the kubelet's topology manager, in one word."
    )
    zones: list[Zone] = Field(description="The zones of the node, in the order of their numbers.")
    attributes: list[Attribute] | None = Field(
        default=None, description="Facts of the whole node, such as topologyManagerScope."
    )
