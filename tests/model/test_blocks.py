"""What the name of a block device means."""

from __future__ import annotations

import pytest

from koordlet.model import blocks

STACK = blocks.Blocks(
    devices=(
        blocks.Block(name="sda", number="8:0"),
        blocks.Block(name="sda2", number="8:2", disk="sda"),
        blocks.Block(name="nvme0n1", number="259:0"),
        blocks.Block(
            name="dm-0", number="253:0", mapped="vg-a", volume_group="vg", below=("sda2",)
        ),
        blocks.Block(
            name="dm-1", number="253:1", mapped="vg-b", volume_group="vg", below=("nvme0n1", "dm-0")
        ),
        blocks.Block(name="dm-9", number="253:9", volume_group="ring", below=("dm-9",)),
    ),
    volumes={("u", "data"): "8:2", ("u", "lost"): "9:9"},
)


@pytest.mark.parametrize(
    ("kind", "name", "numbers"),
    [
        ("device", "/dev/sda", ("8:0",)),
        ("device", "sda2", ("8:0",)),
        ("device", "8:2", ("8:0",)),
        ("device", "/dev/mapper/vg-a", ("253:0",)),
        ("device", "sdz", ()),
        ("volumegroup", "vg", ("8:0", "259:0")),
        ("volumegroup", "ring", ()),
        ("volumegroup", "", ()),
        ("podvolume", "data", ("8:0",)),
        ("podvolume", "lost", ()),
        ("podvolume", "none", ()),
    ],
)
def test_names(kind: str, name: str, numbers: tuple[str, ...]) -> None:
    """Devices, partitions, stacks and volumes end in the numbers of whole devices."""
    assert numbers == STACK.find(kind, name, "u")


@pytest.mark.parametrize(
    ("mapped", "uuid", "group"),
    [
        ("vg-root", "LVM-abc", "vg"),
        ("my--group-a--b", "LVM-abc", "my-group"),
        ("luks", "CRYPT-1", ""),
        ("", "", ""),
    ],
)
def test_volume_groups(mapped: str, uuid: str, group: str) -> None:
    """LVM doubles the dashes of names."""
    assert group == blocks.volume_group(mapped, uuid)
