"""The section ``policies.network_qos``: bandwidth of network interfaces.

Covers: its fields, those of a class under the peer's names.
Does not cover: the policy (``policy.memory_io.network_qos``).
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from koordlet.config import fieldtypes, sections
from koordlet.model import strategies

Link = Annotated[str, Field(pattern=r"^[^/\s]{1,15}$")]


class NetworkClass(sections.StrategySection, of=(strategies.NetworkQos, "network_qos")):
    """Guaranteed bandwidth (request) and bandwidth limit of a class."""


class NetworkQosLimits(sections.Section):
    """Bounds that no source can exceed."""

    least_bps: Annotated[int, Field(ge=8_000, le=10**12)] = Field(
        default=1_000_000,
        description="Lowest bandwidth limit of a class or pod, in bits per second.",
    )


class NetworkQos(sections.Section):
    """Bandwidth by class. A NodeSLO replaces classes and total."""

    mode: sections.PolicyModeField = "off"
    limits: NetworkQosLimits
    total_network_bandwidth: fieldtypes.OptionalQuantity = Field(
        default=None,
        description="Bandwidth of each network interface in bits per second; null"
        " disables shaping.",
    )
    interfaces: Annotated[tuple[Link, ...], Field(strict=False), fieldtypes.ABSENT_LIST] = Field(
        default=(),
        description="Network interfaces to shape; empty uses those of the default routes.",
    )
    ingress: bool = Field(
        default=True, description="Also shape received traffic (needs the `ifb` module)."
    )
    system_class: NetworkClass = Field(
        description="Traffic of no pod; 40 % is guaranteed by default."
    )
    ls_class: NetworkClass = Field(
        description="LSE, LSR and LS pods; 30 % is guaranteed by default."
    )
    be_class: NetworkClass = Field(description="BE pods; 30 % is guaranteed by default.")
