"""The section ``nri``: whether and how the container runtime asks us about new containers.

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
        description="`auto` connects on a node of a cluster where the socket is there when the"
        " agent starts; `on` connects always, and without a cluster takes the runtime's word for"
        " which pods there are.",
    )
    socket: fieldtypes.SocketPath = Field(
        default="/var/run/nri/nri.sock", description="Where the runtime listens."
    )
    index: Annotated[str, Field(pattern="^[0-9]{2}$")] = Field(
        default="10", description="Our place among plugins: two digits, lower ones are asked first."
    )
    deadline_milliseconds: Annotated[int, Field(ge=10, le=10_000)] = Field(
        default=1000,
        description="How long a container waits for our answer; then it starts as the runtime has"
        " it, and is put right through its files. Never more than 70 % of the runtime's own limit.",
    )
    quiet_seconds: Annotated[int, Field(ge=10, le=86_400)] = Field(
        default=300,
        description="Without any event for so long the connection is made anew: it may be dead.",
    )
    failed_starts: Annotated[int, Field(ge=1, le=1000)] = Field(
        default=5,
        description="After so many containers within an hour that we adjusted and that never"
        " started we cease to adjust, until the agent is told to reload (SIGHUP).",
    )
