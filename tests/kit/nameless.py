"""Names of groups that nobody should choose, and that the kernel takes.

Covers: the names. The kernel refuses ``/``, NUL and the newline (it would break /proc/PID/cgroup);
everything else up to 255 bytes is a name, whatever a terminal, JSON or a shell makes of it.
"""

from __future__ import annotations

import os

#: As bytes, because not all of them are texts.
BYTES = (
    b"...",
    b"..x",
    b" ",
    b"-rf",
    b"a b",
    b"tab\there",
    b"cr\rback",
    b"\x1b[31mred\x1b]0;title\x07",
    b"\x01\x02\x7f",
    b"quo\"te'$(id)`id`",
    b"{brace}%s%n",
    b"back\\slash\\n",
    b"no-utf8-\xff\xfe",
    "bidi-\u202egnp".encode(),
    "wide-\u6f22\U0001f408".encode(),
    b"cpuset.cpus.d",
    b"x" * 255,
)
NAMES = tuple(os.fsdecode(name) for name in BYTES)
#: Refused with EINVAL.
REFUSED = "new\nline"
