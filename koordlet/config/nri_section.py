"""The section ``nri``: connection to the container runtime's plugin interface.

Covers: fields and defaults. Does not cover: the protocol (``workloads.nri``), when ``auto`` is on
(``koordlet.agent.sources``).
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from koordlet.config import fieldtypes, kubelet, sections


class Nri(sections.Section):
    """The container runtime's plugin interface."""

    mode: kubelet.Mode = Field(
        default="auto",
        description="`auto` connects on a node of a cluster if the socket exists when the agent"
        " starts; `on` always connects and, without a cluster, takes the list of pods from"
        " the container runtime.",
    )
    socket: fieldtypes.SocketPath = Field(
        default="/var/run/nri/nri.sock", description="NRI socket of the container runtime."
    )
    index: Annotated[str, Field(pattern="^[0-9]{2}$")] = Field(
        default="10",
        description="Index of the NRI plugin: two digits; the runtime calls lower ones first.",
    )
    deadline_milliseconds: Annotated[int, Field(ge=10, le=10_000)] = Field(
        default=1000,
        description="How long a container start waits for koordlet. After that the container"
        " starts unadjusted and koordlet corrects it through its cgroup files. Capped at 70 %"
        " of the runtime's own timeout.",
    )
    quiet_seconds: Annotated[int, Field(ge=10, le=86_400)] = Field(
        default=300,
        description="Reconnect after this time without an event.",
    )
    failed_starts: Annotated[int, Field(ge=1, le=1000)] = Field(
        default=5,
        description="Stop adjusting after this many adjusted containers failed to start within an"
        " hour, until SIGHUP reloads the agent.",
    )
