"""The section ``scheduler``: the standalone scheduler that this machine belongs to.

Covers: fields and defaults. Does not cover: asking it (``rpc.reservations``).
"""

from __future__ import annotations

from pydantic import Field

from koordlet.config import fieldtypes, sections


class Scheduler(sections.Section):
    """A scheduler without a cluster."""

    socket: fieldtypes.Directory = Field(
        default=None,
        description="Its socket, such as `/run/koordlet/scheduler.sock`: what is reserved on this"
        " node is then held here. Null: there is none; in a cluster the API server is asked.",
    )
