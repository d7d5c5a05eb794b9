"""``koordlet get quotas``, ``describe quota`` and ``explain quota``, and quotas in ``sim``."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from koordlet import cli
from koordlet.kubeapi import kinds
from tests.kit import deadline, questions, schedulers
from tests.kit.clusters import node, pod
from tests.kit.quotas import KEY, quota

CUSTOM = (kinds.RESERVATIONS, kinds.ELASTIC_QUOTAS)


def _shared() -> list[dict[str, Any]]:
    """A hundred CPUs: a asks for 5, b for 60, c for 80, and d, which does not lend, for nothing."""
    quotas = [
        quota("a", {"cpu": 40}, {"cpu": 100}),
        quota("b", {"cpu": 20}, {"cpu": 50}),
        quota("c", {"cpu": 30}, {"cpu": 100}, weight={"cpu": "100"}),
        quota("d", {"cpu": 10}, {"cpu": 100}, lends=False),
    ]
    pods = [
        pod(f"{name}{place}", cpu="5", labels={f"{KEY}name": name})
        for name, number in (("a", 1), ("b", 12), ("c", 16))
        for place in range(number)
    ]
    return [node("n0", cpu="100"), *quotas, *pods]


def _file(path: Path, items: list[dict[str, Any]]) -> str:
    path.write_text(json.dumps({"kind": "List", "items": items}))
    return str(path)


async def test_quotas_are_listed_described_and_explained(
    ram: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The tree, a pod that waits and why, and each step of the runtime."""
    async with (
        schedulers.world(ram, over_http=False, custom=CUSTOM) as world,
        schedulers.scheduler(world.client) as loop,
        questions.answering(loop, capsys) as (address, answer),
    ):
        assert json.loads(await answer("get", "quotas", "-o", "json"))["quotas"] == []
        await world.node("n1", cpu="8")
        parent = quota("p", {"cpu": 1}, {"cpu": 3}, is_parent=True)
        for body in (parent, quota("q", {"cpu": 1}, {"cpu": 2}, parent="p")):
            await world.store.create(kinds.ELASTIC_QUOTAS, body)
        await deadline.comes(lambda: "q" in loop.core.quotas.book.nodes)
        for name in "xy":
            await world.pod(name, cpu="1500m", labels={f"{KEY}name": "q"})
        await world.until_placed("x")
        await world.until_told("y", "Insufficient quotas")

        head, above, below, *_ = (await answer("get", "quotas")).splitlines()
        assert head.split()[:6] == ["QUOTA", "MIN", "USED", "REQUEST", "RUNTIME", "MAX"]
        assert above.startswith("p ")
        assert below.startswith("  q ")
        assert below.split()[1:8] == [
            *("cpu:1", "cpu:1500m", "cpu:3", "cpu:2", "cpu:2", "2", "1"),
        ]
        assert "borrows cpu:500m" in below
        described = await answer("describe", "quota", "q")
        assert "Parent:     p" in described
        [waits] = [row for row in described.splitlines() if row.startswith("d/y")]
        assert "Insufficient quotas, quotaName: q" in waits
        first, unit, step, *_ = (await answer("explain", "quota", "q")).splitlines()
        assert first == "runtime of q: cpu:2"
        assert unit == "cpu, in thousandths of a CPU:"
        assert step == "  p has 2000 to divide"
        await world.store.create(
            kinds.ELASTIC_QUOTAS, quota("wrong", {"cpu": 3}, {"cpu": 2}, parent="p")
        )
        await deadline.comes(lambda: "default/wrong" in loop.core.quotas.book.invalid)
        words = "invalid: resourceKey cpu of quota wrong min 3 > max 2; write 2 or less"
        *_, last = (await answer("get", "quotas", "-o", "wide")).splitlines()
        assert (last[:6], words in last) == ("wrong ", True)
        for verb in ("describe", "explain"):
            assert words in await answer(verb, "quota", "wrong")
        peer = "/apis/v1/plugins/ElasticQuota"

        async def peers(path: str) -> tuple[int, Any]:
            return await asyncio.to_thread(_get, address, f"{peer}{path}")

        status, details = await peers("/quota/q")
        assert (status, details["parentName"], details["used"]) == (200, "p", {"cpu": "1500m"})
        assert details["podCache"]["d/x"] == {"isAssigned": True, "resource": {"cpu": "1500m"}}
        assert not details["podCache"]["d/y"]["isAssigned"]
        assert (await peers("/quotas"))[1]["q"] == details
        assert (await peers("/quota/nobody"))[0] == 404


def _get(address: str, path: str) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=20) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_sim_shows_what_each_quota_may_use(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The shares of four quotas to the thousandth; pods beyond them wait."""
    path = _file(tmp_path / "all.json", _shared())
    assert cli.main(["sim", path, "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    shares = {row["quota"]: row["runtime"]["cpu"] for row in document["quotas"][:4]}
    assert shares == {"a": "5", "b": "31667m", "c": "53333m", "d": "10"}
    waiting = {row["quota"]: row["waiting"] for row in document["quotas"][:4]}
    assert waiting == {"a": 0, "b": 6, "c": 6, "d": 0}
    assert cli.main(["sim", path]) == 0
    rows = [row.split() for row in capsys.readouterr().out.splitlines()]
    assert ["b", "cpu:20", "cpu:30", "cpu:60", "cpu:31667m", "cpu:50"] in [row[:6] for row in rows]


def test_sim_tells_who_moves_where_a_quota_is_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of c with a larger minimum: pods of c run, pods of b wait."""
    path = _file(tmp_path / "all.json", _shared())
    changed = _file(tmp_path / "changed.json", [quota("c", {"cpu": 65}, {"cpu": 100})])
    assert cli.main(["sim", path, "--quota", changed, "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    run = {row["pod"] for row in document["pods"] if row["after"]}
    wait = {row["pod"] for row in document["pods"] if not row["after"]}
    assert run
    assert wait
    assert {name[:3] for name in run} == {"d/c"}
    assert {name[:3] for name in wait} == {"d/b"}
    assert cli.main(["sim", path, "--quota", changed]) == 0
    rows = [row.split() for row in capsys.readouterr().out.splitlines()]
    assert ["c", "min", "cpu:30", "cpu:65"] in rows
    assert cli.main(["sim", path, "--quota", path]) == 0
    assert capsys.readouterr().out.splitlines() == ["no quota changes", "no pod moves"]


def test_check_tells_each_mistake_of_a_file_with_place_and_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 1 with --strict alone; a file without quotas is an error of whoever named it."""
    path = _file(tmp_path / "bad.json", [quota("q", {"cpu": 12}, {"cpu": 10})])
    assert cli.main(["check", path]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "error: ElasticQuota default/q: spec.min.cpu",
        "  resourceKey cpu of quota q min 12 > max 10",
        "  fix: write 10 or less, or raise spec.max.cpu",
        "1 quotas and profiles: 1 errors, 0 warnings",
    ]
    assert cli.main(["check", path, "--strict", "-o", "json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["version"], document["quotas"]) == ("v1", 1)
    assert document["mistakes"][0]["path"] == "spec.min.cpu"
    assert cli.main(["check", _file(tmp_path / "none.json", [node("n0")])]) == 2
    assert "no ElasticQuota" in capsys.readouterr().err
