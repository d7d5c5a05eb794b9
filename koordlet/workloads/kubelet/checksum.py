"""The checksum that the kubelet puts into its checkpoints.

FNV-1a in 32 bits (draft-eastlake-fnv) over a text dump of the structure with the checksum zero:
every value with its Go type, keys of maps sorted. The dumps are made beside each format.
"""

from __future__ import annotations

_BASIS = 0x811C9DC5
_PRIME = 0x01000193
_MASK = 0xFFFFFFFF


def fnv1a(text: str) -> int:
    """32 bits of FNV-1a over the text's UTF-8."""
    found = _BASIS
    for byte in text.encode(errors="surrogatepass"):
        found = (found ^ byte) * _PRIME & _MASK
    return found
