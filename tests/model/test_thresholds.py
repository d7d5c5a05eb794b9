"""The kubelet's grammar of eviction thresholds, what it derives and what it refuses."""

from __future__ import annotations

import pytest

from koordlet.config import schema
from koordlet.model import thresholds
from koordlet.model.thresholds import Texts
from tests.kit import agents

_GI = 1 << 30


def signals(parsed: tuple[thresholds.Threshold, ...]) -> list[str]:
    """The names, with a mark on soft ones."""
    return [threshold.signal + ("" if threshold.hard else "~") for threshold in parsed]


def test_defaults() -> None:
    """Without the map there are the kubelet's five, and the memory of all pods follows."""
    values = {threshold.signal: threshold.value.text for threshold in thresholds.parse(Texts())}

    assert values == {
        "memory.available": "100Mi",
        "nodefs.available": "10%",
        "nodefs.inodesFree": "5%",
        "imagefs.available": "15%",
        "imagefs.inodesFree": "5%",
        "allocatableMemory.available": "100Mi",
    }


def test_a_given_map_replaces_the_defaults() -> None:
    """Only what is listed counts; an empty map is nothing; merging brings the defaults back."""
    given = {"nodefs.available": "1Gi"}

    assert signals(thresholds.parse(Texts(hard=given))) == ["nodefs.available"]
    assert thresholds.parse(Texts(hard={})) == ()
    merged = thresholds.parse(Texts(hard=given, merge_defaults=True))
    assert {
        threshold.value.text for threshold in merged if threshold.signal == "nodefs.available"
    } == {"1Gi"}
    assert len(merged) == 6


def test_order_and_copies() -> None:
    """Hard, soft, then the copy of hard memory, with its minimum reclaim; of soft there is none."""
    parsed = thresholds.parse(
        Texts(
            hard={"memory.available": "1Gi"},
            soft={"memory.available": "2Gi", "pid.available": "10%"},
            soft_grace={"memory.available": "1m30s", "pid.available": "0s"},
            reclaim={"memory.available": "500Mi"},
        )
    )

    assert signals(parsed) == [
        "memory.available",
        "memory.available~",
        "pid.available",
        "allocatableMemory.available",
    ]
    assert [threshold.grace for threshold in parsed] == [0, 90, 0, 0]
    assert [threshold.reclaim.text if threshold.reclaim else "" for threshold in parsed] == [
        "500Mi",
        "500Mi",
        "",
        "500Mi",
    ]
    assert thresholds.parse(Texts(hard={"memory.available": "1Gi"}, enforce_pods=False))[1:] == ()


@pytest.mark.parametrize("text", ["0%", "100%"])
def test_switched_off(text: str) -> None:
    """Nothing and everything, spelled exactly so, are no thresholds; other spellings are."""
    assert thresholds.parse(Texts(hard={"nodefs.available": text})) == ()
    assert len(thresholds.parse(Texts(hard={"nodefs.available": "0.0%"}))) == 1


@pytest.mark.parametrize(
    ("text", "capacity", "amount"),
    [
        ("10%", 1000, 100),
        ("5%", 16384000000, 819200012),
        ("33.3%", 1000, 333),
        ("1Gi", 5, _GI),
        ("0.5", 5, 1),
        ("1e3", 5, 1000),
    ],
)
def test_amounts(text: str, capacity: int, amount: int) -> None:
    """Percentages count in 32 bits and are cut; quantities are rounded up."""
    (threshold,) = thresholds.parse(Texts(hard={"nodefs.available": text}))

    assert amount == threshold.value.of(capacity)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (Texts(hard={"mem.available": "1Gi"}), "unsupported eviction signal mem.available"),
        (Texts(hard={}, soft={"x": "1Gi"}), "unsupported eviction signal x"),
        (Texts(hard={}, soft_grace={"x": "1m"}), "unsupported eviction signal x"),
        (Texts(hard={}, reclaim={"x": "1Gi"}), "unsupported eviction signal x"),
        (
            Texts(hard={"nodefs.available": "-5%"}),
            "eviction percentage threshold nodefs.available must be >= 0%: -5%",
        ),
        (
            Texts(hard={"nodefs.available": "105%"}),
            "eviction percentage threshold nodefs.available must be <= 100%: 105%",
        ),
        (
            Texts(hard={"memory.available": "-1024Mi"}),
            "eviction threshold memory.available must be positive: -1Gi",
        ),
        (
            Texts(hard={"memory.available": "0"}),
            "eviction threshold memory.available must be positive: 0",
        ),
        (
            Texts(hard={}, soft={"memory.available": "1Gi"}),
            "grace period must be specified for the soft eviction threshold memory.available",
        ),
        (
            Texts(
                hard={},
                soft={"memory.available": "1Gi"},
                soft_grace={"memory.available": "-30s"},
            ),
            "invalid eviction grace period specified: -30s, must be a positive value",
        ),
        (Texts(hard={}, soft_grace={"memory.available": "30mins"}), "invalid duration"),
        (Texts(hard={"memory.available": "-Inf%"}), "must be >= 0%: -Inf%"),
        (Texts(hard={"memory.available": "Infinity%"}), "must be <= 100%: Infinity%"),
        (Texts(hard={"memory.available": ""}), "not a quantity"),
        (Texts(hard={"memory.available": " 1Gi"}), "not a quantity"),
        (Texts(hard={"memory.available": "10..5%"}), "invalid percentage"),
        (Texts(hard={"memory.available": "%"}), "invalid percentage"),
        (Texts(hard={"memory.available": "nan%"}), "invalid percentage"),
        (Texts(hard={}, soft={"memory.available": "x"}), "not a quantity"),
        (
            Texts(hard={}, reclaim={"memory.available": "0%"}),
            "eviction percentage minimum reclaim memory.available must be positive: 0%",
        ),
        (
            Texts(hard={}, reclaim={"memory.available": "-1Gi"}),
            "negative eviction minimum reclaim specified for memory.available",
        ),
    ],
)
def test_refused(texts: Texts, message: str) -> None:
    """Each mistake is refused in the kubelet's words."""
    with pytest.raises(thresholds.ThresholdError) as refused:
        thresholds.parse(texts)

    assert message in str(refused.value)


