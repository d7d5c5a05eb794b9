"""The section ``scheduler``: the standalone scheduler of this machine.

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
        description="Socket of the standalone scheduler, such as `/run/koordlet/scheduler.sock`."
        " The agent then holds what is reserved on this node. Null uses no scheduler; in a"
        " cluster the API server lists the reservations.",
    )
    run: bool = Field(
        default=False,
        description="Run a scheduler as a child process of the agent. The agent reports to it and"
        " asks it for reservations. Objects are kept in `scheduler.db`.",
    )
    config: fieldtypes.Directory = Field(
        default=None,
        description="KubeSchedulerConfiguration file of the scheduler that `run` starts.",
    )
    http: fieldtypes.Address = Field(
        default="127.0.0.1:9317", description="HTTP address of the scheduler that `run` starts."
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
