"""Generated code, and the promises that it keeps."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2

from koordlet.rpc import generate
from koordlet.rpc.gen import feed_pb2
from tests.rpc import breaking

pytest.importorskip("grpc_tools", reason="grpcio-tools is a dependency of development")


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

    assert ["feed_pb2.py", "feed_pb2.pyi", "more_pb2.py"] == generate.differences(made)


def recorded() -> descriptor_pb2.FileDescriptorProto:
    """The descriptor that clients rely on."""
    found = descriptor_pb2.FileDescriptorSet.FromString(generate.RECORDED.read_bytes())
    return next(file for file in found.file if file.package == "koordlet.v1")


def current() -> descriptor_pb2.FileDescriptorProto:
    """The descriptor that the agent serves."""
    file = descriptor_pb2.FileDescriptorProto()
    feed_pb2.DESCRIPTOR.CopyToProto(file)
    return file


def test_nothing_that_clients_rely_on_is_broken() -> None:
    """All that was recorded is there as it was: names, numbers, types, methods."""
    assert breaking.breaks(recorded(), current()) == []


def message(file: descriptor_pb2.FileDescriptorProto, name: str) -> descriptor_pb2.DescriptorProto:
    """One message."""
    return next(one for one in file.message_type if one.name == name)


def test_additions_break_nothing() -> None:
    """A new field and a new message are allowed."""
    file = current()
    message(file, "Pool").field.add(name="more", number=99, type=9, label=1)
    file.message_type.add(name="Further")

    assert breaking.breaks(recorded(), file) == []


@pytest.mark.parametrize("change", ["rename", "number", "type", "label", "remove", "oneof",
                                    "message", "method", "stream", "answer", "presence"])  # fmt: skip
def test_every_break_is_seen(change: str) -> None:
    """Whatever an old client would misread is found."""
    file = current()
    event, service = message(file, "WatchEvent"), file.service[0]
    field = event.field[1]
    if change == "rename":
        field.name = "version"
    elif change == "number":
        field.number = 77
    elif change == "type":
        field.type = descriptor_pb2.FieldDescriptorProto.TYPE_STRING
    elif change == "label":
        field.label = descriptor_pb2.FieldDescriptorProto.LABEL_REPEATED
    elif change == "remove":
        del event.field[1]
    elif change == "oneof":
        event.field[2].ClearField("oneof_index")
    elif change == "message":
        file.message_type.remove(message(file, "Pool"))
    elif change == "method":
        del service.method[0]
    elif change == "stream":
        service.method[1].server_streaming = False
    elif change == "answer":
        service.method[0].output_type = ".koordlet.v1.WatchEvent"
    else:
        optional = next(one for one in message(file, "Pool").field if one.name == "node")
        optional.proto3_optional = False

    assert breaking.breaks(recorded(), file)