def test_minimum_reclaim_may_be_nothing_or_more_than_everything() -> None:
    """A quantity of zero is allowed, and percentages have no upper bound."""
    for text in ("0", "150%"):
        (threshold,) = thresholds.parse(
            Texts(hard={"nodefs.available": "1Gi"}, reclaim={"nodefs.available": text})
        )
        assert threshold.reclaim is not None
        assert threshold.reclaim.text == text


@pytest.mark.parametrize(
    ("layout", "source"), [("single", "nodefs"), ("split", "nodefs"), ("dedicated", "imagefs")]
)
def test_writable_layers_have_the_thresholds_of_their_file_system(layout: str, source: str) -> None:
    """What was configured for them is replaced, hard by hard and soft by soft."""
    parsed = thresholds.parse(
        Texts(
            hard={
                "nodefs.available": "1Gi",
                "imagefs.available": "2Gi",
                "containerfs.available": "9Gi",
            },
            soft={"nodefs.inodesFree": "7%", "imagefs.inodesFree": "8%"},
            soft_grace={"nodefs.inodesFree": "7s", "imagefs.inodesFree": "8s"},
        )
    )
    made = thresholds.with_containerfs(parsed, layout)
    derived = {
        threshold.signal: threshold
        for threshold in made
        if threshold.signal.startswith("containerfs")
    }
    expected = {
        threshold.signal.partition(".")[2]: threshold
        for threshold in parsed
        if threshold.signal.startswith(source)
    }

    assert {
        signal.partition(".")[2]: (threshold.value, threshold.grace)
        for signal, threshold in derived.items()
    } == {kind: (threshold.value, threshold.grace) for kind, threshold in expected.items()}


def test_flags() -> None:
    """As the kubelet's flags spell a map."""
    given = thresholds.flag("memory.available<100Mi,nodefs.available<10%", "<")

    assert given == {"memory.available": "100Mi", "nodefs.available": "10%"}
    assert thresholds.flag("", "<") == {}
    assert thresholds.flag("pid.available<5,", "<") == {"pid.available": "5"}
    with pytest.raises(ValueError, match="invalid eviction threshold"):
        thresholds.flag("memory.available=100Mi", "<")


def test_a_section_that_says_nothing_is_the_kubelets_defaults() -> None:
    """The kubelet's defaults, for pods as well."""
    texts = thresholds.Texts.of(schema.defaults().policies.node_pressure)

    assert thresholds.Texts(enforce_pods=True) == texts
    assert texts.hard is None


def test_each_map_of_a_section_has_its_place() -> None:
    """Each map in its place; an empty map of hard thresholds is none, not the default."""
    text = (
        "policies:\n  node_pressure:\n"
        "    evictionHard: {}\n"
        "    evictionSoft: {memory.available: 1Gi}\n"
        "    evictionSoftGracePeriod: {memory.available: 90s}\n"
        "    evictionMinimumReclaim: {memory.available: 10Mi}\n"
        "    mergeDefaultEvictionSettings: true\n"
        "    enforceNodeAllocatable: [none]\n"
    )

    texts = thresholds.Texts.of(agents.effective(text).config.policies.node_pressure)

    assert texts == thresholds.Texts(
        hard={},
        soft={"memory.available": "1Gi"},
        soft_grace={"memory.available": "90s"},
        reclaim={"memory.available": "10Mi"},
        merge_defaults=True,
        enforce_pods=False,
    )
