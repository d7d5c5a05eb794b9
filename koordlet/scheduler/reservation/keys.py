"""Labels and annotations of the peers' Reservation API, as they spell them.

Covers: names. Does not cover: what they mean (the modules that read them).
"""

from __future__ import annotations

_SCHEDULING = "scheduling.koordinator.sh"

# On pods.
ALLOCATED = f"{_SCHEDULING}/reservation-allocated"
AFFINITY = f"{_SCHEDULING}/reservation-affinity"
IGNORED = f"{_SCHEDULING}/reservation-ignored"
EXACT = f"{_SCHEDULING}/exact-match-reservation"
NEVER_VICTIM = f"{_SCHEDULING}/disable-preemptible"
OPERATING_MODE = f"{_SCHEDULING}/operating-mode"
OWNERS = f"{_SCHEDULING}/reservation-owners"
PRE_ALLOCATABLE = "pod.koordinator.sh/is-pre-allocatable"
PRE_ALLOCATABLE_PRIORITY = "pod.koordinator.sh/pre-allocatable-priority"

# On reservations.
ORDER = f"{_SCHEDULING}/reservation-order"
RESTRICTED_OPTIONS = f"{_SCHEDULING}/reservation-restricted-options"
RESIZE = f"{_SCHEDULING}/reservation-resize-allocatable"
PRE_ALLOCATION_REQUIRED = f"{_SCHEDULING}/pre-allocation-required"
NODE_RESERVATION = "node.koordinator.sh/reservation"
PRIORITY = "koordinator.sh/priority"
SCHEDULER_NAME = f"{_SCHEDULING}/scheduler-name"
#: Ours: what was adopted when a pre-allocation was bound, ``{"pods":[uid],"resources":{…}}``;
#: what is missing of it since then has been released.
ADOPTED = "koordlet.io/pre-allocated"
#: Ours: the UIDs of the running pods that it takes over, and no others, with commas between them.
ADOPTS = "koordlet.io/pre-allocates"
#: Ours: the preemptor, ``namespace/name``, whose place it is.
PLACE_OF = "koordlet.io/place-of"
#: Ours: the unit or cgroup that it is for, and that no scheduler moves.
MATCH = "koordlet.io/match"
#: Ours: the token by which a client's repeated create is known to be the same one.
CLIENT_TOKEN = "koordlet.io/client-token"  # noqa: S105 -- a name, no secret
