"""The section ``scheduler``: the standalone scheduler that this machine belongs to.

Covers: fields and defaults. Does not cover: asking it (``rpc.reservations``), running it
(``agent.scheduler_child``).
"""

from __future__ import annotations

from pydantic import Field, model_validator

from koordlet.config import fieldtypes, sections


class Scheduler(sections.Section):
    """A scheduler without a cluster."""

    socket: fieldtypes.Directory = Field(
        default=None,
        description="Its socket, such as `/run/koordlet/scheduler.sock`: what is reserved on this"
        " node is then held here. Null: there is none; in a cluster the API server is asked.",
    )
    run: bool = Field(
        default=False,
        description="Run one here, as a child of the agent, which then reports to it and asks it"
        " what is reserved. Its objects are in `scheduler.db`.",
    )
    config: fieldtypes.Directory = Field(
        default=None, description="The KubeSchedulerConfiguration of the one that is run."
    )
    http: fieldtypes.Address = Field(
        default="127.0.0.1:9317", description="Where the one that is run shows itself."
    )

    @model_validator(mode="after")
    def _one_of_them(self) -> Scheduler:
        if self.run and self.socket is not None:
            fieldtypes.refuse(
                "the scheduler that is run here has its own socket",
                "leave scheduler.socket out, or scheduler.run",
                at=("socket",),
            )
        return self
