"""The arguments of the evictors: protections, thresholds, gates, and each mistake by its name."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.model import errors
from koordlet.scheduler.descheduling import evictor_settings
from koordlet.scheduler.descheduling.evictor_settings import Protection
from koordlet.scheduler.descheduling.fields import Fields

DEFAULT, MIGRATION = evictor_settings.DEFAULT, evictor_settings.MIGRATION


def read(name: str, **args: Any) -> evictor_settings.EvictorSettings:
    """The settings of these arguments."""
    return evictor_settings.read(name, Fields(args, "f", "args"))


def test_the_lists_of_protections_take_the_place_of_the_older_switches() -> None:
    """Where both lists are empty, the switches decide."""
    usual = {"LOCAL_STORAGE", "SYSTEM_CRITICAL", "FAILED_BARE", "DAEMON_SET"}
    assert {each.name for each in read(DEFAULT).protections} == usual
    old = read(DEFAULT, evictLocalStoragePods=True, ignorePvcPods=True).protections
    assert {each.name for each in old} == usual - {"LOCAL_STORAGE"} | {"PVC"}
    lists = {"defaultDisabled": ["DaemonSetPods"], "extraEnabled": ["PodsWithoutPDB"]}
    new = read(DEFAULT, podProtections=lists, evictLocalStoragePods=False).protections
    assert {each.name for each in new} == usual - {"DAEMON_SET"} | {"WITHOUT_BUDGET"}


@pytest.mark.parametrize(
    ("name", "args", "where", "what"),
    [
        (DEFAULT, {"podProtections": {"extraEnabled": ["X"]}}, "extraEnabled", "'X' is none of"),
        (
            DEFAULT, {"podProtections": {"defaultDisabled": ["DaemonSetPods"] * 2}},
            "defaultDisabled", "listed twice",
        ),
        (
            DEFAULT, {"podProtections": {"extraEnabled": ["PodsWithPVC"]}, "ignorePvcPods": True},
            "args.ignorePvcPods", "does not count beside podProtections",
        ),
        (DEFAULT, {"priorityThreshold": {"value": 1, "name": "a"}}, "Threshold", "only one of"),
        (DEFAULT, {"noEvictionPolicy": "Perhaps"}, "noEvictionPolicy", "'Perhaps'"),
        (DEFAULT, {"minPodAge": "soon"}, "minPodAge", "not a duration"),
        (MIGRATION, {"skipEvictionGates": ["All"]}, "skipEvictionGates", "'All' is none of"),
        (MIGRATION, {"evictQPS": "fast"}, "evictQPS", "above 0"),
        (MIGRATION, {"evictQPS": 11, "evictBurst": 0}, "evictBurst", "expected 1"),
        (MIGRATION, {"maxConcurrentReconciles": -1}, "maxConcurrentReconciles", "expected 1"),
        (MIGRATION, {"maxMigratingGlobally": -1}, "maxMigratingGlobally", "expected 0"),
        (MIGRATION, {"maxMigratingPerNode": -1}, "maxMigratingPerNode", "expected 0"),
        (MIGRATION, {"maxMigratingPerNamespace": -1}, "maxMigratingPerNamespace", "expected 0"),
        (
            MIGRATION, {"labelSelector": {"matchLabels": {"a/b/c": "1"}}},
            "args.labelSelector", "DNS subdomain",
        ),
        (
            MIGRATION, {"namespaces": {"include": ["a"], "exclude": ["b"]}},
            "args.namespaces", "only one of include and exclude",
        ),
        (MIGRATION, {"maxMigratingPerWorkload": "ten"}, "maxMigratingPerWorkload", "percentage"),
        (MIGRATION, {"defaultJobTTL": "-5m"}, "args.defaultJobTTL", "-5m is below 0"),
        (MIGRATION, {"defaultJobMode": "Later"}, "defaultJobMode", "'Later'"),
        (MIGRATION, {"arbitrationArgs": {"interv": "1s"}}, "arbitrationArgs.interv", "not known"),
    ],
)  # fmt: skip
def test_a_mistake_names_its_path(name: str, args: dict[str, Any], where: str, what: str) -> None:
    """A protection that is misspelled would not protect."""
    with pytest.raises(errors.ConfigError) as caught:
        read(name, **args)
    assert where in str(caught.value)
    assert what in str(caught.value)


def test_the_peers_defaults_are_its_own() -> None:
    """Two a node, five minutes, reservations first; skipped gates judge nothing, and 0 neither."""
    usual = read(MIGRATION)
    assert usual.migrates
    assert (usual.migration.max_per_node, usual.migration.ttl_seconds) == (2, 300.0)
    assert usual.migration.mode == "ReservationFirst"
    assert (usual.per_second, usual.burst, usual.policy) == (10.0, 1, "Eviction")
    assert Protection.PVC not in usual.protections
    skipped = read(
        MIGRATION,
        skipEvictionGates=["MaxMigratingPerNode", "LocalStorage", "BarePods", "ExpectedReplicas"],
    )
    assert "MaxMigratingPerNode" in skipped.migration.skipped
    assert skipped.bare
    assert not skipped.migration.checks_replicas
    assert Protection.LOCAL_STORAGE not in skipped.protections
    free = read(MIGRATION, maxMigratingPerNode=0, maxMigratingGlobally=0).migration
    assert (free.max_per_node, free.max_globally) == (None, None)
    options = {"gracePeriodSeconds": 5, "propagationPolicy": "Background"}
    assert read(MIGRATION, defaultDeleteOptions=options).migration.grace_seconds == 5
    with pytest.raises(errors.ConfigError, match=r"defaultDeleteOptions\.dryRun: is not served"):
        read(MIGRATION, defaultDeleteOptions={"dryRun": ["All"]})
