"""The resource claims of a pod: the names that it gives them, and those that they have.

Covers: ``spec.resourceClaims`` and what a controller made of it (``status.resourceClaimStatuses``).
Does not cover: the claims themselves (``resource_claims``).
"""

from __future__ import annotations

from koordlet.model.record import dataclass
from koordlet.scheduler.objects import wire
from koordlet.scheduler.objects.wire import BadObjectError, Body


@dataclass(frozen=True, slots=True)
class PodClaim:
    """One entry of a pod's claims."""

    #: What containers of the pod call it.
    name: str
    #: The claim; empty: it is to be made of the template.
    claim: str = ""
    template: str = ""
    #: A controller found that there is nothing to claim.
    needless: bool = False


def decode(spec: Body, status: Body) -> tuple[PodClaim, ...]:
    """The claims of a pod; nearly every pod has none."""
    if not spec.get("resourceClaims"):
        return ()
    made = {
        wire.text(entry, "name"): wire.text(entry, "resourceClaimName")
        for entry in wire.bodies(status, "resourceClaimStatuses")
    }
    return wire.each(spec, "resourceClaims", lambda entry: _claim(entry, made))


def _claim(entry: Body, made: dict[str, str]) -> PodClaim:
    name, claim, template = wire.texts(
        entry, "name", "resourceClaimName", "resourceClaimTemplateName"
    )
    if bool(claim) == bool(template):
        raise BadObjectError(
            "exactly one of resourceClaimName and resourceClaimTemplateName is set"
        )
    if claim:
        return PodClaim(name, claim)
    return PodClaim(name, made.get(name, ""), template, needless=name in made and not made[name])
