"""Boots a machine and runs commands in it.

Covers: the life of one emulator process, jobs (a command, its output, its exit status), what is
said when the guest dies or takes too long.
Does not cover: what the machine is made of (``qemu``, ``image``, ``project``).

How a command gets in and its answer out: the folder ``control`` is shared with the guest, at
``/run/vm``. The host writes ``control/jobN/command`` and the line ``jobN`` to the guest's virtual
serial port; the guest's agent runs it and leaves ``stdout``, ``stderr`` and at last ``status``.

Rules:
1. No emulator outlives its ``Machine``, nor the process that made it, whatever ends that.
2. Every wait has a limit, and ends at once when the emulator ends.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Self, TypedDict, Unpack

from tests.vm import board, cache, image, kernel, kernels, project, qemu, root, shape

#: Seconds. Emulation on a busy host is slow; these only have to be less than for ever.
BOOT_TIMEOUT = COMMAND_TIMEOUT = 300.0
#: Until the guest's first sign of life, seconds after its start; then it is started again, once.
SIGN_OF_LIFE = 60.0
#: How often a wait looks at the emulator and for the file that it waits for.
LOOK = 0.02
#: Characters of the console that an error shows.
TAIL = 3000


class GuestError(RuntimeError):
    """The guest did not answer; the text has the end of its console."""


class GuestDiedError(GuestError):
    """The guest switched itself off, crashed or rebooted."""


class GuestTimeoutError(GuestError):
    """The guest took too long."""


class CommandFailedError(RuntimeError):
    """A command that had to succeed did not."""


@dataclasses.dataclass(frozen=True, slots=True)
class Result:
    """What a command left."""

    command: str
    status: int
    stdout: str
    stderr: str
    seconds: float

    def check(self) -> Result:
        """The result itself; CommandFailedError unless the exit status is 0."""
        if self.status:
            raise CommandFailedError(
                f"exit status {self.status} of: {self.command}\n"
                f"--- stdout\n{self.stdout[-TAIL:]}\n--- stderr\n{self.stderr[-TAIL:]}"
            )
        return self

    def json(self) -> object:
        """The command's output, read as JSON."""
        return json.loads(self.check().stdout)


