"""Keys of pods that ask for what this scheduler lacks: gangs of another dialect.

Covers: which keys mean that, in every dialect; the refusal's words.
Does not cover: who is told and when a pod is tried again (``scheduler.loop.core``,
``scheduler.sim.simulation``); quotas; gangs, but for the spellings that nothing serves any more.

Rules:
1. A pod that names one is refused by the key's name: one that was placed as if the key were not
   there would be half a gang.
2. Labels and quotas may be ignored on request, for clusters that carry them unused. A
   field of the specification never: the API server refuses those that nothing serves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from koordlet.scheduler.objects import peer_keys, wire
from koordlet.scheduler.objects.wire import BadObjectError, Body

#: Of ``koordlet scheduler`` and ``koordlet sim``.
OPTION = "--ignore-unknown-scheduling-keys"

_LACKING = "not supported by this scheduler"
#: Of the template of a reservation, and of a pod whose profile does without the plugin.
CLAIMS_OF_RESERVATIONS = (
    f"resource claims (spec.resourceClaims) of a reservation are {_LACKING}: claims hold devices"
)
CLAIMS_OF_PROFILE = (
    "resource claims (spec.resourceClaims) are not served: the profile lacks DynamicResources"
)


def of_fields(spec: Body) -> str:
    """Why a pod of this specification is never placed here; empty where it may be."""
    if spec.get("workloadRef"):
        return f"pod groups (spec.workloadRef) are {_LACKING}"
    return ""


def gang_of(labels: Mapping[str, str]) -> str:
    """The gang that a pod names in a spelling that nothing serves; empty where it names none."""
    return labels.get(peer_keys.RENAMED_GANG, "")


def gangs_of(bodies: Iterable[Body]) -> Iterator[str]:
    """The same of each pod among these objects; one that cannot be read names none."""
    for body in bodies:
        try:
            if body.get("kind") == "Pod":
                yield gang_of(wire.labels(wire.mapping(body, "metadata")))
        except BadObjectError:
            continue


def refusal(gang: str) -> str:
    """The message for a pod that names such a gang, with the way out."""
    return (
        f"gang {wire.show(gang)} (label {peer_keys.RENAMED_GANG}) is {_LACKING}; {OPTION} places"
        " such pods all the same"
    )


class UnservedKeys:
    """Whether a pod may be tried at all."""

    def __init__(self, *, ignores_keys: bool = False) -> None:
        self.ignores_keys = ignores_keys

    def of_class(self, labels: Mapping[str, str], spec: Body) -> str:
        """Why a pod of a class is never tried, by what it says itself."""
        gang = "" if self.ignores_keys else gang_of(labels)
        return of_fields(spec) or (refusal(gang) if gang else "")
