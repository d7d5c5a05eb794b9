"""Manifests in a directory: files come, change, break and go, each for itself."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from koordlet.config import file_source
from koordlet.model import pod, qos
from koordlet.workloads import manifest_directory, source

WEB = """\
apiVersion: v1
kind: Pod
metadata:
  name: web
  labels: {koordinator.sh/qosClass: LSR}
  annotations: {koordlet.io/match: '{"unit": "nginx.service"}'}
spec:
  containers:
  - name: nginx
    resources: {requests: {cpu: "2"}}
"""
BATCH = WEB.replace("web", "batch").replace("LSR", "BE").replace("nginx.service", "batch.service")


class World:
    """A directory and who follows it."""

    def __init__(self, where: Path) -> None:
        self.where = where
        self.all = manifest_directory.Directory(
            str(where), read=file_source.read, identity=file_source.identity
        )

    def write(self, name: str, text: str) -> None:
        """One file, of another size each time."""
        (self.where / name).write_text(text + "\n" * len(list(self.where.iterdir())))

    def poll(self, times: int = 1) -> bool:
        """Look so often; what the last look said."""
        return [asyncio.run(self.all.poll()) for _ in range(times)][-1]

    def names(self) -> list[str]:
        """Who is declared."""
        return [workload.name for workload in self.all.value]


@pytest.fixture
def world(tmp_path: Path) -> World:
    """An empty directory."""
    return World(tmp_path)


def test_what_is_there_at_the_start(world: World) -> None:
    """It is read with the first look, as workloads like those of the configuration."""
    world.write("a.yaml", f"{WEB}---\n{BATCH}")
    assert world.poll()
    web, batch = world.all.value

    assert (web.match, web.qos, web.requests["cpu"]) == ("unit=nginx.service", qos.Qos.LSR, 2000)
    assert (*(batch.qos, batch.phase, batch.kube_qos, batch.containers),) == (
        qos.Qos.BE,
        pod.Phase.RUNNING,
        None,
        (),
    )
    value = world.all.value
    assert not world.poll()
    assert value is world.all.value


def test_files_come_change_and_go(world: World) -> None:
    """A file counts once it has looked the same twice; what it said goes with it."""
    world.poll()
    world.write("a.yaml", WEB)
    assert not world.poll()
    assert world.poll()
    assert world.names() == ["web"]

    world.write("a.yaml", WEB.replace("LSR", "LS") + "\n\n")
    assert not world.poll()
    assert world.poll()
    assert qos.Qos.LS is world.all.value[0].qos

    (world.where / "a.yaml").unlink()
    assert world.poll()
    assert world.names() == []


@pytest.mark.parametrize(
    "broken",
    [
        "kind: [",
        "{",
        "- a\n- list\n",
        "just words",
        "\x00",
        "&a [*a]",
        WEB.replace("name: web", "x: y"),
    ],
)
def test_a_broken_file_costs_only_itself(world: World, broken: str) -> None:
    """The others count, and what it said before stays; it is said which file it is."""
    world.write("a.yaml", WEB)
    world.write("b.yaml", BATCH)
    world.poll()
    world.write("a.yaml", broken)
    world.poll(2)

    assert world.names() == ["web", "batch"]
    assert any("a.yaml" in why for why in world.all.problems)

    world.write("a.yaml", WEB)
    world.poll(2)
    assert world.all.problems == ()


def test_a_workload_that_cannot_be_used(world: World) -> None:
    """Read for the first time, the file's other workloads count."""
    world.write("a.yaml", f"{WEB.replace('name: web', 'x: y')}---\n{BATCH}")
    world.poll()

    assert world.names() == ["batch"]
    assert any("without metadata.name" in why for why in world.all.problems)


def test_what_does_not_count(world: World) -> None:
    """Other endings, hidden files, a directory and a pipe; a pod that names no processes."""
    for name in ("notes.txt", ".a.yaml", "a.yaml~"):
        world.write(name, WEB)
    (world.where / "folder.yaml").mkdir()
    world.write("b.yaml", WEB.replace("koordlet.io/match", "other"))
    world.poll(2)

    assert world.names() == []
    problems = "\n".join(world.all.problems)
    assert "folder.yaml" in problems
    assert "default/web has no koordlet.io/match" in problems


def test_a_match_that_is_none(world: World) -> None:
    """Of a new file it costs its workload, and why is said; of an old one nothing changes."""
    world.write("a.yaml", WEB.replace('"unit": "nginx.service"', '"cgroup": "/web"'))
    world.poll()
    assert world.names() == []
    assert any('"/web" is not a path relative to' in why for why in world.all.problems)

    world.write("a.yaml", WEB)
    world.poll(2)
    world.write("a.yaml", WEB.replace("nginx.service", "nginx"))
    world.poll(2)
    assert world.names() == ["web"]
    assert any("previous content stays in force" in why for why in world.all.problems)


def test_one_name_in_two_files(world: World) -> None:
    """The file that sorts first counts, and it is said."""
    world.write("b.yaml", WEB.replace("LSR", "BE"))
    world.write("a.yaml", WEB)
    world.poll()

    assert [workload.qos for workload in world.all.value] == [qos.Qos.LSR]
    assert any("default/web is in two files" in why for why in world.all.problems)


def test_a_directory_that_is_not_there_or_none(tmp_path: Path) -> None:
    """One that is not there has no workloads; one that cannot be listed is a failure."""
    gone, file = World(tmp_path / "gone"), World(tmp_path / "file")
    assert not asyncio.run(gone.all.poll())
    assert gone.all.value == ()

    (tmp_path / "file").write_text("")
    with pytest.raises(source.Unusable, match="cannot be listed"):
        asyncio.run(file.all.poll())
