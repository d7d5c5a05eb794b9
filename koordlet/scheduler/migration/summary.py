"""A migration job as a document: what is wanted, how far it is, its timeline.

Covers: the document of ``/api/v1/moves``. Does not cover: serving or printing it.
"""

from __future__ import annotations

from typing import Any

from koordlet.model import moment
from koordlet.scheduler.migration.job import MigrationJob


def document(job: MigrationJob, refusal: str = "") -> dict[str, Any]:
    """A job; ``refusal``: why its last action was in vain."""
    status = job.status
    return {
        "name": job.name,
        "pod": str(job.pod),
        "phase": status.phase.value,
        "status": status.status,
        "reason": status.reason,
        "message": refusal or status.message,
        "from": job.source or None,
        "to": status.node or None,
        "replacement": None if status.pod is None else str(status.pod),
        "reservation": job.reservation or None,
        "mode": job.mode,
        "by": job.by,
        "why": job.reason,
        "created": moment.spell(job.created),
        "ttlSeconds": job.ttl,
        "timeline": _timeline(job),
    }


def _timeline(job: MigrationJob) -> list[dict[str, str]]:
    entries = [(moment.spell(job.created), "created", job.reason)]
    for condition in job.status.conditions:
        what = condition.type if condition.status else f"{condition.type}: {condition.reason}"
        entries.append((condition.changed or condition.probed, what, condition.message))
    last = entries[-1][0]
    if job.status.phase.over:
        probed = max((each.probed for each in job.status.conditions), default=last)
        entries.append((max(last, probed), job.status.phase.value, job.status.message))
    return [{"at": at, "what": what, "message": message} for at, what, message in entries]
