"""An address to listen on, as a text: HOST:PORT.

Covers: what one looks like. Does not cover: the words that refuse another text (``fieldtypes``).
"""

from __future__ import annotations

import re

_ADDRESS = re.compile(r"(?P<host>\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]+):(?P<port>[0-9]{1,5})\Z")
_MAX_PORT = 65535


def is_one(text: str) -> bool:
    """True for a host or an address, and a port that can be one."""
    match = _ADDRESS.match(text)
    return match is not None and int(match["port"]) <= _MAX_PORT
