from koordlet.rpc.gen import feed_pb2 as _feed_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ReportRequest(_message.Message):
    __slots__ = ("hello", "event")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    event: _feed_pb2.WatchEvent
    def __init__(self, hello: _Optional[_Union[Hello, _Mapping]] = ..., event: _Optional[_Union[_feed_pb2.WatchEvent, _Mapping]] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("node", "epoch", "revision", "version")
    NODE_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    node: str
    epoch: str
    revision: int
    version: str
    def __init__(self, node: _Optional[str] = ..., epoch: _Optional[str] = ..., revision: _Optional[int] = ..., version: _Optional[str] = ...) -> None: ...

class ReportReply(_message.Message):
    __slots__ = ("known",)
    KNOWN_FIELD_NUMBER: _ClassVar[int]
    known: Known
    def __init__(self, known: _Optional[_Union[Known, _Mapping]] = ...) -> None: ...

class Known(_message.Message):
    __slots__ = ("epoch", "revision")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    epoch: str
    revision: int
    def __init__(self, epoch: _Optional[str] = ..., revision: _Optional[int] = ...) -> None: ...
