"""The condition of a pod that announces its end: that it is sent away, and why.

Covers: the condition itself. Does not cover: writing it, what is read of it
(``scheduler.objects.eviction_marks``).
"""

from __future__ import annotations

from typing import Any

TYPE = "DisruptionTarget"


def condition(*, reason: str, message: str, at: str, generation: object) -> dict[str, Any]:
    """The condition of a pod of this ``metadata.generation``; 0 or nothing: nobody counts it."""
    made = {
        "type": TYPE,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": at,
    }
    return {**made, "observedGeneration": generation} if generation else made
