import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetReservationRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ListReservationsRequest(_message.Message):
    __slots__ = ("node", "revision")
    NODE_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    node: str
    revision: str
    def __init__(self, node: _Optional[str] = ..., revision: _Optional[str] = ...) -> None: ...

class ListReservationsResponse(_message.Message):
    __slots__ = ("reservations", "revision")
    RESERVATIONS_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    reservations: _containers.RepeatedCompositeFieldContainer[Reservation]
    revision: str
    def __init__(self, reservations: _Optional[_Iterable[_Union[Reservation, _Mapping]]] = ..., revision: _Optional[str] = ...) -> None: ...

class CreateReservationRequest(_message.Message):
    __slots__ = ("manifest", "dry_run", "client_token")
    MANIFEST_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    CLIENT_TOKEN_FIELD_NUMBER: _ClassVar[int]
    manifest: str
    dry_run: bool
    client_token: str
    def __init__(self, manifest: _Optional[str] = ..., dry_run: _Optional[bool] = ..., client_token: _Optional[str] = ...) -> None: ...

class DeleteReservationRequest(_message.Message):
    __slots__ = ("name", "uid")
    NAME_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    name: str
    uid: str
    def __init__(self, name: _Optional[str] = ..., uid: _Optional[str] = ...) -> None: ...

class DeleteReservationResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReservationEvent(_message.Message):
    __slots__ = ("verb", "reservation", "revision")
    class Verb(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        VERB_UNSPECIFIED: _ClassVar[ReservationEvent.Verb]
        RESET: _ClassVar[ReservationEvent.Verb]
        SET: _ClassVar[ReservationEvent.Verb]
        REMOVED: _ClassVar[ReservationEvent.Verb]
        SYNCED: _ClassVar[ReservationEvent.Verb]
    VERB_UNSPECIFIED: ReservationEvent.Verb
    RESET: ReservationEvent.Verb
    SET: ReservationEvent.Verb
    REMOVED: ReservationEvent.Verb
    SYNCED: ReservationEvent.Verb
    VERB_FIELD_NUMBER: _ClassVar[int]
    RESERVATION_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    verb: ReservationEvent.Verb
    reservation: Reservation
    revision: str
    def __init__(self, verb: _Optional[_Union[ReservationEvent.Verb, str]] = ..., reservation: _Optional[_Union[Reservation, _Mapping]] = ..., revision: _Optional[str] = ...) -> None: ...

class Reservation(_message.Message):
    __slots__ = ("name", "uid", "revision", "phase", "node", "allocatable", "allocated", "current_owners", "conditions", "created", "expires", "allocate_once", "allocate_policy", "cpus", "manifest")
    class AllocatableEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class AllocatedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    ALLOCATABLE_FIELD_NUMBER: _ClassVar[int]
    ALLOCATED_FIELD_NUMBER: _ClassVar[int]
    CURRENT_OWNERS_FIELD_NUMBER: _ClassVar[int]
    CONDITIONS_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_FIELD_NUMBER: _ClassVar[int]
    ALLOCATE_ONCE_FIELD_NUMBER: _ClassVar[int]
    ALLOCATE_POLICY_FIELD_NUMBER: _ClassVar[int]
    CPUS_FIELD_NUMBER: _ClassVar[int]
    MANIFEST_FIELD_NUMBER: _ClassVar[int]
    name: str
    uid: str
    revision: str
    phase: str
    node: str
    allocatable: _containers.ScalarMap[str, str]
    allocated: _containers.ScalarMap[str, str]
    current_owners: _containers.RepeatedCompositeFieldContainer[CurrentOwner]
    conditions: _containers.RepeatedCompositeFieldContainer[ReservationCondition]
    created: _timestamp_pb2.Timestamp
    expires: _timestamp_pb2.Timestamp
    allocate_once: bool
    allocate_policy: str
    cpus: str
    manifest: str
    def __init__(self, name: _Optional[str] = ..., uid: _Optional[str] = ..., revision: _Optional[str] = ..., phase: _Optional[str] = ..., node: _Optional[str] = ..., allocatable: _Optional[_Mapping[str, str]] = ..., allocated: _Optional[_Mapping[str, str]] = ..., current_owners: _Optional[_Iterable[_Union[CurrentOwner, _Mapping]]] = ..., conditions: _Optional[_Iterable[_Union[ReservationCondition, _Mapping]]] = ..., created: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., expires: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., allocate_once: _Optional[bool] = ..., allocate_policy: _Optional[str] = ..., cpus: _Optional[str] = ..., manifest: _Optional[str] = ...) -> None: ...

class ReservationDescription(_message.Message):
    __slots__ = ("reservation", "timeline", "warnings")
    class Entry(_message.Message):
        __slots__ = ("at", "what")
        AT_FIELD_NUMBER: _ClassVar[int]
        WHAT_FIELD_NUMBER: _ClassVar[int]
        at: _timestamp_pb2.Timestamp
        what: str
        def __init__(self, at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., what: _Optional[str] = ...) -> None: ...
    RESERVATION_FIELD_NUMBER: _ClassVar[int]
    TIMELINE_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    reservation: Reservation
    timeline: _containers.RepeatedCompositeFieldContainer[ReservationDescription.Entry]
    warnings: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, reservation: _Optional[_Union[Reservation, _Mapping]] = ..., timeline: _Optional[_Iterable[_Union[ReservationDescription.Entry, _Mapping]]] = ..., warnings: _Optional[_Iterable[str]] = ...) -> None: ...

class CurrentOwner(_message.Message):
    __slots__ = ("namespace", "name", "uid")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    uid: str
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ..., uid: _Optional[str] = ...) -> None: ...

class ReservationCondition(_message.Message):
    __slots__ = ("type", "status", "reason", "message", "changed")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    type: str
    status: str
    reason: str
    message: str
    changed: _timestamp_pb2.Timestamp
    def __init__(self, type: _Optional[str] = ..., status: _Optional[str] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ..., changed: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
