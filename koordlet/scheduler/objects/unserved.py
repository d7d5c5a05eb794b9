"""Keys of pods that ask for what this scheduler lacks: hard hints.

Covers: which keys mean that, in every dialect; the refusal's words.
Does not cover: who is told and when a pod is tried again (``scheduler.loop.core``,
``scheduler.sim.simulation``); quotas; gangs, but for the spellings that nothing serves any more.

Rules:
1. A pod that names one is refused by the key's name: one that was placed as if the key were not
   there would be half a gang.
2. Preferred nodes of a hint are a wish, and cost nothing to pass over. A hint that cannot be read
   may be a hard one.
3. Labels, annotations and quotas may be ignored on request, for clusters that carry them unused. A
   field of the specification never: the API server refuses those that nothing serves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from koordlet.scheduler.objects import json_annotations, peer_keys, wire
from koordlet.scheduler.objects.wire import BadObjectError, Body

#: Of ``koordlet scheduler`` and ``koordlet sim``.
OPTION = "--ignore-unknown-scheduling-keys"
#: Annotations of pods that are looked at.
ANNOTATIONS = peer_keys.HINTS

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


def of_keys(labels: Mapping[str, str], annotations: Mapping[str, str]) -> dict[str, str]:
    """What a pod's labels and annotations ask for, in words, by what it is that we lack."""
    asked: dict[str, str] = {}
    if gang := labels.get(peer_keys.RENAMED_GANG):
        asked["gang"] = f"gang {wire.show(gang)} (label {peer_keys.RENAMED_GANG})"
    for key in peer_keys.HINTS:
        if why := _hard(annotations, key):
            asked.setdefault("hint", why)
    return asked


def of_bodies(bodies: Iterable[Body]) -> Iterator[dict[str, str]]:
    """What each pod among these objects asks for; what cannot be read asks for nothing."""
    for body in bodies:
        try:
            meta = wire.mapping(body, "metadata")
            if body.get("kind") == "Pod":
                yield of_keys(wire.labels(meta), _notes(meta))
        except BadObjectError:
            continue


def _hard(annotations: Mapping[str, str], key: str) -> str:
    """The nodes that a hint restricts its pod to, in words; empty where it restricts to none."""
    try:
        hint = json_annotations.meant(annotations, key, {"nodeNames": None})
    except BadObjectError as error:
        return f"a scheduling hint that cannot be read ({error})"
    return (
        f"a hard scheduling hint (nodeNames of annotation {key})" if hint.get("nodeNames") else ""
    )


def _notes(meta: Body) -> dict[str, str]:
    return {key: str(value) for key, value in wire.mapping(meta, "annotations").items()}


def refusal(asked: Mapping[str, str]) -> str:
    """What is asked for as a message, with the way out; empty where nothing is."""
    if not asked:
        return ""
    verb = "is" if len(asked) == 1 else "are"
    return (
        f"{' and '.join(asked.values())} {verb} {_LACKING}; {OPTION} places such pods all the same"
    )


class UnservedKeys:
    """Whether a pod may be tried at all."""

    def __init__(self, *, ignores_keys: bool = False) -> None:
        self.ignores_keys = ignores_keys

    def of_class(
        self, labels: Mapping[str, str], annotations: Mapping[str, str], spec: Body
    ) -> str:
        """Why a pod of a class is never tried, by what it says itself."""
        return of_fields(spec) or (
            "" if self.ignores_keys else refusal(of_keys(labels, annotations))
        )
