"""The encoding that the container runtime's client speaks, against the reference implementation."""

from __future__ import annotations

from google.protobuf import descriptor_pb2

from tests.kit.containerd import wire


def test_messages_are_what_the_reference_reads_and_writes() -> None:
    """Texts, numbers beyond a byte, nested and repeated messages, in both directions."""
    theirs = descriptor_pb2.FileDescriptorProto(
        name="a" * 300,
        dependency=["b", ""],
        message_type=[descriptor_pb2.DescriptorProto(name="M")],
        public_dependency=[70_000],
    )
    ours = wire.encode({1: "a" * 300, 3: ["b", ""], 4: [{1: "M"}], 10: 70_000})

    assert theirs == descriptor_pb2.FileDescriptorProto.FromString(ours)
    assert wire.decode(theirs.SerializeToString()) == wire.decode(ours)
    assert wire.text(wire.decode(ours), 1) == "a" * 300
