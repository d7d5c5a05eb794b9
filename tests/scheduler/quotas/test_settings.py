"""Arguments of the plugin ElasticQuota."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.scheduler.objects.wire import BadObjectError
from koordlet.scheduler.quotas import settings


def test_arguments_have_the_peers_defaults_but_for_the_parents() -> None:
    """A parent's bound is enforced unless the operator says otherwise."""
    default = settings.arguments({})
    assert default == settings.QuotaSettings()
    assert (default.checks_parents, default.uses_runtime, default.monitors) == (True, True, False)
    assert (default.delay_evict_seconds, default.default_max["cpu"]) == (120.0, (2**63 - 1) // 5)
    assert not settings.arguments({"enableCheckParentQuota": False}).checks_parents


def test_arguments_are_read_in_the_peers_spelling() -> None:
    """Durations, resource lists, gates."""
    args = settings.arguments(
        {
            "delayEvictTime": "5m",
            "defaultQuotaGroupMax": {"cpu": "4"},
            "disableDefaultQuotaPreemption": False,
            "featureGates": {
                "ElasticQuotaGuaranteeUsage": True,
                "ElasticQuotaImmediateIgnoreTerminatingPod": True,
            },
            "monitorAllQuotas": True,
        }
    )
    assert (args.delay_evict_seconds, args.default_max) == (300.0, {"cpu": 4000})
    assert (args.gates.guarantees, args.monitors) == (True, True)
    assert (args.preempts_in_default, args.ignores_terminating) == (True, True)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"hookPlugins": [{"key": "a"}]}, "hookPlugins"),
        ({"delayEvictTime": "x"}, "delayEvictTime"),
        ({"revokePodInterval": "-1s"}, "revokePodInterval"),
        ({"defaultQuotaGroupMax": {"cpu": "-1"}}, "defaultQuotaGroupMax"),
        ({"maxRevokePerMinute": 0}, "maxRevokePerMinute"),
        ({"monitorAllQuotas": "yes"}, "monitorAllQuotas"),
    ],
)
def test_an_argument_that_cannot_be_used_is_named(args: dict[str, Any], words: str) -> None:
    """The error says which one."""
    with pytest.raises(BadObjectError, match=words):
        settings.arguments(args)


def test_arguments_without_effect_and_unknown_ones_are_said() -> None:
    """At values that nobody misses nothing is said."""
    args = {"enableQueueHint": True, "quotaSnapshotUpdateInterval": "120s", "typo": 1}
    warnings = settings.arguments(args).warnings
    assert [text.split(" has ")[0].split(" is ")[0] for text in warnings] == [
        "ElasticQuota: 'typo'",
        "ElasticQuota: enableQueueHint",
        "ElasticQuota: quotaSnapshotUpdateInterval",
    ]
    assert settings.arguments({"disableDefaultQuotaPreemption": True}).warnings == ()
