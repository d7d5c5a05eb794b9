"""The fingerprint of a set of pods, by which a scheduler sees whether a report knows them all.

Covers: ``pfp0v001`` of the topology-aware schedulers: XXH64 of names seeded by their namespaces,
sorted, hashed again. Does not cover: which pods belong to it (``topology_object``).

Hash: XXH64 (xxHash specification 0.1.1); its constants are in the specification. Written here
because it is thirty lines, and a dependency for a few hundred short names a minute is too much.
"""

from __future__ import annotations

from collections.abc import Iterable

ANNOTATION = "topology.node.k8s.io/fingerprint"
ATTRIBUTE = "nodeTopologyPodsFingerprint"
METHOD = "nodeTopologyPodsFingerprintMethod"

_PREFIX = "pfp0v001"
_MASK = (1 << 64) - 1
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def of(pods: Iterable[tuple[str, str]]) -> str:
    """The fingerprint of pods given as (namespace, name), in any order."""
    hashes = sorted(xxh64(name.encode(), xxh64(space.encode())) for space, name in pods)
    whole = b"".join(hash_.to_bytes(8, "little") for hash_ in hashes)
    return f"{_PREFIX}{xxh64(whole):016x}"


def xxh64(data: bytes, seed: int = 0) -> int:
    """The hash of some bytes."""
    at, length = 0, len(data)
    if length >= 32:
        lanes = [(seed + _P1 + _P2) & _MASK, (seed + _P2) & _MASK, seed, (seed - _P1) & _MASK]
        while at + 32 <= length:
            for lane in range(4):
                lanes[lane] = _round(lanes[lane], _word(data, at + 8 * lane, 8))
            at += 32
        turns = zip(lanes, (1, 7, 12, 18), strict=True)
        value = sum(_turned(lane, bits) for lane, bits in turns) & _MASK
        for lane in lanes:
            value = ((value ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        value = (seed + _P5) & _MASK
    return _tail(data, at, (value + length) & _MASK)


def _tail(data: bytes, at: int, value: int) -> int:
    """Hash the last bytes (fewer than 32), and mix the result."""
    while at + 8 <= len(data):
        value = (_turned(value ^ _round(0, _word(data, at, 8)), 27) * _P1 + _P4) & _MASK
        at += 8
    if at + 4 <= len(data):
        value = (_turned(value ^ (_word(data, at, 4) * _P1 & _MASK), 23) * _P2 + _P3) & _MASK
        at += 4
    for byte in data[at:]:
        value = _turned(value ^ (byte * _P5 & _MASK), 11) * _P1 & _MASK
    value = (value ^ value >> 33) * _P2 & _MASK
    value = (value ^ value >> 29) * _P3 & _MASK
    return value ^ value >> 32


def _round(lane: int, word: int) -> int:
    return _turned((lane + word * _P2) & _MASK, 31) * _P1 & _MASK


def _turned(value: int, bits: int) -> int:
    return (value << bits | value >> 64 - bits) & _MASK


def _word(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")
