"""The command line of the harness: ``python -m tests.vm --help`` teaches it."""

from __future__ import annotations

import argparse
import pathlib
import shutil
import sys
import time
from typing import IO

from tests.vm import board, cache, image, machine, packages, project, qemu, shape, tool

EXAMPLES = """\
examples:
  python -m tests.vm build
  python -m tests.vm run -- 'lscpu -e; cat /sys/fs/cgroup/cgroup.controllers'
  python -m tests.vm run --shape 4n16 --cgroup v1 --out results -- python3 -m koordlet --version
  python -m tests.vm run --systemd -- 'systemctl is-system-running; systemctl list-units'
  python -m tests.vm run --shape 2s8t --append isolcpus=2-3 -- cat /sys/devices/system/cpu/isolated

The command runs as root, in the repository's folder if that is carried in. One word is a text for
bash; several are a program and its arguments. Its output comes back on stdout and stderr, and its
exit status is that of this program. Beyond those, 125 says that the guest died, 124 that it took
too long, 123 that the host lacks something. What is built is kept in {cache}.
"""
DIED, TOO_LATE, LACKING = 125, 124, 123


def main() -> int:
    """Does what the arguments say; the exit status."""
    args = _parser().parse_args()
    try:
        match args.what:
            case "packages":
                print("\n".join(packages.HOST))
            case "shapes":
                for wanted in shape.SHAPES.values():
                    print(f"{wanted.name:8} {wanted.note}")
            case "build":
                image.image()
                project.disks()
            case "run":
                return _run(args)
    except machine.GuestTimeoutError as error:
        return _complain(error, TOO_LATE)
    except machine.GuestDiedError as error:
        return _complain(error, DIED)
    except (qemu.NotAvailableError, tool.ToolError, ValueError) as error:
        return _complain(error, LACKING)
    return 0


def _run(args: argparse.Namespace) -> int:
    """One command in one machine."""
    words: list[str] = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not words:
        raise ValueError("no command to run")
    wanted = machine.Wanted(
        cgroup=args.cgroup,
        systemd=args.systemd,
        append=args.append,
        shares=dict(_mount(text) for text in args.share),
        carry=not args.bare,
        boot_timeout=args.timeout,
    )
    if args.rdt:
        wanted["rdt"] = args.rdt
    if args.counting is not None:
        wanted["board"] = board.arm64(args.counting)
    if args.packages:
        wanted["packages"] = args.packages
    start = time.monotonic()
    with machine.boot(args.shape, **wanted) as guest:
        streams = _Streams()
        result = guest.run(
            words[0] if len(words) == 1 else words, timeout=args.timeout, follow=streams.follow
        )
        streams.follow(streams.folder)
        if args.out:
            shutil.copytree(guest.out, args.out, dirs_exist_ok=True)
        if args.console:
            args.console.write_text(guest.console)
        times = f"boot {guest.boot_seconds:.1f} s, command {result.seconds:.1f} s"
    cache.say(f"{times}, all {time.monotonic() - start:.1f} s, exit status {result.status}")
    return result.status


class _Streams:
    """Shows what the command prints while it prints it."""

    def __init__(self) -> None:
        self.folder = pathlib.Path()
        self._shown = {"stdout": 0, "stderr": 0}

    def follow(self, folder: pathlib.Path) -> None:
        self.folder = folder
        for name, stream in (("stdout", sys.stdout), ("stderr", sys.stderr)):
            self._copy(folder / name, name, stream.buffer)

    def _copy(self, path: pathlib.Path, name: str, stream: IO[bytes]) -> None:
        if path.exists() and path.stat().st_size > self._shown[name]:
            with path.open("rb") as file:
                file.seek(self._shown[name])
                self._shown[name] += stream.write(file.read())
            stream.flush()


def _mount(text: str) -> tuple[str, pathlib.Path]:
    point, equals, folder = text.partition("=")
    if not equals or not pathlib.Path(folder).is_dir():
        raise ValueError(f"--share {text}: must be MOUNTPOINT=FOLDER, with a folder that exists")
    return point, pathlib.Path(folder)


def _complain(error: Exception, status: int) -> int:
    cache.say(str(error))
    return status


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    epilog = EXAMPLES.format(cache="$XDG_CACHE_HOME/koordlet/vm")
    top = argparse.ArgumentParser(
        prog="python -m tests.vm",
        description="Boots Debian's kernel in QEMU with a chosen topology; runs a command there.",
        epilog=epilog,
        formatter_class=raw,
    )
    parts = top.add_subparsers(dest="what", required=True)
    parts.add_parser("packages", help="print the Debian packages that the host needs")
    parts.add_parser("shapes", help="list the machine shapes")
    parts.add_parser("build", help="build what is not in the cache: image, site-packages, disks")
    run = parts.add_parser("run", help="run a command", epilog=epilog, formatter_class=raw)
    add = run.add_argument
    add("--shape", default="2s8t", choices=shape.SHAPES, help="default: %(default)s")
    add("--cgroup", default="v2", choices=("v2", "v1", "hybrid"), help="default: %(default)s")
    add("--systemd", action="store_true", help="boot systemd; the command runs in a service")
    add("--append", action="append", default=[], metavar="WORD", help="kernel command line")
    add("--rdt", metavar="WISH", help=f"emulate resctrl: intel or amd (needs {qemu.RDT_FOLDER})")
    add("--counting", type=int, metavar="N", help="arm64: an instruction takes 2**N cycles")
    add("--share", action="append", default=[], metavar="MOUNTPOINT=FOLDER", help="read-only")
    add("--bare", action="store_true", help="leave the repository and its packages out")
    add("--packages", type=pathlib.Path, metavar="FOLDER", help="site-packages to carry in")
    add("--out", type=pathlib.Path, metavar="FOLDER", help="gets what is left in /run/vm/out")
    add("--console", type=pathlib.Path, metavar="FILE", help="gets what the kernel printed")
    limit = machine.COMMAND_TIMEOUT
    add("--timeout", type=float, default=limit, metavar="SECONDS", help="default: %(default).0f")
    add("command", nargs=argparse.REMAINDER, metavar="-- COMMAND")
    return top


if __name__ == "__main__":
    sys.exit(main())