class Machine:
    """A guest that is up while the ``with`` block lasts."""

    def __init__(self, options: qemu.Options, *, boot_timeout: float = BOOT_TIMEOUT) -> None:
        self.options = options
        #: Seconds from start to the first command, once it is up.
        self.boot_seconds = 0.0
        self._boot_timeout = boot_timeout
        self._folder = pathlib.Path()
        self._emulator: subprocess.Popen[bytes] | None = None
        self._jobs = 0
        self._closing = contextlib.ExitStack()

    @property
    def out(self) -> pathlib.Path:
        """The host's side of ``/run/vm/out``, where the guest may leave files; gone on exit."""
        return self._control / "out"

    @property
    def up(self) -> bool:
        """Whether the emulator runs."""
        return self._emulator is not None and self._emulator.poll() is None

    @property
    def console(self) -> str:
        """All that the guest's kernel printed."""
        path = self._folder / "console"
        return path.read_text(errors="replace") if path.exists() else ""

    def __enter__(self) -> Self:
        try:
            self._boot()
        except BaseException:
            self._closing.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def run(
        self,
        command: str | Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout: float = COMMAND_TIMEOUT,
        follow: Callable[[pathlib.Path], None] | None = None,
        files: Sequence[pathlib.Path] = (),
    ) -> Result:
        """Runs a bash text, or a program with its arguments, as root.

        It starts in the repository if that was carried in, with ``files`` copied to the folder
        ``$JOB``. ``follow`` is called with the job's folder again and again until it is done.
        """
        text = command if isinstance(command, str) else shlex.join(command)
        self._jobs += 1
        name = f"job{self._jobs}"
        job = self._control / name
        job.mkdir()
        for file in files:
            shutil.copy(file, job)
        if cwd is None:
            cwd = root.REPO if root.REPO in self.options.disks else "/root"
        words = {**(env or {}), "JOB": f"/run/vm/{name}"}
        exports = "".join(f"export {k}={shlex.quote(v)}\n" for k, v in words.items())
        (job / "command").write_text(f"{exports}cd {shlex.quote(cwd)} || exit\n{text}\n")
        start = time.monotonic()
        self._send(name)
        self._await(job / "status", timeout, f"no answer to: {text}", job, follow)
        status = int((job / "status").read_text())
        seconds = time.monotonic() - start
        return Result(text, status, _read(job / "stdout"), _read(job / "stderr"), seconds)

    def python(self, script: pathlib.Path, *args: str, timeout: float = COMMAND_TIMEOUT) -> object:
        """Runs a Python file of the host in the guest; what it printed, read as JSON."""
        command = f'exec python3 "$JOB"/{shlex.quote(script.name)} {shlex.join(args)}'
        return self.run(command, files=[script], timeout=timeout).json()

    @property
    def _control(self) -> pathlib.Path:
        return self._folder / "control"

    def _boot(self) -> None:
        files = image.image(self.options.board)
        program, environment = qemu.emulator(self.options.rdt, self.options.board)
        self._folder = pathlib.Path(tempfile.mkdtemp(prefix="koordlet-vm-"))
        self._closing.callback(shutil.rmtree, self._folder, ignore_errors=True)
        if self.options.kernel is not None:
            files = _with_kernel(files, self.options.kernel, self._folder / "initramfs")
        self.out.mkdir(parents=True)
        for script in qemu.guest_scripts():
            pathlib.Path(shutil.copy(script, self._control / script.name)).chmod(0o755)
        (self._control / "settings").write_text(f"cgroup={self.options.cgroup}\n")
        command = ["setpriv", "--pdeathsig", "KILL", "--", *program]  # it dies with this process
        command += qemu.arguments(self.options, files, self._folder)
        start = time.monotonic()
        self._start(command, environment)
        try:
            limit = min(SIGN_OF_LIFE, self._boot_timeout)
            self._await(self._control / "alive", limit, "no sign of life")
        except GuestError as error:
            # Rare, seen on busy hosts: the kernel spends all its time on timer interrupts. Or a
            # CPU meets an instruction that another is just rewriting, which real ones never see.
            cache.say(f"{error}\nvm: starting it again")
            self._start(command, environment)
        self._await(self._control / "ready", self._boot_timeout, "the guest did not come up")
        self.boot_seconds = time.monotonic() - start

    def _start(self, command: list[str], environment: Mapping[str, str]) -> None:
        with (self._folder / "emulator").open("wb") as complaints:
            self._emulator = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=complaints,
                # The emulator keeps what the guest writes to its disk in an unnamed file there.
                env={**environment, "TMPDIR": str(self._folder)},
                start_new_session=True,
            )
        self._closing.callback(self._stop, self._emulator)

    def _stop(self, emulator: subprocess.Popen[bytes]) -> None:
        emulator.kill()
        emulator.wait()
        with contextlib.suppress(BrokenPipeError):
            _stdin(emulator).close()

    def _send(self, line: str) -> None:
        assert self._emulator is not None, "the machine is not up"
        with contextlib.suppress(BrokenPipeError):  # what became of it is seen by the wait
            _stdin(self._emulator).write(f"{line}\n".encode())
            _stdin(self._emulator).flush()

    def _await(
        self,
        path: pathlib.Path,
        timeout: float,
        complaint: str,
        job: pathlib.Path | None = None,
        follow: Callable[[pathlib.Path], None] | None = None,
    ) -> None:
        """Returns when the file is there. Looking is all there is to do: the guest writes it."""
        assert self._emulator is not None
        deadline = time.monotonic() + timeout
        ended = False
        while not path.exists():
            if ended:
                raise self._failed(GuestDiedError, f"the guest died; {complaint}", job)
            if time.monotonic() > deadline:
                raise self._failed(GuestTimeoutError, f"{complaint} (after {timeout:.0f} s)", job)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._emulator.wait(LOOK)
                ended = True  # look once more: the file may have come just before
            if follow and job:
                follow(job)

    def _failed(self, kind: type[GuestError], what: str, job: pathlib.Path | None) -> GuestError:
        """The error with all that helps. The machine is of no use any more, so it ends."""
        if self._emulator is not None:
            self._stop(self._emulator)
        kept = _keep(self.console, self.options.shape.name)
        parts = [f"{self.options.shape.name}: {what}", f"--- console, all in {kept}"]
        parts.append(self.console[-TAIL:].strip())
        complaints = _read(self._folder / "emulator").splitlines()
        parts += [line for line in complaints if "support requested feature" not in line]
        if job:
            for name in ("stdout", "stderr"):
                parts.append(f"--- {name}\n{_read(job / name)[-TAIL:]}")
        return kind("\n".join(parts))


