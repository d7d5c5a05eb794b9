import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetNodeRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("epoch", "revision")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    epoch: str
    revision: int
    def __init__(self, epoch: _Optional[str] = ..., revision: _Optional[int] = ...) -> None: ...

class WatchEvent(_message.Message):
    __slots__ = ("epoch", "revision", "full", "delta", "heartbeat", "observed_at")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    FULL_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    OBSERVED_AT_FIELD_NUMBER: _ClassVar[int]
    epoch: str
    revision: int
    full: Node
    delta: Delta
    heartbeat: Heartbeat
    observed_at: _timestamp_pb2.Timestamp
    def __init__(self, epoch: _Optional[str] = ..., revision: _Optional[int] = ..., full: _Optional[_Union[Node, _Mapping]] = ..., delta: _Optional[_Union[Delta, _Mapping]] = ..., heartbeat: _Optional[_Union[Heartbeat, _Mapping]] = ..., observed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Heartbeat(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Delta(_message.Message):
    __slots__ = ("summary", "topology", "allocation", "workloads", "conditions", "usage", "free", "pressure", "best_effort")
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    TOPOLOGY_FIELD_NUMBER: _ClassVar[int]
    ALLOCATION_FIELD_NUMBER: _ClassVar[int]
    WORKLOADS_FIELD_NUMBER: _ClassVar[int]
    CONDITIONS_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    FREE_FIELD_NUMBER: _ClassVar[int]
    PRESSURE_FIELD_NUMBER: _ClassVar[int]
    BEST_EFFORT_FIELD_NUMBER: _ClassVar[int]
    summary: Summary
    topology: Topology
    allocation: Allocation
    workloads: Workloads
    conditions: Conditions
    usage: Usage
    free: Free
    pressure: Pressure
    best_effort: BestEffort
    def __init__(self, summary: _Optional[_Union[Summary, _Mapping]] = ..., topology: _Optional[_Union[Topology, _Mapping]] = ..., allocation: _Optional[_Union[Allocation, _Mapping]] = ..., workloads: _Optional[_Union[Workloads, _Mapping]] = ..., conditions: _Optional[_Union[Conditions, _Mapping]] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., free: _Optional[_Union[Free, _Mapping]] = ..., pressure: _Optional[_Union[Pressure, _Mapping]] = ..., best_effort: _Optional[_Union[BestEffort, _Mapping]] = ...) -> None: ...

class Node(_message.Message):
    __slots__ = ("epoch", "revision", "observed_at", "summary", "topology", "allocation", "workloads", "conditions", "usage", "free", "pressure", "best_effort")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    OBSERVED_AT_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    TOPOLOGY_FIELD_NUMBER: _ClassVar[int]
    ALLOCATION_FIELD_NUMBER: _ClassVar[int]
    WORKLOADS_FIELD_NUMBER: _ClassVar[int]
    CONDITIONS_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    FREE_FIELD_NUMBER: _ClassVar[int]
    PRESSURE_FIELD_NUMBER: _ClassVar[int]
    BEST_EFFORT_FIELD_NUMBER: _ClassVar[int]
    epoch: str
    revision: int
    observed_at: _timestamp_pb2.Timestamp
    summary: Summary
    topology: Topology
    allocation: Allocation
    workloads: Workloads
    conditions: Conditions
    usage: Usage
    free: Free
    pressure: Pressure
    best_effort: BestEffort
    def __init__(self, epoch: _Optional[str] = ..., revision: _Optional[int] = ..., observed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., summary: _Optional[_Union[Summary, _Mapping]] = ..., topology: _Optional[_Union[Topology, _Mapping]] = ..., allocation: _Optional[_Union[Allocation, _Mapping]] = ..., workloads: _Optional[_Union[Workloads, _Mapping]] = ..., conditions: _Optional[_Union[Conditions, _Mapping]] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., free: _Optional[_Union[Free, _Mapping]] = ..., pressure: _Optional[_Union[Pressure, _Mapping]] = ..., best_effort: _Optional[_Union[BestEffort, _Mapping]] = ...) -> None: ...

class Summary(_message.Message):
    __slots__ = ("name", "machine_id", "boot_id", "mode", "ready", "version")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MACHINE_ID_FIELD_NUMBER: _ClassVar[int]
    BOOT_ID_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    name: str
    machine_id: str
    boot_id: str
    mode: str
    ready: bool
    version: str
    def __init__(self, name: _Optional[str] = ..., machine_id: _Optional[str] = ..., boot_id: _Optional[str] = ..., mode: _Optional[str] = ..., ready: _Optional[bool] = ..., version: _Optional[str] = ...) -> None: ...

class Topology(_message.Message):
    __slots__ = ("cpus", "nodes")
    CPUS_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    cpus: _containers.RepeatedCompositeFieldContainer[Cpu]
    nodes: _containers.RepeatedCompositeFieldContainer[NumaNode]
    def __init__(self, cpus: _Optional[_Iterable[_Union[Cpu, _Mapping]]] = ..., nodes: _Optional[_Iterable[_Union[NumaNode, _Mapping]]] = ...) -> None: ...

class Cpu(_message.Message):
    __slots__ = ("cpu", "online", "core", "socket", "node", "l3")
    CPU_FIELD_NUMBER: _ClassVar[int]
    ONLINE_FIELD_NUMBER: _ClassVar[int]
    CORE_FIELD_NUMBER: _ClassVar[int]
    SOCKET_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    L3_FIELD_NUMBER: _ClassVar[int]
    cpu: int
    online: bool
    core: int
    socket: int
    node: int
    l3: int
    def __init__(self, cpu: _Optional[int] = ..., online: _Optional[bool] = ..., core: _Optional[int] = ..., socket: _Optional[int] = ..., node: _Optional[int] = ..., l3: _Optional[int] = ...) -> None: ...

class NumaNode(_message.Message):
    __slots__ = ("node", "cpus", "memory_bytes", "distances")
    NODE_FIELD_NUMBER: _ClassVar[int]
    CPUS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    DISTANCES_FIELD_NUMBER: _ClassVar[int]
    node: int
    cpus: str
    memory_bytes: int
    distances: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, node: _Optional[int] = ..., cpus: _Optional[str] = ..., memory_bytes: _Optional[int] = ..., distances: _Optional[_Iterable[int]] = ...) -> None: ...

class Allocation(_message.Message):
    __slots__ = ("claims", "pools")
    CLAIMS_FIELD_NUMBER: _ClassVar[int]
    POOLS_FIELD_NUMBER: _ClassVar[int]
    claims: _containers.RepeatedCompositeFieldContainer[Claim]
    pools: _containers.RepeatedCompositeFieldContainer[Pool]
    def __init__(self, claims: _Optional[_Iterable[_Union[Claim, _Mapping]]] = ..., pools: _Optional[_Iterable[_Union[Pool, _Mapping]]] = ...) -> None: ...

class Claim(_message.Message):
    __slots__ = ("owner", "cpus", "holder", "policy", "reason")
    OWNER_FIELD_NUMBER: _ClassVar[int]
    CPUS_FIELD_NUMBER: _ClassVar[int]
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    owner: str
    cpus: str
    holder: str
    policy: str
    reason: str
    def __init__(self, owner: _Optional[str] = ..., cpus: _Optional[str] = ..., holder: _Optional[str] = ..., policy: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class Pool(_message.Message):
    __slots__ = ("kind", "cpus", "socket", "node")
    KIND_FIELD_NUMBER: _ClassVar[int]
    CPUS_FIELD_NUMBER: _ClassVar[int]
    SOCKET_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    kind: str
    cpus: str
    socket: int
    node: int
    def __init__(self, kind: _Optional[str] = ..., cpus: _Optional[str] = ..., socket: _Optional[int] = ..., node: _Optional[int] = ...) -> None: ...

class Workloads(_message.Message):
    __slots__ = ("workloads",)
    WORKLOADS_FIELD_NUMBER: _ClassVar[int]
    workloads: _containers.RepeatedCompositeFieldContainer[Workload]
    def __init__(self, workloads: _Optional[_Iterable[_Union[Workload, _Mapping]]] = ...) -> None: ...

class Workload(_message.Message):
    __slots__ = ("uid", "namespace", "name", "qos", "cgroup", "cpus", "usage_milli")
    UID_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    QOS_FIELD_NUMBER: _ClassVar[int]
    CGROUP_FIELD_NUMBER: _ClassVar[int]
    CPUS_FIELD_NUMBER: _ClassVar[int]
    USAGE_MILLI_FIELD_NUMBER: _ClassVar[int]
    uid: str
    namespace: str
    name: str
    qos: str
    cgroup: str
    cpus: str
    usage_milli: int
    def __init__(self, uid: _Optional[str] = ..., namespace: _Optional[str] = ..., name: _Optional[str] = ..., qos: _Optional[str] = ..., cgroup: _Optional[str] = ..., cpus: _Optional[str] = ..., usage_milli: _Optional[int] = ...) -> None: ...

class Conditions(_message.Message):
    __slots__ = ("conditions", "unsupported")
    CONDITIONS_FIELD_NUMBER: _ClassVar[int]
    UNSUPPORTED_FIELD_NUMBER: _ClassVar[int]
    conditions: _containers.RepeatedCompositeFieldContainer[Condition]
    unsupported: _containers.RepeatedCompositeFieldContainer[Unsupported]
    def __init__(self, conditions: _Optional[_Iterable[_Union[Condition, _Mapping]]] = ..., unsupported: _Optional[_Iterable[_Union[Unsupported, _Mapping]]] = ...) -> None: ...

class Condition(_message.Message):
    __slots__ = ("type", "status", "reason", "message", "subject")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    type: str
    status: bool
    reason: str
    message: str
    subject: str
    def __init__(self, type: _Optional[str] = ..., status: _Optional[bool] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ..., subject: _Optional[str] = ...) -> None: ...

class Unsupported(_message.Message):
    __slots__ = ("feature", "why")
    FEATURE_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    feature: str
    why: str
    def __init__(self, feature: _Optional[str] = ..., why: _Optional[str] = ...) -> None: ...

class Usage(_message.Message):
    __slots__ = ("node", "system", "classes", "windows")
    NODE_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_FIELD_NUMBER: _ClassVar[int]
    CLASSES_FIELD_NUMBER: _ClassVar[int]
    WINDOWS_FIELD_NUMBER: _ClassVar[int]
    node: Amount
    system: Amount
    classes: _containers.RepeatedCompositeFieldContainer[ClassUsage]
    windows: _containers.RepeatedCompositeFieldContainer[Window]
    def __init__(self, node: _Optional[_Union[Amount, _Mapping]] = ..., system: _Optional[_Union[Amount, _Mapping]] = ..., classes: _Optional[_Iterable[_Union[ClassUsage, _Mapping]]] = ..., windows: _Optional[_Iterable[_Union[Window, _Mapping]]] = ...) -> None: ...

class Amount(_message.Message):
    __slots__ = ("cpu_milli", "memory_bytes")
    CPU_MILLI_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    cpu_milli: int
    memory_bytes: int
    def __init__(self, cpu_milli: _Optional[int] = ..., memory_bytes: _Optional[int] = ...) -> None: ...

class ClassUsage(_message.Message):
    __slots__ = ("name", "used")
    NAME_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    name: str
    used: Amount
    def __init__(self, name: _Optional[str] = ..., used: _Optional[_Union[Amount, _Mapping]] = ...) -> None: ...

class Window(_message.Message):
    __slots__ = ("seconds", "quantile", "node")
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    QUANTILE_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    seconds: int
    quantile: str
    node: Amount
    def __init__(self, seconds: _Optional[int] = ..., quantile: _Optional[str] = ..., node: _Optional[_Union[Amount, _Mapping]] = ...) -> None: ...

class Free(_message.Message):
    __slots__ = ("domains",)
    DOMAINS_FIELD_NUMBER: _ClassVar[int]
    domains: _containers.RepeatedCompositeFieldContainer[FreeCpus]
    def __init__(self, domains: _Optional[_Iterable[_Union[FreeCpus, _Mapping]]] = ...) -> None: ...

class FreeCpus(_message.Message):
    __slots__ = ("node", "l3", "cpus")
    NODE_FIELD_NUMBER: _ClassVar[int]
    L3_FIELD_NUMBER: _ClassVar[int]
    CPUS_FIELD_NUMBER: _ClassVar[int]
    node: int
    l3: int
    cpus: str
    def __init__(self, node: _Optional[int] = ..., l3: _Optional[int] = ..., cpus: _Optional[str] = ...) -> None: ...

class Pressure(_message.Message):
    __slots__ = ("signals", "stalls")
    SIGNALS_FIELD_NUMBER: _ClassVar[int]
    STALLS_FIELD_NUMBER: _ClassVar[int]
    signals: _containers.RepeatedCompositeFieldContainer[Signal]
    stalls: _containers.RepeatedCompositeFieldContainer[Stall]
    def __init__(self, signals: _Optional[_Iterable[_Union[Signal, _Mapping]]] = ..., stalls: _Optional[_Iterable[_Union[Stall, _Mapping]]] = ...) -> None: ...

class Signal(_message.Message):
    __slots__ = ("name", "observed", "threshold", "met")
    NAME_FIELD_NUMBER: _ClassVar[int]
    OBSERVED_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    MET_FIELD_NUMBER: _ClassVar[int]
    name: str
    observed: str
    threshold: str
    met: bool
    def __init__(self, name: _Optional[str] = ..., observed: _Optional[str] = ..., threshold: _Optional[str] = ..., met: _Optional[bool] = ...) -> None: ...

class Stall(_message.Message):
    __slots__ = ("resource", "some_milli", "full_milli")
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    SOME_MILLI_FIELD_NUMBER: _ClassVar[int]
    FULL_MILLI_FIELD_NUMBER: _ClassVar[int]
    resource: str
    some_milli: int
    full_milli: int
    def __init__(self, resource: _Optional[str] = ..., some_milli: _Optional[int] = ..., full_milli: _Optional[int] = ...) -> None: ...

class BestEffort(_message.Message):
    __slots__ = ("offers",)
    OFFERS_FIELD_NUMBER: _ClassVar[int]
    offers: _containers.RepeatedCompositeFieldContainer[Offer]
    def __init__(self, offers: _Optional[_Iterable[_Union[Offer, _Mapping]]] = ...) -> None: ...

class Offer(_message.Message):
    __slots__ = ("resource", "amount")
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    AMOUNT_FIELD_NUMBER: _ClassVar[int]
    resource: str
    amount: int
    def __init__(self, resource: _Optional[str] = ..., amount: _Optional[int] = ...) -> None: ...
