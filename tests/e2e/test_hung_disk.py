"""A file system whose server is gone: ``statvfs`` on it sleeps, and nobody else does.

The file system is a real one of the kernel (FUSE) whose server never says a word, which is what a
dead NFS server looks like from here.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from koordlet.host.fs import space
from tests.kit import answers, deadline, live, needs

pytestmark = pytest.mark.e2e

_CONFIG = """\
apiVersion: koordlet.io/v1
kind: Config
policies:
  node_pressure:
    nodefs: {hung}
    evictionHard: {{nodefs.available: 10%, memory.available: 1Mi}}
"""


_HUNG = 'koordlet_counter_files_total{event="hung"}'
_TICKS = "koordlet_ticks_total"


@pytest.fixture
def hung(tmp_path: Path) -> Iterator[Path]:
    """A mounted directory that never answers."""
    where = tmp_path / "hung"
    where.mkdir()
    try:
        server = os.open("/dev/fuse", os.O_RDWR)
    except OSError as error:
        needs.missing(f"/dev/fuse: {error.strerror}")
    options = f"fd={server},rootmode=40000,user_id=0,group_id=0".encode()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"dead", str(where).encode(), b"fuse", 0, options):
        os.close(server)
        needs.missing(f"no FUSE can be mounted: {os.strerror(ctypes.get_errno())}")
    try:
        yield where
    finally:
        os.close(server)
        libc.umount2(str(where).encode(), 2)


def test_a_directory_that_hangs_rests(hung: Path, tmp_path: Path) -> None:
    """Its child is killed and gone; everybody else's numbers come, and its own do not."""
    reader = space.SpaceReader([str(hung), str(tmp_path)])
    try:
        reader.settle(0.0, 1.0)
        assert not reader.found
        reader.read(space.PATIENCE + 1)
        assert reader.stale == (str(hung),)
        reader.settle(space.PATIENCE + 2, 10.0)
        assert list(reader.found) == [str(tmp_path)]

        def gone() -> bool:
            reader.read(space.PATIENCE + 3)
            return not reader._ending

        deadline.until(gone, "the child that slept is gone")
    finally:
        reader.close()


def test_the_agent_goes_on(place: live.Place, hung: Path, tmp_path: Path) -> None:
    """It becomes ready, says what it does not know, and goes on looking at everything else."""
    config = tmp_path / "config.yaml"
    config.write_text(_CONFIG.format(hung=hung))
    with place.running("--config", str(config)) as running:
        running.until("all surfaces up")
        address = deadline.until(
            lambda: re.search(r"http://(127\.0\.0\.1:\d+)", running.out + running.err), "an address"
        )[1]
        deadline.until(lambda: answers.metric(address, _HUNG) == 1, "the mount counts as hung")
        ticks = answers.metric(address, _TICKS)
        deadline.until(lambda: answers.metric(address, _TICKS) > ticks + 2, "ticks go on")
        signals = answers.document(address, "/api/v1/plan")["signals"]

    met = {signal["name"]: signal["met"] for signal in signals}
    assert met["nodefs.available"] is None
    assert met["memory.available"] is False
