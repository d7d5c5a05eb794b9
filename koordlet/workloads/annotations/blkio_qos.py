"""``blkioQOS``: a pod's own limits of block devices."""

from __future__ import annotations

from koordlet.kubeapi import shapes
from koordlet.model import strategies

KEY = "koordinator.sh/blkioQOS"

_COUNT = shapes.integer(0)
_PERCENT = shapes.integer(0, 100)
_LIMITS = shapes.record(
    strategies.IoLimits,
    {
        "read_iops": ("readIOPS", _COUNT),
        "write_iops": ("writeIOPS", _COUNT),
        "read_bps": ("readBPS", _COUNT),
        "write_bps": ("writeBPS", _COUNT),
        "io_weight_percent": ("ioWeightPercent", shapes.integer(1, 100)),
        "read_latency": ("readLatency", _COUNT),
        "write_latency": ("writeLatency", _COUNT),
        "read_latency_percent": ("readLatencyPercent", _PERCENT),
        "write_latency_percent": ("writeLatencyPercent", _PERCENT),
        "enable_user_model": ("enableUserModel", shapes.boolean),
        "model_read_bps": ("modelReadBPS", _COUNT),
        "model_write_bps": ("modelWriteBPS", _COUNT),
        "model_read_seq_iops": ("modelReadSeqIOPS", _COUNT),
        "model_write_seq_iops": ("modelWriteSeqIOPS", _COUNT),
        "model_read_rand_iops": ("modelReadRandIOPS", _COUNT),
        "model_write_rand_iops": ("modelWriteRandIOPS", _COUNT),
    },
)
_BLOCK = shapes.record(
    strategies.Block,
    {
        "name": ("name", shapes.text),
        "type": ("type", shapes.choice("device", "volumegroup", "podvolume")),
        "io_cfg": ("ioCfg", _LIMITS),
    },
)

FIELDS: shapes.Fields = {
    "enable": ("enable", shapes.boolean),
    "blocks": ("blocks", shapes.listing(_BLOCK)),
}

_BLKIO = shapes.record(strategies.BlkioQos, FIELDS)


def decode(text: str, problems: list[str]) -> strategies.BlkioQos:
    """The blocks."""
    return _BLKIO(shapes.parse(text), problems)
