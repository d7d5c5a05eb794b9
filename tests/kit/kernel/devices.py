"""The device that a line of a block controller's file begins with (``blkg_conf_prep``).

Covers: the number, whether there is such a device. Does not cover: what follows it (``block``).
"""

from __future__ import annotations

import errno
import re

from tests.kit.kernel.hardware import Hardware
from tests.kit.kernel.tree import refused

_LINE = re.compile(r"[ \t\n\v\f\r]*([0-9]+:[0-9]+)([ \t\n\v\f\r].*)\Z", re.DOTALL)


def split(text: str, hardware: Hardware) -> tuple[str, str]:
    """MAJOR:MINOR and the rest; EINVAL where no white space follows, ENODEV without the device."""
    line = _LINE.match(text)
    if line is None:
        raise refused(errno.EINVAL)
    if line[1] not in hardware.disks:
        raise refused(errno.ENODEV)
    return line[1], line[2]
