"""Labels and annotations of the peers about CPUs, classes, load, as they spell them.

Covers: names. Does not cover: what they mean; those of reservations
(``scheduler.reservation.keys``) and of quotas (``kubeapi.elastic_quotas``).
"""

from __future__ import annotations

# On pods.
DEVICE_ALLOCATED = "scheduling.koordinator.sh/device-allocated"
DEVICE_HINT = "scheduling.koordinator.sh/device-allocate-hint"
DEVICE_JOINT = "scheduling.koordinator.sh/device-joint-allocate"
GPU_PARTITION = "scheduling.koordinator.sh/gpu-partition-spec"
LOAD_AFTER_INITIALIZED = "scheduling.koordinator.sh/load-estimated-seconds-after-initialized"
LOAD_AFTER_SCHEDULED = "scheduling.koordinator.sh/load-estimated-seconds-after-pod-scheduled"
LOAD_FACTORS = "scheduling.koordinator.sh/load-estimated-scaling-factors"

#: The newer spelling first.
HINTS = (
    "internal.scheduling.koordinator.sh/scheduling-hint",
    "scheduling.koordinator.sh/scheduling-hint",
)
#: Of scheduler-plugins since its group was renamed; gangs have all other keys
#: (``kubeapi.pod_groups``).
RENAMED_GANG = "scheduling.x-k8s.io/pod-group"

# On Devices.
GPU_PARTITIONS = "scheduling.koordinator.sh/gpu-partitions"

# On pods and nodes.
GPU_ISOLATION = "koordinator.sh/gpu-isolation-provider"

# On nodes, or on their Devices.
GPU_MODEL = "node.koordinator.sh/gpu-model"
GPU_PARTITION_POLICY = "node.koordinator.sh/gpu-partition-policy"
GPU_VENDOR = "node.koordinator.sh/gpu-vendor"
WELL_PLANNED = "node.koordinator.sh/secondary-device-well-planned"

# On nodes.
BIND_POLICY = "node.koordinator.sh/cpu-bind-policy"
NUMA_POLICY = "node.koordinator.sh/numa-topology-policy"
NUMA_STRATEGY = "node.koordinator.sh/numa-allocate-strategy"
THRESHOLDS = "scheduling.koordinator.sh/usage-thresholds"
