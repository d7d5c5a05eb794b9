"""Memory limits below current use are held back, not written.

Covers: which files limit memory, what is in use there, whether a value leaves room.
Does not cover: what a limit should be (``policy``).

Writing ``memory.max`` below the use is accepted and answered by the OOM killer; v1 reclaims for as
long as it takes and then says EBUSY. Neither is what anybody wants from a limit, so a value below
the use plus a margin waits until the use has gone down. The same holds for putting one back.
"""

from __future__ import annotations

from koordlet.apply import kinds
from koordlet.host.fs import root
from koordlet.model import action

#: File of a limit to the file of what it limits, beside it.
USAGE = {
    "memory.max": "memory.current",
    "memory.limit_in_bytes": "memory.usage_in_bytes",
    "memory.memsw.limit_in_bytes": "memory.memsw.usage_in_bytes",
}
_NAMES = tuple(f"/{name}" for name in USAGE)
#: The margin: what a group may allocate between look and write.
LEAST_MARGIN = 4 << 20
PART = 32


def problem(host: root.HostRoot, wanted: action.Action) -> str:
    """The reason that a memory limit must wait; empty where it need not."""
    if not wanted.target.endswith(_NAMES) or not isinstance(wanted, kinds.FILES):
        return ""
    directory, _, name = wanted.target.rpartition("/")
    used_in = USAGE[name]
    if not wanted.value.strip():
        return "an empty memory limit would mean 0"
    try:
        limit = int(wanted.value)
        used = int(host.text(host.at(f"{directory}/{used_in}")))
    except ValueError:
        return ""  # "max": the kernel has the word
    except OSError as error:
        # Where a group is gone, the kernel has the word.
        silent = host.silence.met(error, gap=True)
        return f"memory use cannot be read ({error.strerror}): held until it can" if silent else ""
    least = used + max(LEAST_MARGIN, used // PART)
    if limit < 0 or limit >= least:
        return ""  # below zero is v1's word for no limit
    return f"{limit} bytes is below the {used} in use and a margin: held until use falls"
