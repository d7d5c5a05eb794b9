"""Generated code, and the promises that it keeps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2

from koordlet.rpc.gen import feed_pb2, ingest_pb2, reservations_pb2, scheduler_pb2
from tests.rpc import breaking
from tools.proto import generate


def test_up_to_date() -> None:
    """The generated code in the tree is what the protos say."""
    assert generate.main(["--check"]) == 0


def test_check_sees_a_difference(tmp_path: Path) -> None:
    """A file that is changed, missing or too many is named."""
    made = tmp_path / "gen"
    generate.make(made)
    (made / "feed_pb2.py").write_text("# changed\n", encoding="utf-8")
    (made / "feed_pb2.pyi").unlink()
    (made / "more_pb2.py").touch()

    assert generate.differences(made) == ["feed_pb2.py", "feed_pb2.pyi", "more_pb2.py"]


SERVED = {
    proto.DESCRIPTOR.name: proto.DESCRIPTOR
    for proto in (feed_pb2, ingest_pb2, reservations_pb2, scheduler_pb2)
}
FEED = feed_pb2.DESCRIPTOR.name


def recorded(name: str = FEED) -> descriptor_pb2.FileDescriptorProto:
    """The descriptor that clients rely on."""
    descriptors = descriptor_pb2.FileDescriptorSet.FromString(generate.RECORDED.read_bytes())
    return next(file for file in descriptors.file if file.name == name)


def current(name: str = FEED) -> descriptor_pb2.FileDescriptorProto:
    """The descriptor that is served now."""
    file = descriptor_pb2.FileDescriptorProto()
    SERVED[name].CopyToProto(file)
    return file


def test_every_service_is_recorded() -> None:
    """No proto of ours is without a promise."""
    descriptors = descriptor_pb2.FileDescriptorSet.FromString(generate.RECORDED.read_bytes())

    assert {
        file.name for file in descriptors.file if file.package == "koordlet.v1"
    } == SERVED.keys()


@pytest.mark.parametrize("name", SERVED)
def test_nothing_that_clients_rely_on_is_broken(name: str) -> None:
    """All that was recorded is there as it was: names, numbers, types, methods."""
    assert breaking.breaks(recorded(name), current(name)) == []


def message(file: descriptor_pb2.FileDescriptorProto, name: str) -> descriptor_pb2.DescriptorProto:
    """One message."""
    return next(message_type for message_type in file.message_type if message_type.name == name)


def test_additions_break_nothing() -> None:
    """A new field and a new message are allowed."""
    file = current()
    message(file, "Pool").field.add(name="more", number=99, type=9, label=1)
    file.message_type.add(name="Further")

    assert breaking.breaks(recorded(), file) == []


def field(file: descriptor_pb2.FileDescriptorProto) -> descriptor_pb2.FieldDescriptorProto:
    """``WatchEvent.revision``."""
    return message(file, "WatchEvent").field[1]


Change = Callable[[descriptor_pb2.FileDescriptorProto], object]

CHANGES: dict[str, Change] = {
    "renamed": lambda f: setattr(field(f), "name", "version"),
    "renumbered": lambda f: setattr(field(f), "number", 77),
    "retyped": lambda f: setattr(field(f), "type", 9),
    "repeated": lambda f: setattr(field(f), "label", 3),
    "field gone": lambda f: message(f, "WatchEvent").field.pop(1),
    "out of its oneof": lambda f: message(f, "WatchEvent").field[2].ClearField("oneof_index"),
    "message gone": lambda f: f.message_type.remove(message(f, "Pool")),
    "method gone": lambda f: f.service[0].method.pop(0),
    "no stream": lambda f: setattr(f.service[0].method[1], "server_streaming", False),
    "another answer": lambda f: setattr(f.service[0].method[0], "output_type", ".x.Y"),
    "no presence": lambda f: setattr(message(f, "Pool").field[3], "proto3_optional", False),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_every_break_is_seen(change: Change) -> None:
    """Whatever an old client would misread is found."""
    file = current()
    change(file)

    assert breaking.breaks(recorded(), file)
