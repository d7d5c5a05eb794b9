"""An errno that says that something is gone, and one that says nothing."""

from __future__ import annotations

import errno
import subprocess
import sys

import pytest

from koordlet.host.cgroup import hierarchies
from koordlet.host.counters import groups
from koordlet.host.fs import silence
from koordlet.host.fs.root import fail
from koordlet.model import cgroup, meter
from tests.kit import unanswering
from tests.kit.kernel import Machine

#: What the kernel calls gone, and what is the nature of a file.
_ANSWERS = (
    errno.ENOENT,
    errno.ENOTDIR,
    errno.ENODEV,
    errno.ENXIO,
    errno.ESRCH,
    errno.EOPNOTSUPP,
    errno.EINVAL,
    errno.EISDIR,
)
_SILENCE = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO, errno.EINTR, errno.ESTALE)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("number", _ANSWERS)
def test_answers(number: int, known: bool) -> None:
    """They are believed, and remembered by nobody."""
    unanswered = silence.Silence()

    assert not unanswered.met(fail(number, "/x"), known=known)
    assert unanswered.so_far() == ()


@pytest.mark.parametrize("number", _SILENCE)
def test_no_answers(number: int) -> None:
    """Everything else is none, by whatever number the kernel gives it."""
    unanswered = silence.Silence()

    assert unanswered.met(fail(number, "/x"))
    assert unanswered.met(fail(number, "/y"), known=True)
    assert [("/x", number, False), ("/y", number, True)] == [
        (met.path, met.errno, met.held) for met in unanswered.so_far()
    ]
    unanswered.begin()
    assert unanswered.so_far() == ()


def test_a_right_that_was_lost() -> None:
    """Who may not read a file never could, unless he did."""
    unanswered = silence.Silence()

    assert not unanswered.met(fail(errno.EACCES, "/x"))
    assert unanswered.met(fail(errno.EACCES, "/x"), known=True)


def test_passing_on() -> None:
    """Silence is raised again, of a single broken file only where that matters."""
    unanswered = silence.Silence()
    unanswered.pass_on(fail(errno.ENOENT, "/x"))
    unanswered.pass_on(fail(errno.EIO, "/x"), broken=False)

    for number, broken in ((errno.EIO, True), (errno.EMFILE, False)):
        with pytest.raises(OSError, match="/x"):
            unanswered.pass_on(fail(number, "/x"), broken=broken)


def test_counters_come_back_at_once() -> None:
    """A counter file that got no answer is read at its next turn, not after ten minutes."""
    machine = Machine("0-1", cgroup="v2")
    machine.mkdir(machine.at("/sys/fs/cgroup/web"))
    host = unanswering.UnansweringHost(machine)
    reader = groups.GroupReader(host, hierarchies.discover(host))
    reader.follow({"web": cgroup.Group(path="web", inode=1)})
    host.number = errno.EMFILE
    reader.read(1.0)
    host.number = 0
    meters = {batch.meter for batch in reader.read(2.0).batches}

    assert meter.CPU in meters


#: A process that has no descriptor left looks at this machine, and then has some again.
_POOR = """
import resource
from koordlet.host import observe; from koordlet.host.fs import live_host
observer = observe.Observer(live_host.LiveHost())
before = observer.topology, observer.layout
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
observer.refresh()
met = observer.host.silence.so_far()
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
assert (observer.topology, observer.layout) == before and observer.topology.online
print(*sorted({str(each) for each in met if each.held or each.path.startswith("/sys")}), sep="\\n")
"""


def test_this_kernel_without_descriptors() -> None:
    """EMFILE of the kernel that runs here takes neither CPUs nor mounts away."""
    output = subprocess.run(
        [sys.executable, "-c", _POOR], capture_output=True, text=True, check=True, timeout=60
    ).stdout

    assert "/proc/self/mountinfo (EMFILE)" in output
    assert "/sys/devices/system/cpu/online (EMFILE)" in output
