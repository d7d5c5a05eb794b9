"""Memory speed from the firmware's data about the modules.

Covers: the modules of SMBIOS (DSP0134, type 17) and the bandwidth that they amount to.
Does not cover: what a percentage of it is (``policy.resctrl.values``).

The sum over channels of transfers per second times the width of the bus. Modules on one channel
take turns, so a channel counts once; firmware names it in the bank locator (``P0 CHANNEL A``), some
with the module behind it (``P0_Node0_Channel0_Dimm1``). Where that says nothing, the socket alone
(``NODE 1``), the same of every module, or the same of more modules than a channel has, each module
counts as a channel of its own.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterator

from koordlet.host.fs import root
from koordlet.model.record import dataclass

_MODULE, _END = 17, 127
_HEAD = struct.Struct("<BBH")
#: Offsets in a module's structure: width of the data in bits, size, bank locator (number of a
#: text), speed and configured speed in million transfers per second.
_WIDTH, _SIZE, _BANK, _SPEED, _CONFIGURED = 0x0A, 0x0C, 0x11, 0x15, 0x20
_UNKNOWN = (0, 0xFFFF)
_CHANNEL = re.compile(r"(channel[ _-]*[a-z0-9]+?)[ _-]*dimm.*\Z", re.IGNORECASE)
_SOCKET = re.compile(r"(node|socket|cpu|proc(essor)?)[ _-]*[0-9]+\Z", re.IGNORECASE)
#: Modules on one channel.
_MOST = 3


@dataclass(frozen=True, slots=True)
class Module:
    """One module of memory that is there."""

    bank: str
    #: Million transfers per second.
    speed: int
    #: Bytes in one transfer.
    width: int


def read(host: root.HostRoot) -> float | None:
    """GB/s of the whole machine; ``None`` where the firmware does not say it, or to root only.

    Silence raises.
    """
    path = host.sys("firmware", "dmi", "tables", "DMI")
    table = host.silence.answer(lambda: host.content(path, 1 << 20), b"")
    return gigabytes(list(modules(table)))


def gigabytes(memory_modules: list[Module]) -> float | None:
    """The bandwidth that these modules amount to."""
    if not memory_modules or not all(module.speed and module.width for module in memory_modules):
        return None
    banks = Counter(module.bank for module in memory_modules)
    named = "" not in banks and (len(banks) > 1 or len(memory_modules) == 1)
    named = named and max(banks.values()) <= _MOST
    channels = {
        module.bank if named else str(place): module for place, module in enumerate(memory_modules)
    }
    return sum(channel.speed * channel.width for channel in channels.values()) / 1000


def modules(table: bytes) -> Iterator[Module]:
    """The modules of a table; what is cut off or odd ends it."""
    at = 0
    while at + _HEAD.size <= len(table):
        kind, size, _ = _HEAD.unpack_from(table, at)
        end = table.find(b"\0\0", at + size)
        if size < _HEAD.size or end < 0 or kind == _END:
            return
        if kind == _MODULE:
            module = _module(table[at : at + size], table[at + size : end].split(b"\0"))
            if module is not None:
                yield module
        at = end + 2


def _module(body: bytes, texts: list[bytes]) -> Module | None:
    if len(body) <= _SPEED + 1 or not _word(body, _SIZE):
        return None  # too old to say its speed, or an empty slot
    configured = _word(body, _CONFIGURED) if len(body) > _CONFIGURED + 1 else 0
    speed = _word(body, _SPEED) if configured in _UNKNOWN else configured
    width = _word(body, _WIDTH)
    number = body[_BANK]
    bank = texts[number - 1].decode("latin-1").strip() if 0 < number <= len(texts) else ""
    return Module(
        bank="" if _SOCKET.match(bank) else _CHANNEL.sub(r"\1", bank),
        speed=0 if speed in _UNKNOWN else speed,
        width=0 if width in _UNKNOWN else width // 8,
    )


def _word(body: bytes, at: int) -> int:
    return int.from_bytes(body[at : at + 2], "little")
