"""Kinds of API objects: their names, and the kinds that koordlet uses.

Covers: group, version, plural, scope; the kinds that are used here.
Does not cover: what is inside an object (it stays a mapping), which kinds a server serves.
"""

from __future__ import annotations

from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of objects in one version."""

    group: str
    version: str
    plural: str
    #: As objects name themselves in ``kind``.
    name: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """As objects name it in ``apiVersion``: ``v1``, ``policy/v1``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


CONFIG_MAPS = Kind("", "v1", "configmaps", "ConfigMap")
EVENTS = Kind("events.k8s.io", "v1", "events", "Event")
NAMESPACES = Kind("", "v1", "namespaces", "Namespace", namespaced=False)
NODES = Kind("", "v1", "nodes", "Node", namespaced=False)
PERSISTENT_VOLUMES = Kind("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
PERSISTENT_VOLUME_CLAIMS = Kind("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
PODS = Kind("", "v1", "pods", "Pod")
RESOURCE_QUOTAS = Kind("", "v1", "resourcequotas", "ResourceQuota")
REPLICATION_CONTROLLERS = Kind("", "v1", "replicationcontrollers", "ReplicationController")
SECRETS = Kind("", "v1", "secrets", "Secret")
SERVICES = Kind("", "v1", "services", "Service")

CSI_DRIVERS = Kind("storage.k8s.io", "v1", "csidrivers", "CSIDriver", namespaced=False)
CSI_NODES = Kind("storage.k8s.io", "v1", "csinodes", "CSINode", namespaced=False)
CUSTOM_RESOURCES = Kind(
    *("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition"),
    namespaced=False,
)
LEASES = Kind("coordination.k8s.io", "v1", "leases", "Lease")
POD_DISRUPTION_BUDGETS = Kind("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
PRIORITY_CLASSES = Kind(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False
)
#: Kubernetes' own PodGroup, alpha and off by default in 1.36: an API server may not serve it.
NATIVE_POD_GROUPS = Kind("scheduling.k8s.io", "v1alpha2", "podgroups", "PodGroup")
DEVICE_CLASSES = Kind("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", namespaced=False)
REPLICA_SETS = Kind("apps", "v1", "replicasets", "ReplicaSet")
RESOURCE_CLAIMS = Kind("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim")
RESOURCE_CLAIM_TEMPLATES = Kind(
    "resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate"
)
RESOURCE_SLICES = Kind("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", namespaced=False)
RUNTIME_CLASSES = Kind("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", namespaced=False)
STATEFUL_SETS = Kind("apps", "v1", "statefulsets", "StatefulSet")
SUBJECT_ACCESS_REVIEWS = Kind(
    *("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview"),
    namespaced=False,
)
TOKEN_REVIEWS = Kind(
    *("authentication.k8s.io", "v1", "tokenreviews", "TokenReview"), namespaced=False
)
STORAGE_CLASSES = Kind("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False)
VOLUME_ATTACHMENTS = Kind(
    "storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", namespaced=False
)

STORAGE_CAPACITIES = Kind("storage.k8s.io", "v1", "csistoragecapacities", "CSIStorageCapacity")

# The peers' kinds. They are custom resources: an API server may not serve them.
CLUSTER_NETWORK_TOPOLOGIES = Kind(
    *("scheduling.koordinator.sh", "v1alpha1", "clusternetworktopologies"),
    "ClusterNetworkTopology",
    namespaced=False,
)
CLUSTER_COLOCATION_PROFILES = Kind(
    *("config.koordinator.sh", "v1alpha1", "clustercolocationprofiles"),
    "ClusterColocationProfile",
    namespaced=False,
)
DEVICES = Kind("scheduling.koordinator.sh", "v1alpha1", "devices", "Device", namespaced=False)
ELASTIC_QUOTAS = Kind("scheduling.sigs.k8s.io", "v1alpha1", "elasticquotas", "ElasticQuota")
#: Of scheduler-plugins, whose namespaces are quotas; its older releases have the group above.
NAMESPACE_QUOTAS = Kind("scheduling.x-k8s.io", "v1alpha1", "elasticquotas", "ElasticQuota")
ELASTIC_QUOTA_PROFILES = Kind(
    "quota.koordinator.sh", "v1alpha1", "elasticquotaprofiles", "ElasticQuotaProfile"
)
NODE_METRICS = Kind("slo.koordinator.sh", "v1alpha1", "nodemetrics", "NodeMetric", namespaced=False)
NODE_RESOURCE_TOPOLOGIES = Kind(
    *("topology.node.k8s.io", "v1alpha1", "noderesourcetopologies", "NodeResourceTopology"),
    namespaced=False,
)
NODE_SLOS = Kind("slo.koordinator.sh", "v1alpha1", "nodeslos", "NodeSLO", namespaced=False)
POD_MIGRATION_JOBS = Kind(
    *("scheduling.koordinator.sh", "v1alpha1", "podmigrationjobs", "PodMigrationJob"),
    namespaced=False,
)
POD_GROUPS = Kind("scheduling.sigs.k8s.io", "v1alpha1", "podgroups", "PodGroup")
RESERVATIONS = Kind(
    *("scheduling.koordinator.sh", "v1alpha1", "reservations", "Reservation"), namespaced=False
)

# Ours: what no peer has.
DISRUPTION_RATES = Kind("scheduling.koordlet.io", "v1alpha1", "disruptionrates", "DisruptionRate")
MOVE_PLANS = Kind(
    *("scheduling.koordlet.io", "v1alpha1", "moveplans", "MovePlan"), namespaced=False
)
#: So many moves has a plan at most.
MOST_MOVES = 32
NODE_AVOIDANCES = Kind(
    *("scheduling.koordlet.io", "v1alpha1", "nodeavoidances", "NodeAvoidance"), namespaced=False
)
