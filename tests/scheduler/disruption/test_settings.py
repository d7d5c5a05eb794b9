"""ReschedulingConfiguration: every key, its default, and what is wrong with a bad one."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.kubeapi.disruption_rates import CountOrPercent, RateLimit
from koordlet.model import errors
from koordlet.scheduler.disruption import settings

FULL: dict[str, Any] = {
    "aggressiveness": "Low",
    "disruption": {
        "defaults": [
            {"priorityAtLeast": 0, "count": "10%", "window": "1h"},
            {"priorityAtLeast": 9000, "count": 1, "window": "6h"},
        ],
        "floor": {"priorityAtLeast": 9000, "maxMinUp": "90%", "minCountPerDay": 1},
    },
    "limiter": {
        "perMinute": 4,
        "inFlight": 5,
        "perNodeInFlight": 6,
        "perNodeFiveMinutes": 7,
        "perNamespaceInFlight": 8,
        "perControllerInFlight": "20%",
        "perControllerUnavailable": 9,
        "coolDown": "10m",
        "notReadyPercent": 11,
        "pendingPercent": "12%",
        "shares": {"quota": "20%", "migrate": 100},
        "background": ["descheduler"],
    },
    "plans": {"makeRoomAfter": "10m", "consolidateEvery": "1h", "mode": "Act"},
    "headroom": [{"cpu": 8, "memory": "32Gi", "nodes": 2}],
    "preemption": {"holdPlace": True, "equalPriority": "Fair"},
    "queue": {"frontAcrossPriorities": True},
}


def read(**body: Any) -> settings.DisruptionSettings:
    """A document with these keys."""
    return settings.read({"apiVersion": settings.API_VERSION, "kind": settings.KIND, **body}, "f")


def test_every_key_of_the_reference_is_read_into_its_field() -> None:
    """The table and the record agree: no key is without effect."""
    configured, usual = read(**FULL), read()

    paths = {
        f"{section}.{key}" if isinstance(FULL[section], dict) else section
        for section in FULL
        for key in (FULL[section] if isinstance(FULL[section], dict) else [""])
    }
    assert paths == {key.path for key in settings.KEYS}
    for key in settings.KEYS:
        of = [
            getattr(each, key.path.partition(".")[0])
            if key.path.startswith(("limiter.", "plans.", "preemption."))
            else each
            for each in (configured, usual)
        ]
        assert getattr(of[0], key.name) != getattr(of[1], key.name), key.path
    assert configured.defaults == (
        settings.DefaultRate(9000, RateLimit(CountOrPercent(1), 21600.0)),
        settings.DefaultRate(0, RateLimit(CountOrPercent(10, percent=True), 3600.0)),
    )
    assert configured.floor == settings.RateFloor(9000, CountOrPercent(90, percent=True), 1)
    assert (configured.per_minute, usual.per_minute) == (4, 10)
    assert configured.limiter.shares == {"quota": 20, "migrate": 100}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"agressiveness": "Low"}, "f: agressiveness: is not known"),
        ({"limiter": {"perMinutes": 1}}, "f: limiter.perMinutes: is not known"),
        ({"limiter": []}, "f: limiter: expected an object"),
        ({"aggressiveness": "Wild"}, "f: aggressiveness: expected one of Low, Normal, High"),
        ({"limiter": {"perMinute": -1}}, "f: limiter.perMinute: expected 0"),
        ({"limiter": {"pendingPercent": 101}}, "f: limiter.pendingPercent: expected 0 to 100"),
        ({"limiter": {"coolDown": "soon"}}, "f: limiter.coolDown: not a duration"),
        ({"limiter": {"shares": {"quota": "most"}}}, "f: limiter.shares: expected a whole number"),
        ({"disruption": {"defaults": [{"count": 1}]}}, "each row needs priorityAtLeast"),
        (
            {"disruption": {"defaults": [{"priorityAtLeast": 0, "count": 1, "window": "8d"}]}},
            "up to 7d",
        ),
        ({"disruption": {"floor": {"maxMinUp": 1}}}, "priorityAtLeast is needed"),
        ({"disruption": {"floor": {"most": 1}}}, "'most' is not known"),
        ({"headroom": [{"node": 1}]}, "f: headroom: 'node' is no resource"),
        ({"apiVersion": "v1"}, "apiVersion 'v1' is not scheduling.koordlet.io/v1alpha1"),
    ],
)
def test_a_key_that_cannot_be_used_is_refused_by_its_path(body: Any, words: str) -> None:
    """A limit that is misspelled would not limit."""
    with pytest.raises(errors.ConfigError) as caught:
        read(**body)
    assert words in str(caught.value)
