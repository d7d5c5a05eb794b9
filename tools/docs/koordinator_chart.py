"""Values of Koordinator's Helm chart, and what koordlet's chart has in their place: one table.

Covers: all of chart 1.8; a name stands for every value below it. ``docs/koordinator.md`` has it.
Does not cover: what a program is asked about (``koordlet.cli.koordinator_features``).
"""

from __future__ import annotations

from koordlet.cli import koordinator_features

_SORT = "chart value"
_STAYS = "of a program of Koordinator that may stay"


def _row(
    state: koordinator_features.State, ours: str, note: str, *names: str
) -> koordinator_features.PeerFeature:
    return koordinator_features.PeerFeature(_SORT, names, state, ours, note)


#: ``ours`` is a value of deploy/chart.
FEATURES = (
    _row("differs", "agent.config", "policies.*.mode", "koordlet.features"),
    _row("differs", "image", "one image of all programs", "koordlet.image", "imageRepositoryHost"),
    _row("same", "imagePullSecrets", "", "imagePullSecrets"),
    _row("differs", "agent.resources", "", "koordlet.resources"),
    _row("differs", "agent.config", "log.level, by name", "koordlet.log.level"),
    _row("absent", "", "fixed paths; the history is in memory", "koordlet.hostDirs"),
    _row("absent", "", "the node's default runtime class", "koordlet.runtimeClassName"),
    _row("differs", "agent.nodeSelector", "labels alone", "koordlet.nodeAffinity"),
    _row("differs", "components.sideBySide", "9316 or 9416", "koordlet.metrics.port"),
    _row("differs", "components.scraped", "with TLS", "koordlet.enableServiceMonitor"),
    _row("differs", "crds.install", "all; those of others stay as they are", "crds"),
    _row("differs", "", "helm's --namespace", "installation"),
    _row("differs", "scheduler", "off by default", "scheduler"),
    _row("differs", "descheduler", "off by default, and dry at first", "descheduler"),
    _row(
        *("absent", "", _STAYS),
        *("manager", "featureGates", "webhookConfiguration", "serviceAccount", "deviceDaemon"),
    ),
)
