"""The arguments of the evictors: protections, thresholds, gates, and each mistake by its name."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.kubeapi.disruption_rates import CountOrPercent
from koordlet.model import errors
from koordlet.scheduler.descheduling import evictor_settings
from koordlet.scheduler.descheduling.evictor_settings import JobRate, Protection
from koordlet.scheduler.descheduling.fields import Fields
from koordlet.scheduler.disruption import workloads

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
        (MIGRATION, {"priorityThreshold": {"value": 2_000_000_001}}, "Threshold.value", "is above"),
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
        (MIGRATION, {"objectLimiters": {"node": {}}}, "objectLimiters.node", "not known"),
        (
            MIGRATION, {"objectLimiters": {"namespace": {"duration": "1m", "maxMigrating": "9%"}}},
            "objectLimiters.namespace.maxMigrating", "needs a number",
        ),
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


@pytest.mark.parametrize(
    ("given", "workload", "namespace"),
    [
        (None, JobRate(seconds=300.0), JobRate()),
        ({}, JobRate(seconds=300.0), JobRate()),
        (
            {"workload": {"duration": "1m", "maxMigrating": "20%", "burst": 3}},
            JobRate(seconds=60.0, most=CountOrPercent(20, percent=True), burst=3), JobRate(),
        ),
        ({"workload": {"maxMigrating": 2}}, JobRate(seconds=300.0, most=CountOrPercent(2)),
         JobRate()),
        ({"workload": {"duration": "0s"}}, JobRate(), JobRate()),
        # What is given takes the place of what is usual.
        (
            {"namespace": {"duration": "1s", "maxMigrating": 5}},
            JobRate(), JobRate(seconds=1.0, most=CountOrPercent(5)),
        ),
    ],
)  # fmt: skip
def test_rates_of_jobs_are_those_that_are_given_or_one_of_workloads(
    given: dict[str, Any] | None, workload: JobRate, namespace: JobRate
) -> None:
    """As the peer reads them."""
    migration = read(MIGRATION, objectLimiters=given).migration
    assert (migration.workload_rate, migration.namespace_rate) == (workload, namespace)


@pytest.mark.parametrize(
    ("given", "replicas", "most"),
    [
        ("80%", 6, 4), ("150%", 6, 6), (5, 6, 5), (7, 6, 6), (None, 6, 2), ("0%", 50, 1), (0, 6, 1),
        (None, 3, 1), (None, 10, 2), (None, 11, 1), (None, 29, 2), ("10%", 5, 1),
    ],
)  # fmt: skip
def test_a_bound_of_a_workload_is_at_least_one_and_at_most_all(
    given: str | int | None, replicas: int, most: int
) -> None:
    """Percentages are rounded down."""
    for name in ("maxUnavailablePerWorkload", "maxMigratingPerWorkload"):
        migration = read(MIGRATION, **({} if given is None else {name: given})).migration
        bound = migration.max_unavailable if "Un" in name else migration.max_per_workload
        assert workloads.of_replicas(bound, replicas) == most
