"""Virtual machines for tests: Debian's own kernel under QEMU, with a chosen topology.

Some of what koordlet does can only be tried on a real kernel: what a cgroup file answers, CPUs
that go offline, NUMA nodes without memory, what systemd does to a killed service. This package
boots such a machine in a few seconds, without KVM, runs commands in it as root, and brings back
their output and exit status.

Covers: the machines. Does not cover: what is tested in them (``test_*.py`` beside this file).

By hand::

    apt-get install --no-install-recommends $(python3 -m tests.vm packages)
    python -m tests.vm run --shape 4n16 --cgroup v1 -- 'lscpu -e; cat /proc/self/cgroup'
    python -m tests.vm run --systemd -- 'systemctl list-units; journalctl -b'
    python -m tests.vm run --help

In a test (``pytestmark = pytest.mark.vm``; outside of this folder, the ``conftest.py`` needs
``from tests.vm.fixtures import boot``)::

    def test_something(boot: fixtures.Boot) -> None:
        guest = boot("2s8t", cgroup="v1")          # up until the module's tests are done
        assert guest.run(["true"]).status == 0     # Result: status, stdout, stderr, seconds
        guest.run("echo 1 > /proc/sys/vm/drop_caches").check()  # bash; raises if it fails
        facts = guest.python(pathlib.Path("probe.py"))          # its output, read as JSON

    with machine.boot("offline", systemd=True) as guest: ...    # one that is not shared

Booting is what costs time: do many checks in one machine.

What the guest has: Debian's kernel and systemd, python3 (3.11) with koordlet and the packages of
``requirements.lock`` importable, hwloc, numactl, stress-ng, strace; the repository at
``/srv/koordlet``, read-only, where commands start; ``/run/vm/out``, which the host sees as
``guest.out``; a root disk that forgets everything. It has no network but ``lo``, and no swap.

A machine is a PC, or an arm64 that counts cycles and instructions (``board.arm64``; its emulator is
``qemu-system-arm``): its time goes on by what it does, and it skips all in which it does nothing.

How cgroups are mounted: ``v2`` (all controllers passed on by the root, commands in the leaf
``/command``), ``v1`` (a hierarchy for each controller, as systemd makes them) or ``hybrid`` (v1 and
an empty v2 tree); with ``systemd=True`` systemd mounts and owns them, and commands run in
``vm-agent.service`` once the system is ``running``.

What the cache keeps (``$XDG_CACHE_HOME/koordlet/vm``), each named by what went into it, the last
three of a kind; delete it at will:

* ``base-*``, ``base_arm64-*``: kernel, first file system, root disk. Packages come from the
  mirrors that this machine's apt uses, in the versions of the day.
* ``site-*``, ``packages-*``: what the lock file names, as a folder and as a disk.
* ``repo-*``: the repository as a disk; a new one for each change of a file, in a fifth of a second.
* ``failed/``: the consoles of machines that died.

Times on two idle cores: ``base`` 10 s, ``site`` and ``packages`` under 10 s, once; from start to
the first command 1s2c 2.5 s, the other shapes 3.5 to 4 s, with systemd 6 to 8 s. A busy host takes
two to five times as long.
A guest's clock and speed are not those of a real machine: nothing measured in it means anything.
"""