class Wanted(TypedDict, total=False):
    """What ``boot`` may be told, beside the shape's name."""

    #: How cgroups are mounted: ``v2`` (the default), ``v1`` or ``hybrid``.
    cgroup: qemu.Cgroup
    #: Boot systemd and run commands in one of its services, instead of a small init.
    systemd: bool
    #: More words for the kernel command line.
    append: Sequence[str]
    #: Emulate resctrl: ``intel`` or ``amd``, with options; qemu.NotAvailableError if QEMU cannot.
    rdt: str
    #: Another board than a PC.
    board: board.Board
    #: Debian's kernel of another suite, such as ``trixie``; otherwise KOORDLET_VM_KERNEL's.
    suite: str
    #: Another kernel than Debian's, with everything built in.
    kernel: pathlib.Path
    #: More folders of the host, read-only and live, by mount point.
    shares: Mapping[str, pathlib.Path]
    #: Carry in the repository and the packages it needs, importable by python3 (the default).
    carry: bool
    #: A folder with those packages, instead of the lock file's.
    packages: pathlib.Path
    #: Seconds until GuestTimeoutError.
    boot_timeout: float


def boot(name: str = "2s8t", **wanted: Unpack[Wanted]) -> Machine:
    """A machine of the shape with that name, to be used in a ``with`` statement."""
    other = kernels.chosen(wanted.get("suite"), wanted.get("kernel"))
    if wanted.get("cgroup") == "v1" and other is not None and not other.legacy:
        raise qemu.NotAvailableError("this kernel has no cpuset or no memory on cgroup v1")
    built_for = wanted.get("board", board.X86)
    disks = project.disks(wanted.get("packages"), built_for) if wanted.get("carry", True) else {}
    options = qemu.Options(
        shape=shape.named(name),
        cgroup=wanted.get("cgroup", "v2"),
        systemd=wanted.get("systemd", False),
        append=tuple(wanted.get("append", ())),
        rdt=wanted.get("rdt"),
        board=built_for,
        kernel=other,
        shares=wanted.get("shares", {}),
        disks={**disks, **(other.disks if other else {})},
    )
    return Machine(options, boot_timeout=wanted.get("boot_timeout", BOOT_TIMEOUT))


def _with_kernel(files: image.Image, other: kernels.Kernel, initramfs: pathlib.Path) -> image.Image:
    """The same disk with another kernel and its modules: a later archive's file is the one."""
    initramfs.write_bytes(files.initramfs.read_bytes() + kernel.newc(other.entries))
    return dataclasses.replace(files, kernel=other.vmlinux, initramfs=initramfs)


def _stdin(emulator: subprocess.Popen[bytes]) -> IO[bytes]:
    assert emulator.stdin is not None
    return emulator.stdin


def _read(path: pathlib.Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""


def _keep(console: str, name: str) -> pathlib.Path:
    """Writes a console into the cache, where the last ten stay."""
    folder = cache.folder() / "failed"
    folder.mkdir(exist_ok=True)
    path = folder / f"{time.strftime('%m%d-%H%M%S')}-{name}-{os.getpid()}.log"
    path.write_text(console)
    for old in sorted(folder.iterdir(), key=lambda file: file.stat().st_mtime)[:-10]:
        old.unlink(missing_ok=True)
    return path
