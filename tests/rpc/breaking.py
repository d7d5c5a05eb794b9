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
    there = {message.name: message for message in new.message_type}
    for message in old.message_type:
        if message.name not in there:
            yield f"message {message.name} is gone"
            continue
        fields = {
            field.number: _field(field, there[message.name]) for field in there[message.name].field
        }
        for field in message.field:
            was, now = _field(field, message), fields.get(field.number)
            if was != now:
                yield f"{message.name}.{field.name} = {field.number}: {was} became {now}"


def _field(
    field: descriptor_pb2.FieldDescriptorProto, of: descriptor_pb2.DescriptorProto
) -> tuple[object, ...]:
    oneof = of.oneof_decl[field.oneof_index].name if field.HasField("oneof_index") else None
    return (field.name, field.type, field.label, field.type_name, oneof, field.proto3_optional)


def _services(
    old: descriptor_pb2.FileDescriptorProto, new: descriptor_pb2.FileDescriptorProto
) -> Iterator[str]:
    there = {
        (service.name, method.name): method for service in new.service for method in service.method
    }
    for service in old.service:
        for method in service.method:
            now = there.get((service.name, method.name))
            if now is None or now.SerializeToString() != method.SerializeToString():
                yield f"{service.name}.{method.name} is not what it was"
