"""What a change of a proto breaks for clients that were built before it."""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf import descriptor_pb2


def breaks(
    old: descriptor_pb2.FileDescriptorProto, new: descriptor_pb2.FileDescriptorProto
) -> list[str]:
    """Each break in words; additions are none."""
    return [*_messages(old, new), *_services(old, new)]


def _messages(
    old: descriptor_pb2.FileDescriptorProto, new: descriptor_pb2.FileDescriptorProto
) -> Iterator[str]:
    there = {one.name: one for one in new.message_type}
    for message in old.message_type:
        if message.name not in there:
            yield f"message {message.name} is gone"
            continue
        fields = {one.number: _field(one, there[message.name]) for one in there[message.name].field}
        for field in message.field:
            was, now = _field(field, message), fields.get(field.number)
            if was != now:
                yield f"{message.name}.{field.name} = {field.number}: {was} became {now}"


def _field(
    one: descriptor_pb2.FieldDescriptorProto, of: descriptor_pb2.DescriptorProto
) -> tuple[object, ...]:
    oneof = of.oneof_decl[one.oneof_index].name if one.HasField("oneof_index") else None
    return (one.name, one.type, one.label, one.type_name, oneof, one.proto3_optional)


def _services(
    old: descriptor_pb2.FileDescriptorProto, new: descriptor_pb2.FileDescriptorProto
) -> Iterator[str]:
    there = {(service.name, one.name): one for service in new.service for one in service.method}
    for service in old.service:
        for method in service.method:
            now = there.get((service.name, method.name))
            if now is None or now.SerializeToString() != method.SerializeToString():
                yield f"{service.name}.{method.name} is not what it was"
