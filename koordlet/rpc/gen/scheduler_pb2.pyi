import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class MovePodsRequest(_message.Message):
    __slots__ = ("node", "pod", "reason", "loses_data", "timeout", "avoid")
    NODE_FIELD_NUMBER: _ClassVar[int]
    POD_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    LOSES_DATA_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    AVOID_FIELD_NUMBER: _ClassVar[int]
    node: str
    pod: str
    reason: str
    loses_data: bool
    timeout: float
    avoid: float
    def __init__(self, node: _Optional[str] = ..., pod: _Optional[str] = ..., reason: _Optional[str] = ..., loses_data: _Optional[bool] = ..., timeout: _Optional[float] = ..., avoid: _Optional[float] = ...) -> None: ...

class PodMove(_message.Message):
    __slots__ = ("pod", "state", "node", "message")
    POD_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    pod: str
    state: str
    node: str
    message: str
    def __init__(self, pod: _Optional[str] = ..., state: _Optional[str] = ..., node: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class UndoDrainRequest(_message.Message):
    __slots__ = ("node",)
    NODE_FIELD_NUMBER: _ClassVar[int]
    node: str
    def __init__(self, node: _Optional[str] = ...) -> None: ...

class UndoDrainResponse(_message.Message):
    __slots__ = ("ended",)
    ENDED_FIELD_NUMBER: _ClassVar[int]
    ended: int
    def __init__(self, ended: _Optional[int] = ...) -> None: ...

class ListObjectsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ClusterObject(_message.Message):
    __slots__ = ("json",)
    JSON_FIELD_NUMBER: _ClassVar[int]
    json: str
    def __init__(self, json: _Optional[str] = ...) -> None: ...

class DeleteQuotaRequest(_message.Message):
    __slots__ = ("name", "force")
    NAME_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    name: str
    force: bool
    def __init__(self, name: _Optional[str] = ..., force: _Optional[bool] = ...) -> None: ...

class DeleteQuotaResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListNodesRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ListNodesResponse(_message.Message):
    __slots__ = ("nodes",)
    NODES_FIELD_NUMBER: _ClassVar[int]
    nodes: _containers.RepeatedCompositeFieldContainer[SchedulerNode]
    def __init__(self, nodes: _Optional[_Iterable[_Union[SchedulerNode, _Mapping]]] = ...) -> None: ...

class SchedulerNode(_message.Message):
    __slots__ = ("name", "allocatable", "requested", "pods", "unschedulable", "heard", "pressures")
    class AllocatableEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class RequestedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    ALLOCATABLE_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_FIELD_NUMBER: _ClassVar[int]
    PODS_FIELD_NUMBER: _ClassVar[int]
    UNSCHEDULABLE_FIELD_NUMBER: _ClassVar[int]
    HEARD_FIELD_NUMBER: _ClassVar[int]
    PRESSURES_FIELD_NUMBER: _ClassVar[int]
    name: str
    allocatable: _containers.ScalarMap[str, str]
    requested: _containers.ScalarMap[str, str]
    pods: int
    unschedulable: bool
    heard: _timestamp_pb2.Timestamp
    pressures: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., allocatable: _Optional[_Mapping[str, str]] = ..., requested: _Optional[_Mapping[str, str]] = ..., pods: _Optional[int] = ..., unschedulable: _Optional[bool] = ..., heard: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., pressures: _Optional[_Iterable[str]] = ...) -> None: ...

class WatchAssignmentsRequest(_message.Message):
    __slots__ = ("node", "revision")
    NODE_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    node: str
    revision: str
    def __init__(self, node: _Optional[str] = ..., revision: _Optional[str] = ...) -> None: ...

class AssignmentEvent(_message.Message):
    __slots__ = ("verb", "assignment", "revision")
    class Verb(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        VERB_UNSPECIFIED: _ClassVar[AssignmentEvent.Verb]
        RESET: _ClassVar[AssignmentEvent.Verb]
        SET: _ClassVar[AssignmentEvent.Verb]
        REMOVED: _ClassVar[AssignmentEvent.Verb]
        SYNCED: _ClassVar[AssignmentEvent.Verb]
    VERB_UNSPECIFIED: AssignmentEvent.Verb
    RESET: AssignmentEvent.Verb
    SET: AssignmentEvent.Verb
    REMOVED: AssignmentEvent.Verb
    SYNCED: AssignmentEvent.Verb
    VERB_FIELD_NUMBER: _ClassVar[int]
    ASSIGNMENT_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    verb: AssignmentEvent.Verb
    assignment: Assignment
    revision: str
    def __init__(self, verb: _Optional[_Union[AssignmentEvent.Verb, str]] = ..., assignment: _Optional[_Union[Assignment, _Mapping]] = ..., revision: _Optional[str] = ...) -> None: ...

class Assignment(_message.Message):
    __slots__ = ("namespace", "name", "uid", "node", "cpus", "reservation", "qos", "manifest")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    CPUS_FIELD_NUMBER: _ClassVar[int]
    RESERVATION_FIELD_NUMBER: _ClassVar[int]
    QOS_FIELD_NUMBER: _ClassVar[int]
    MANIFEST_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    uid: str
    node: str
    cpus: str
    reservation: str
    qos: str
    manifest: str
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ..., uid: _Optional[str] = ..., node: _Optional[str] = ..., cpus: _Optional[str] = ..., reservation: _Optional[str] = ..., qos: _Optional[str] = ..., manifest: _Optional[str] = ...) -> None: ...

class SubmitRequest(_message.Message):
    __slots__ = ("manifests", "dry_run")
    MANIFESTS_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    manifests: _containers.RepeatedScalarFieldContainer[str]
    dry_run: bool
    def __init__(self, manifests: _Optional[_Iterable[str]] = ..., dry_run: _Optional[bool] = ...) -> None: ...

class SubmitResponse(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[SubmitResult]
    def __init__(self, results: _Optional[_Iterable[_Union[SubmitResult, _Mapping]]] = ...) -> None: ...

class SubmitResult(_message.Message):
    __slots__ = ("kind", "namespace", "name", "uid", "error")
    KIND_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    kind: str
    namespace: str
    name: str
    uid: str
    error: str
    def __init__(self, kind: _Optional[str] = ..., namespace: _Optional[str] = ..., name: _Optional[str] = ..., uid: _Optional[str] = ..., error: _Optional[str] = ...) -> None: ...

class ExplainRequest(_message.Message):
    __slots__ = ("namespace", "name")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class ExplainResponse(_message.Message):
    __slots__ = ("node", "message", "scores", "refusals")
    class ScoresEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class RefusalsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    NODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    SCORES_FIELD_NUMBER: _ClassVar[int]
    REFUSALS_FIELD_NUMBER: _ClassVar[int]
    node: str
    message: str
    scores: _containers.ScalarMap[str, int]
    refusals: _containers.ScalarMap[str, int]
    def __init__(self, node: _Optional[str] = ..., message: _Optional[str] = ..., scores: _Optional[_Mapping[str, int]] = ..., refusals: _Optional[_Mapping[str, int]] = ...) -> None: ...
