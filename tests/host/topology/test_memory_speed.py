"""The memory's bandwidth, from tables as firmware writes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordlet.host.recording import directory
from koordlet.host.topology import memory_speed


def module(bank: str, speed: int, *, size: int = 0x4000, configured: int = 0) -> bytes:
    """One module of 64 bits, as a structure with its texts."""
    body = bytearray(0x28)
    body[0], body[1] = 17, len(body)
    body[0x0A:0x0E] = (64).to_bytes(2, "little") + size.to_bytes(2, "little")
    # An empty text is not written: its number is 0.
    body[0x10:0x12] = bytes((1, 2 if bank else 0))
    body[0x15:0x17] = speed.to_bytes(2, "little")
    body[0x20:0x22] = configured.to_bytes(2, "little")
    return bytes(body) + b"\0".join(text.encode() for text in ("DIMM 0", bank) if text) + b"\0\0"


#: The end, and before it something else that has texts.
END = b"\x7f\x04\0\0\0\0"
OTHER = b"\x01\x05\0\0\1maker\0\0"


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        # Two channels of DDR4-3200, two modules on each: a channel counts once.
        (b"".join(module(f"P0 CHANNEL {c}", 3200) for c in "AABB"), 51.2),
        # What is configured counts, not what the module could do.
        (module("P0 CHANNEL A", 3200, configured=2666), 21.328),
        # Names that say nothing: each module is a channel.
        (module("BANK", 3200) * 2, 51.2),
        (module("", 3200) * 2, 51.2),
        # The module is named behind its channel: two on each of two channels.
        (b"".join(module(f"P0_Node0_Channel{n // 2}_Dimm{n % 2}", 3200) for n in range(4)), 51.2),
        (module("DIMM A", 3200) + module("DIMM B", 3200), 51.2),
        # The module is named behind its socket: who knows its channel?
        (b"".join(module(f"CPU{n // 2}_DIMM_{'AB'[n % 2]}1", 3200) for n in range(4)), 102.4),
        # Names of sockets or boards: a channel has three modules at most, a socket may have two.
        (b"".join(module(f"BOARD {n}", 3200) for n in "11112222"), 204.8),
        (b"".join(module(f"Node{n}", 3200) for n in "1122"), 102.4),
        # An empty slot is nothing.
        (module("P0 CHANNEL A", 3200) + module("P0 CHANNEL B", 0, size=0), 25.6),
        # An emulator does not say how fast its memory is.
        (module("P0 CHANNEL A", 0), None),
        (b"", None),
    ],
    ids=[
        "channels",
        "configured",
        "one name",
        "no name",
        "modules",
        "modules alone",
        "modules of sockets",
        "boards",
        "sockets",
        "empty slot",
        "no speed",
        "no modules",
    ],
)
def test_channels(tmp_path: Path, table: bytes, expected: float | None) -> None:
    """Transfers times width, summed over channels; nothing where anything is unknown."""
    place = tmp_path / "sys/firmware/dmi/tables"
    place.mkdir(parents=True)
    (place / "DMI").write_bytes(OTHER + table + END)

    assert pytest.approx(memory_speed.read(directory.DirHost(str(tmp_path)))) == expected


def test_no_table(tmp_path: Path) -> None:
    """A machine without such firmware, or a reader without the right to read it."""
    assert memory_speed.read(directory.DirHost(str(tmp_path))) is None


@given(st.binary(max_size=300))
def test_any_bytes(table: bytes) -> None:
    """They are modules or they are none."""
    memory_speed.gigabytes(list(memory_speed.modules(table)))


@given(st.integers(0, 200))
def test_cut_off(length: int) -> None:
    """A table that ends early has the modules before that."""
    table = module("A", 3200) + module("B", 3200)
    modules = list(memory_speed.modules(table[:length]))

    assert modules == list(memory_speed.modules(table))[: len(modules)]
