"""What Koordinator's agent offers, and what koordlet has in its place: one table.

Covers: feature gates, flags, keys of pods and nodes, keys of its ConfigMap, kinds,
metrics, HTTP paths. ``docs/koordinator.md`` is made of it, ``koordlet migrate-check`` asks it.
Does not cover: fields of a NodeSLO, which ``model.strategies`` has, each under Koordinator's name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

State = Literal["same", "differs", "absent"]


class PeerFeature(NamedTuple):
    """Names of one sort that share an answer."""

    sort: str
    names: tuple[str, ...]
    state: State
    #: Key of the configuration, policy, metric or command that has it; empty: none.
    ours: str = ""
    note: str = ""


_SCHEDULER = "koordlet's scheduler reads it; Koordinator's may continue to"
_OWN = "koordlet has a fixed or measured value, and nothing to set"
_HISTORY = "koordlet keeps its history in memory, in a ring, and writes no database"

FEATURES = (
    # Feature gates.
    PeerFeature("gate", ("BECPUSuppress",), "same", "policies.cpu_suppress"),
    PeerFeature(
        "gate", ("CPUBurst",), "same", "policies.cpu_burst", "on cgroup v2 within the quota"
    ),
    PeerFeature(
        "gate", ("RdtResctrl",), "differs", "policies.resctrl", "shadow until it is enforced"
    ),
    PeerFeature("gate", ("NodeTopologyReport",), "same", "report.objects.topology"),
    PeerFeature(
        "gate", ("AuditEvents",), "differs", "state.auditBytes", "always on: koordlet audit"
    ),
    PeerFeature("gate", ("AuditEventsHTTPHandler",), "differs", "", "GET /api/v1/audit, always on"),
    PeerFeature("gate", ("BECPUManager",), "absent", "", "best-effort pods share one pool"),
    PeerFeature(
        "gate", ("BECPUEvict", "CPUEvict"), "differs", "policies.cpu_evict", "shadow at first"
    ),
    PeerFeature(
        "gate", ("CPUAllocatableEvict",), "differs", "policies.cpu_allocatable_evict", "shadow"
    ),
    PeerFeature(
        "gate", ("BEMemoryEvict", "MemoryEvict"), "differs", "policies.memory_evict", "shadow"
    ),
    PeerFeature(
        "gate",
        ("MemoryAllocatableEvict",),
        "differs",
        "policies.memory_allocatable_evict",
        "shadow",
    ),
    PeerFeature("gate", ("SystemConfig",), "differs", "policies.system_qos", "off until it is set"),
    PeerFeature("gate", ("CgroupReconcile",), "differs", "policies.memory_qos", "on by default"),
    PeerFeature("gate", ("BlkIOReconcile",), "differs", "policies.blkio_qos", "also on cgroup v2"),
    PeerFeature("gate", ("ResctrlCollector",), "same", "policies.resctrl"),
    PeerFeature("gate", ("CPICollector",), "same", "counters.cpi"),
    PeerFeature("gate", ("Libpfm4",), "absent", "", "perf_event_open alone"),
    PeerFeature("gate", ("PSICollector",), "differs", "", "always on"),
    PeerFeature(
        "gate", ("ColdPageCollector",), "differs", "", "DAMON in place of kidled, where it is"
    ),
    PeerFeature("gate", ("HugePageReport",), "differs", "", "always on"),
    PeerFeature("gate", ("Accelerators", "RDMADevices"), "differs", "report.objects.device", "off"),
    PeerFeature(
        "gate",
        ("PodResourcesProxy",),
        "absent",
        "",
        "exporters read device-allocated of the pods instead",
    ),
    PeerFeature("gate", ("HamiCoreVGPUMonitor", "GPUEnvInject"), "absent", "", "no virtual GPUs"),
    PeerFeature(
        "gate", ("RDMADeviceInject",), "absent", "", "device plugins give the device nodes"
    ),
    PeerFeature("gate", ("PerCPUMetric",), "differs", "", "the console's map shows it"),
    PeerFeature("gate", ("NodeMetricPromMetrics",), "differs", "koordlet_node_metric_node_usage"),
    PeerFeature("gate", ("GroupIdentity",), "same", "policies.cpu_qos"),
    PeerFeature("gate", ("CPUSetAllocator",), "same", "policies.shared_pools"),
    PeerFeature("gate", ("BatchResource",), "same", "policies.batch_limits"),
    PeerFeature("gate", ("CPUNormalization",), "differs", "policies.cpu_normalization", "shadow"),
    PeerFeature(
        "gate", ("CoreSched",), "differs", "policies.core_scheduling", "off until it is set"
    ),
    PeerFeature(
        "gate", ("TerwayQoS",), "absent", "", "network bandwidth by tc: policies.network_qos"
    ),
    PeerFeature(
        "gate", ("TCNetworkQoS",), "differs", "policies.network_qos", "off until it is set"
    ),
    PeerFeature("gate", ("Resctrl",), "differs", "policies.resctrl", "groups of single pods, too"),
    PeerFeature("gate", ("OOMScoreAdj",), "differs", "policies.oom_score", "off until it is set"),
    # Flags and variables.
    PeerFeature("flag", ("addr",), "differs", "report.http.address", "127.0.0.1 by default"),
    PeerFeature("flag", ("enable-pprof", "pprof-addr"), "absent", "", "/metrics has process_*"),
    PeerFeature("flag", ("kube-api-qps", "kube-api-burst"), "absent", "", _OWN),
    PeerFeature(
        "flag", ("configmap-name", "configmap-namespace"), "absent", "", "one file, mounted"
    ),
    PeerFeature("flag", ("qos-extension-plugins",), "absent", "", "policies are part of koordlet"),
    PeerFeature(
        "flag",
        (
            *("cgroup-root-dir", "sys-root-dir", "sys-fs-root-dir", "proc-root-dir"),
            *("var-run-root-dir", "run-root-dir", "var-lib-kubelet-root-dir"),
        ),
        "differs",
        "cgroups.root",
        "paths of the host are the same in the pod",
    ),
    PeerFeature(
        "flag", ("default-runtime-type",), "absent", "", "found on the socket of the runtime"
    ),
    PeerFeature(
        "flag",
        ("kubelet-sync-interval", "kubelet-sync-timeout", "node-topology-sync-interval"),
        "absent",
        "",
        "changes are watched",
    ),
    PeerFeature("flag", ("kubelet-preferred-address-type",), "differs", "kubelet.address"),
    PeerFeature(
        "flag",
        ("kubelet-insecure-tls", "kubelet-read-only-port", "disable-query-kubelet-config"),
        "absent",
        "",
        "the kubelet is asked over TLS with a token, or by its checkpoints",
    ),
    PeerFeature("flag", ("enable-node-metric-report",), "differs", "report.objects.metric"),
    PeerFeature(
        "flag",
        (
            *("collect-res-used-interval", "collect-sys-metric-outdated-interval"),
            *("collect-node-cpu-info-interval", "collect-node-storage-info-interval"),
            *("cpi-collector-interval", "psi-collector-interval", "coldpage-collector-interval"),
            *("resctrl-collector-interval", "collect-cpi-timewindow", "reconcile-interval-seconds"),
            *("cpu-suppress-interval-seconds", "cpu-evict-interval-seconds"),
            *("memory-evict-interval-seconds", "resource-force-update-seconds"),
        ),
        "absent",
        "",
        "one pass a second; values are compared in each",
    ),
    PeerFeature(
        "flag",
        (
            *("tsdb-path", "tsdb-retention-duration", "tsdb-max-bytes"),
            *("metric-gc-interval-seconds", "metric-expire-seconds"),
        ),
        "absent",
        "",
        _HISTORY,
    ),
    PeerFeature("flag", ("cpu-evict-cool-time-seconds",), "differs", "policies.cpu_evict"),
    PeerFeature("flag", ("memory-evict-cool-time-seconds",), "differs", "policies.memory_evict"),
    PeerFeature("flag", ("only-evict-by-api",), "differs", "eviction.by", "by the API by default"),
    PeerFeature(
        "flag",
        (
            *("runtime-hooks-network", "runtime-hooks-addr", "runtime-hooks-host-endpoint"),
            *("runtime-hooks-disable-stages",),
        ),
        "absent",
        "",
        "no proxy mode: NRI, and the reconciling pass",
    ),
    PeerFeature(
        "flag", ("enable-nri-runtime-hook",), "differs", "nri", "on where there is a socket"
    ),
    PeerFeature(
        "flag", ("disable-unset-cpu-quota",), "differs", "policies.bound_quota", "its mode"
    ),
    PeerFeature(
        "flag", ("audit-log-dir", "audit-max-disk-space-mb"), "differs", "state.auditBytes"
    ),
    PeerFeature("flag", ("audit-verbose",), "absent", "", "every action is written"),
    PeerFeature(
        "flag",
        ("prediction-checkpoint-filepath", "prediction-cold-start-duration"),
        "differs",
        "",
        "the last hours are kept as a checkpoint of the state directory",
    ),
    PeerFeature("variable", ("NODE_NAME",), "differs", "node.name", "KOORDLET_NODE__NAME"),
    PeerFeature("variable", ("agent_mode",), "absent", "", "the same paths in a pod and on a host"),
    # Keys of pods.
    PeerFeature(
        "pod key",
        (
            *(
                "koordinator.sh/qosClass",
                "koordinator.sh/priority-class",
                "koordinator.sh/priority",
            ),
            *("koordinator.sh/networkQOS", "koordinator.sh/eviction-enabled"),
            *("koordinator.sh/eviction-policy", "koordinator.sh/eviction-priority"),
            *("koordinator.sh/cpuBurst", "koordinator.sh/cpuQOS", "koordinator.sh/memoryQOS"),
            *("koordinator.sh/blkioQOS", "koordinator.sh/oom-score-adj"),
            *("koordinator.sh/oom-score-adj-spec", "koordinator.sh/core-sched-group-id"),
            *("koordinator.sh/core-sched-policy", "node.koordinator.sh/extended-resource-spec"),
            *("node.koordinator.sh/resctrl", "scheduling.koordinator.sh/resource-spec"),
        ),
        "same",
    ),
    PeerFeature(
        "pod key",
        ("scheduling.koordinator.sh/resource-status",),
        "differs",
        "policies.exclusive_cpus.trustAnnotations",
        "believed up to the CPUs that the pod requests",
    ),
    PeerFeature(
        "pod key",
        (
            *("scheduling.koordinator.sh/numa-topology-spec",),
            *("scheduling.koordinator.sh/device-allocated",),
            *("scheduling.koordinator.sh/device-allocate-hint",),
            *("scheduling.koordinator.sh/device-joint-allocate",),
            *("scheduling.koordinator.sh/gpu-partition-spec",),
            *("scheduling.koordinator.sh/eviction-cost",),
            *("scheduling.koordinator.sh/reservation-allocated",),
            *("scheduling.koordinator.sh/reservation-affinity",),
            *("scheduling.koordinator.sh/operating-mode",),
            *("scheduling.koordinator.sh/scheduling-hint",),
            *("internal.scheduling.koordinator.sh/scheduling-hint",),
        ),
        "same",
        "",
        _SCHEDULER,
    ),
    PeerFeature(
        *("pod key", ("koordinator.sh/gpu-isolation-provider",), "differs", ""),
        "the scheduler heeds it; no virtual GPUs",
    ),
    PeerFeature(
        "pod key",
        ("pod.koordinator.sh/replace-resources",),
        "absent",
        "",
        "a webhook of Koordinator's manager, which may stay",
    ),
    PeerFeature(
        "pod key",
        ("scheduling.koordinator.sh/soft-eviction",),
        "same",
        "",
        "of koordlet's descheduler, with evictionPolicy SoftEviction",
    ),
    # Keys of nodes and of NodeResourceTopology.
    PeerFeature(
        "node key",
        (
            *("node.koordinator.sh/reservation", "node.koordinator.sh/system-qos-resource"),
            *("node.koordinator.sh/cpu-topology", "node.koordinator.sh/cpu-shared-pools"),
            *("node.koordinator.sh/be-cpu-shared-pools", "node.koordinator.sh/pod-cpu-allocs"),
            *("node.koordinator.sh/cpu-basic-info", "kubelet.koordinator.sh/cpu-manager-policy"),
            *("node.koordinator.sh/cpu-normalization-ratio",),
            *("node.koordinator.sh/resource-amplification-ratio",),
            *("node.koordinator.sh/raw-allocatable", "node.koordinator.sh/colocation-strategy"),
            *("node.koordinator.sh/network-bandwidth",),
            *("node.koordinator.sh/originExtendedAllocatable",),
            *("node.koordinator.sh/thirdPartyAllocations", "node.koordinator.sh/cpu-bind-policy"),
            *("node.koordinator.sh/numa-allocate-strategy",),
            *("node.koordinator.sh/numa-topology-policy",),
            *("node.koordinator.sh/enable-numa-reservation",),
        ),
        "same",
    ),
    PeerFeature(
        "node key",
        ("node.koordinator.sh/cpu-normalization-enabled",),
        "differs",
        "node.cpuNormalization",
        '"false" switches off, "true" changes nothing',
    ),
    # Keys of slo-controller-config.
    PeerFeature(
        "ConfigMap key",
        (
            *("colocation-config", "resource-threshold-config", "resource-qos-config"),
            *("cpu-burst-config", "system-config", "host-application-config"),
        ),
        "same",
    ),
    PeerFeature(
        "ConfigMap key",
        ("cpu-normalization-config",),
        "differs",
        "node.cpuNormalization",
        "of the agent's file; a ratio by Koordinator's manager counts before it",
    ),
    PeerFeature(
        "ConfigMap key",
        ("resource-amplification-config",),
        "differs",
        "node.amplification",
        "of the agent's file, off while empty; no webhook multiplies allocatable",
    ),
    # Kinds.
    PeerFeature("kind", ("NodeSLO", "NodeMetric", "NodeResourceTopology", "Reservation"), "same"),
    PeerFeature(
        "kind", ("Device",), "differs", "report.objects.device", "GPUs without their memory"
    ),
    PeerFeature(
        "kind",
        ("PodGroup", "ElasticQuota", "ElasticQuotaProfile", "ClusterNetworkTopology"),
        "same",
        "",
        _SCHEDULER,
    ),
    PeerFeature(
        "kind", ("ClusterColocationProfile",), "differs", "", "koordlet webhook: docs/profiles.md"
    ),
    PeerFeature("kind", ("PodMigrationJob",), "same", "", "of koordlet's descheduler"),
    PeerFeature(
        "kind",
        ("Recommendation", "ScheduleExplanation"),
        "absent",
        "",
        "of Koordinator's manager, which may stay",
    ),
    # Metrics; without the prefix koordlet_.
    PeerFeature(
        "metric",
        (
            *("start_time", "collect_node_cpu_info_status", "collect_node_numa_info_status"),
            *("collect_node_local_storage_info_status", "pod_eviction", "node_used_cpu_cores"),
            *("node_used_memory_bytes", "be_suppress_cpu_cores", "be_suppress_ls_used_cpu_cores"),
            *("be_suppress_be_used_cpu_cores", "container_scaled_cfs_burst_us"),
            *("container_scaled_cfs_quota_us", "cpuset_share_pool_cpu_cores"),
            *("cpuset_be_share_pool_cpu_cores", "cpuset_share_pool_info"),
            *("cpuset_be_share_pool_info", "node_predicted_resource_reclaimable"),
            *("node_predicted_resource_peak", "container_oom_score_adj"),
            *("node_metric_node_usage", "node_metric_system_usage", "node_metric_numa_node_usage"),
            *("host_application_resource_usage", "kubelet_request_duration_seconds"),
            *("node_resource_allocatable", "container_resource_requests"),
            *("container_resource_limits", "container_cpi", "container_psi", "pod_psi"),
            *("resctrl_llc_occupancy", "resctrl_memory_bandwidth"),
        ),
        "same",
    ),
    PeerFeature("metric", ("pod_eviction_detail",), "absent", "", "koordlet audit names each pod"),
    PeerFeature(
        "metric",
        ("container_core_sched_cookie", "core_sched_cookie_manage_status"),
        "absent",
        "",
        "koordlet explain pod NS/NAME shows the group",
    ),
    PeerFeature("metric", ("node_metric_numa_system_usage",), "absent"),
    PeerFeature(
        "metric",
        (
            *("resource_update_duration_milliseconds",),
            *("runtime_hook_invoked_duration_milliseconds",),
            *("runtime_hook_reconciler_invoked_duration_milliseconds",),
        ),
        "absent",
        "",
        "koordlet has no hooks: its passes are measured as koordlet_tick_*",
    ),
    PeerFeature(
        "metric",
        ("node_priority_resource_reclaimable", "node_resource_priority_reclaimable_status"),
        "absent",
        "",
        "what prod work could give back is in NodeMetric",
    ),
    # HTTP.
    PeerFeature("HTTP path", ("/metrics",), "same", "", "one registry, no internal one beside it"),
    PeerFeature("HTTP path", ("/internal-metrics", "/external-metrics"), "absent", "", "/metrics"),
    PeerFeature("HTTP path", ("/events",), "differs", "", "/api/v1/audit"),
    PeerFeature("HTTP path", ("/apis/v1",), "absent", "", "ask the API server, or /api/v1/node"),
)


def rows(sort: str) -> Iterator[tuple[str, PeerFeature]]:
    """Each name of a sort with its answer."""
    for feature in FEATURES:
        if feature.sort == sort:
            yield from ((name, feature) for name in feature.names)


def find(sort: str, name: str) -> PeerFeature | None:
    """The answer to one name; ``None``: Koordinator's agent as it was read has no such name."""
    return dict(rows(sort)).get(name)
