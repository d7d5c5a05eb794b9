"""The section ``eviction``: how pods are made to go, whoever decided it.

Covers: fields and defaults. Does not cover: doing it (``apply.evictor``).
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from koordlet.config import sections


class Eviction(sections.Section):
    """How pods are made to go."""

    by: Literal["auto", "api", "delete", "local"] = Field(
        default="auto",
        description="`api` asks the API server, which heeds disruption budgets; `delete` deletes"
        " without them; `local` stops units and ends processes. `auto` is `api` in a cluster and"
        " `local` on a machine of its own.",
    )
    dry_run: bool = Field(
        default=False, description="Ask the API server what would be, and evict nobody."
    )
