"""QoS classes and priority bands, as the co-location peers define them.

Covers: the classes, the bands, the default of one from the other.
Does not cover: reading labels and annotations off objects (``workloads``).
"""

from __future__ import annotations

import enum


class Qos(enum.Enum):
    """QoS class of a workload, strongest first."""

    #: Exclusive CPUs, shared with nobody.
    LSE = "LSE"
    #: Reserved CPUs; best-effort work may use them while they idle.
    LSR = "LSR"
    #: Latency-sensitive, on the shared pool.
    LS = "LS"
    #: Best-effort: whatever is left.
    BE = "BE"
    #: The machine's own daemons.
    SYSTEM = "SYSTEM"

    @property
    def exclusive(self) -> bool:
        """Whether workloads of the class may hold exclusive CPUs."""
        return self in (Qos.LSE, Qos.LSR)


class KubeQos(enum.Enum):
    """The class that Kubernetes derives from requests and limits."""

    GUARANTEED = "Guaranteed"
    BURSTABLE = "Burstable"
    BEST_EFFORT = "BestEffort"


#: Where the QoS label is missing, the Kubernetes class decides.
DEFAULT_OF_KUBE = {
    KubeQos.GUARANTEED: Qos.LSR,
    KubeQos.BURSTABLE: Qos.LS,
    KubeQos.BEST_EFFORT: Qos.BE,
}
#: The class in a NodeSLO, and the resctrl group, of each QoS class; SYSTEM has none.
SLO_CLASS = {Qos.LSE: "LSR", Qos.LSR: "LSR", Qos.LS: "LS", Qos.BE: "BE"}
#: … and of pods without a QoS class.
SLO_CLASS_OF_KUBE = {kube: SLO_CLASS[default] for kube, default in DEFAULT_OF_KUBE.items()}


class Band(enum.Enum):
    """Priority bands: (lowest, highest, default value)."""

    PROD = (9000, 9999, 9500)
    MID = (7000, 7999, 7500)
    BATCH = (5000, 5999, 5500)
    FREE = (3000, 3999, 3500)

    @property
    def label(self) -> str:
        """As the label and the PriorityClass spell it: ``koord-prod``."""
        return f"koord-{self.name.lower()}"

    @property
    def default(self) -> int:
        """The priority of a pod of this band that names none."""
        return self.value[2]

    @classmethod
    def of(cls, priority: int | None) -> Band | None:
        """The band that a priority lies in; ``None`` outside all of them."""
        if priority is None:
            return None
        return next((band for band in cls if band.value[0] <= priority <= band.value[1]), None)

    @classmethod
    def labelled(cls, text: str) -> Band | None:
        """The band of a label; ``None`` for what names no band."""
        return _BANDS.get(text)

    @classmethod
    def default_of(cls, qos_class: Qos) -> Band:
        """The default band of a class: batch for best-effort work, prod for the rest."""
        return cls.BATCH if qos_class is Qos.BE else cls.PROD


_BANDS = {band.label: band for band in Band}
