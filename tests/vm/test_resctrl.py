"""Resource control on the kernel's real interface, in machines whose processor has it.

They need an emulator that has it too (``KOORDLET_RDT_QEMU``); nothing is really throttled there.
"""

from __future__ import annotations

import json

import pytest

from koordlet.model import schemata
from tests.kit.kernel import conformance, script
from tests.vm import fetched, fixtures
from tests.vm.fixtures import Boot

pytestmark = pytest.mark.vm

SCRIPTS = {name: body for name, body in conformance.scripts().items() if name.startswith("resctrl")}
ALL = {"BE", "LS", "LSR"}

#: Wish, mount options, groups, what best-effort work has in domain 0.
SHAPES = [
    ("intel", "", ALL, {"L3": 0xF, "MB": 50}),
    ("intel,cdp,l2,cbm=20", "cdp", ALL, {"L3CODE": 0x3F, "L3DATA": 0x3F, "L2": 0xFF, "MB": 50}),
    ("intel,cbm=11,cos=4", "", ALL, {"L3": 0xF, "MB": 50}),
    ("intel,cos=2,nomba", "", {"BE"}, {"L3": 0xF}),
    ("intel,nol3", "", ALL, {"MB": 50}),
    ("intel,nomon", "", ALL, {"L3": 0xF, "MB": 50}),
    ("intel,l2,nol3,nomba", "", ALL, {"L2": 0x7}),
    ("intel,mba=77", "", ALL, {"L3": 0xF, "MB": 46}),
    ("intel", "mba_MBps", ALL, {"L3": 0xF, "MB": 8583}),
    ("amd", "", ALL, {"L3": 0x1F, "MB": 72}),
    ("amd,cbm=12,cos=4", "", ALL, {"L3": 0xF, "MB": 72}),
]


#: What every run tries; the others are for ``make soak``, each boots a machine of its own.
OFTEN = {"resctrl-intel", "resctrl-amd"}
#: Intel's plain shape is that of the test of partitions, but for its ways.
OFTEN_SHAPES = {"intel,cdp,l2,cbm=20", "amd"}


def _seldom(*, often: bool) -> list[pytest.MarkDecorator]:
    return [] if often else [pytest.mark.soak]


def _wish(session: script.Script) -> str:
    return next(need for need in session.needs if need.startswith("resctrl=")).partition("=")[2]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=_seldom(often=name in OFTEN)) for name in SCRIPTS]
)
def test_the_guest_gives_the_recorded_answers(boot: Boot, name: str) -> None:
    """Each script, in a machine of its own: RMIDs that were given back stay in use for a while."""
    wish = _wish(SCRIPTS[name])
    # One that no other script of the same wish has: equal arguments give the same machine.
    guest = boot("2s8t", rdt=wish, append=[f"script={name}"])
    command = f"python3 -m tests.kit.kernel.script run --alone --resctrl {wish}"
    result = guest.run(f"{command} fixtures/kernel/{name}.script").check()
    (recording,) = script.recordings(result.stdout.splitlines())
    known = script.nearest(conformance.recordings(), name, recording.facts)

    assert known is not None
    wrong = conformance.differences(known, recording)
    if known.facts.version != recording.facts.version:
        pytest.skip(f"recorded on {known.facts.kernel}; here {len(wrong)} answers are others")
    assert wrong == []


@pytest.mark.parametrize(
    ("wish", "options", "groups", "best_effort"),
    [
        pytest.param(
            *s,
            id=f"{s[0]}-{s[1]}",
            marks=_seldom(often=s[0] in OFTEN_SHAPES),
        )
        for s in SHAPES
    ],
)
def test_an_agent_limits_and_puts_back(
    wish: str, options: str, groups: set[str], best_effort: dict[str, int]
) -> None:
    """It mounts, makes groups, limits them, finds what forks, and leaves the machine as it was.

    In between somebody else changes schemata, removes a group and unmounts all of it.
    """
    words = ["python3", "tests/vm/probes/resctrl.py", options, ",".join(sorted(groups))]
    with fixtures.fresh(rdt=wish) as guest:
        facts = json.loads(guest.run(words).check().stdout)
    limits = schemata.parse(facts["schemata"]["BE"])

    assert facts["settled"], facts["log"]
    assert groups == set(facts["groups"])
    assert best_effort == {name: limits.get(name, 0) for name in limits.values}
    assert facts["intruder"]
    assert facts["counted"] == ["koordlet-config_batch"] or "nomon" in wish
    assert [what for what, good in facts["trouble"].items() if not good] == [], facts["log"]
    assert facts["alive"]
    assert (facts["status"], facts["mounted"]) == (0, False), facts["log"]


def test_partitions_and_what_is_shown() -> None:
    """Classes share the ways of their partition alone; the commands say whose ways are whose."""
    words = ["python3", "tests/vm/probes/resctrl.py", "", "BE,LS,LSR", "partitions"]
    with fixtures.fresh(rdt="intel,cbm=20") as guest:
        facts = json.loads(guest.run(words).check().stdout)
    limits = {name: schemata.parse(text) for name, text in facts["schemata"].items()}

    assert facts["settled"], facts["log"]
    assert {n: s.get("L3", 0) for n, s in limits.items()} == {
        "LSR": 0xFFF,
        "LS": 0xFFF,
        "BE": 0x7000,
    }
    assert limits["BE"].get("MB", 0) == 50
    shown = facts["shown"]
    assert "BE          ·····███············  7000" in shown["resctrl"]
    assert "partition batch (8 of 20 ways); MB 50 %" in shown["explain"]
    assert "Nothing to do" in shown["plan"]


@pytest.mark.parametrize("wish", ["intel", pytest.param("amd", marks=pytest.mark.soak)])
def test_a_container_s_first_act_is_in_its_class(wish: str) -> None:
    """Containerd and runc put it there before it begins; an update keeps it; then it is put back.

    The runtime was told by NRI, in the words of its specification, and removes no group of ours.
    """
    shares, patient = fetched.shares("containerd"), fetched.environment(240)
    words = ["python3", "tests/vm/probes/runtime_classes.py"]
    with fixtures.fresh(rdt=wish, shares=shares) as guest:
        facts = json.loads(guest.run(words, env=patient, timeout=600).check().stdout)
    each = {"LS": "LS", "BE": "BE"}

    assert each == facts["first"] == facts["updated"], facts["log"]
    assert {name: {"closID": name} for name in each} == facts["told"]
    assert facts["groups"] == ["BE", "LS", "LSR"]
    assert tuple(facts[k] for k in ("after", "status", "mounted")) == (
        {"LS": "", "BE": ""},
        0,
        False,
    )
