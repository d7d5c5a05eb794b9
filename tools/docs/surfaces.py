"""Every name that other programs may depend on, one a line: what a version has promised.

Covers: keys of the configuration, metrics, gRPC, HTTP, commands with their options, kinds.
Does not cover: what they mean. ``fixtures/surfaces`` keeps the list of each released version, and
of the one to come, made anew before its release; ``docs/stability.md`` is the promise.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from google.protobuf.descriptor import Descriptor, FileDescriptor

from koordlet import cli
from koordlet.config import catalog
from koordlet.history import series
from koordlet.report import http_api, metrics, recorder
from koordlet.report.crds import definitions
from koordlet.rpc.gen import feed_pb2, ingest_pb2, reservations_pb2, scheduler_pb2

_PROTOS = (feed_pb2, ingest_pb2, reservations_pb2, scheduler_pb2)


def names() -> list[str]:
    """All of them, in order."""
    return sorted({*_configuration(), *_metrics(), *_grpc(), *_http(), *_commands(), *_kinds()})


def _configuration() -> Iterator[str]:
    yield from (f"config {field.path}" for field in catalog.fields())


def _metrics() -> Iterator[str]:
    for family in metrics.table():
        yield f"metric {family.name} {family.type} {','.join(family.labels)}".rstrip()


def _grpc() -> Iterator[str]:
    for module in _PROTOS:
        file: FileDescriptor = module.DESCRIPTOR
        for message in file.message_types_by_name.values():
            yield from _message(message)
        for service in file.services_by_name.values():
            for method in service.methods:
                kinds = f"{method.input_type.full_name} {method.output_type.full_name}"
                yield f"grpc {method.full_name} {kinds}"


def _message(message: Descriptor) -> Iterator[str]:
    for field in message.fields:
        yield f"grpc {message.full_name}.{field.name} {field.number} {field.type}"
    for nested in message.nested_types:
        yield from _message(nested)


def http_paths() -> Iterator[str]:
    """What the agent's HTTP server answers."""
    recorded = recorder.Recorder(series.History())
    yield from http_api.Api(lambda: None, version="", recorded=recorded).routes()


def _http() -> Iterator[str]:
    yield from (f"http {path}" for path in http_paths())


def _commands() -> Iterator[str]:
    every = cli.parser(None, everything=True)
    [commands] = (a for a in every._actions if isinstance(a, argparse._SubParsersAction))  # noqa: SLF001 -- argparse lists its options nowhere else
    for name, parser in commands.choices.items():
        for action in parser._actions:  # noqa: SLF001 -- as above
            for option in action.option_strings or (action.dest,):
                yield f"command {name} {option}"


def _kinds() -> Iterator[str]:
    for definition in definitions.DEFINITIONS:
        body = definitions.document(definition)
        for version in body["spec"]["versions"]:
            group, kind = body["spec"]["group"], body["spec"]["names"]["kind"]
            yield from _fields(f"kind {group}/{version['name']} {kind}", version["schema"])


def _fields(prefix: str, schema: object) -> Iterator[str]:
    if not isinstance(schema, dict):
        return
    inner = schema.get("openAPIV3Schema", schema)
    if "items" in inner:
        yield from _fields(f"{prefix}[]", inner["items"])
    for name, below in inner.get("properties", {}).items():
        yield f"{prefix}.{name}"
        yield from _fields(f"{prefix}.{name}", below)


if __name__ == "__main__":
    sys.stdout.write("".join(f"{name}\n" for name in names()))
