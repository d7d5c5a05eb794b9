"""The section ``eviction``: how koordlet evicts pods, whichever policy decides.

Covers: fields and defaults. Does not cover: doing it (``apply.evictor``).
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from koordlet.config import sections


class Eviction(sections.Section):
    """How koordlet evicts pods."""

    by: Literal["auto", "api", "delete", "local"] = Field(
        default="auto",
        description="`api` uses the eviction API, which respects PodDisruptionBudgets; `delete`"
        " deletes pods without them; `local` stops units and kills processes. `auto` is `api`"
        " in a cluster and `local` elsewhere.",
    )
    dry_run: bool = Field(
        default=False,
        description="Send evictions to the API server as dry runs: no pod is removed.",
    )
