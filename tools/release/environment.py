"""The program with its locked dependencies as a folder: what the image and the package both have.

Covers: a virtual environment beside Debian's Python 3.11, without what the program never loads,
with byte code, and equal byte for byte in two builds.
Does not cover: what it is packed into (``image``, ``package``).
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

from tools.release import commands

PYTHON = "3.11"
#: Debian's names of the machines; what wheels call each.
AMD64, ARM64 = "amd64", "arm64"
_WHEELS = {AMD64: "x86_64", ARM64: "aarch64"}
#: Debian 12 has glibc 2.36; wheels are made for 2.17 and later.
_GLIBC = (17, 37)
#: Below ``site-packages``, with the reason. Each is found by nobody who imports koordlet.
LEFT_OUT = {
    "numpy/**/tests": "its own tests",
    "numpy/_core/lib": "static libraries, to compile against it",
    "numpy/_core/include": "headers",
    "psutil/tests": "its own tests",
    "bin": "commands of the dependencies",
}
#: ``-P``: the folder of the script is no place to import from. No shell is needed.
_SCRIPT = """\
#!{prefix}/bin/python -P
import sys

from koordlet.__main__ import main

sys.exit(main())
"""


def build(into: Path, prefix: str, wheel: Path, machine: str = AMD64) -> Path:
    """Fill a folder as if it were ``/``; the folder of packages in it."""
    site = frame(into, prefix)
    _install(site, machine)
    _leave_out(site)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    compiled(site, f"{prefix}/lib/python{PYTHON}/site-packages")
    return site


def frame(into: Path, prefix: str) -> Path:
    """Everything but the packages: interpreter, command, the folder where packages go."""
    top = into / prefix.lstrip("/")
    site = top / f"lib/python{PYTHON}/site-packages"
    site.mkdir(parents=True)
    (top / "bin").mkdir()
    (top / "bin/python").symlink_to(os.path.relpath(f"/usr/bin/python{PYTHON}", f"{prefix}/bin"))
    script = top / "bin/koordlet"
    script.write_text(_SCRIPT.format(prefix=prefix))
    script.chmod(0o755)
    home = f"home = /usr/bin\ninclude-system-site-packages = false\nversion = {PYTHON}\n"
    (top / "pyvenv.cfg").write_text(home)
    return site


def _install(site: Path, machine: str) -> None:
    """Wheels of the lock file, each checked against its hash; nothing is compiled."""
    words = ("--no-deps", "--no-compile", "--require-hashes", "--only-binary=:all:")
    python = wheels(machine)
    lock = commands.REPO / "requirements.lock"
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    commands.run(*pip, *words, *python, f"--target={site}", "-r", lock)
    for path in site.rglob("*.so*"):
        path.chmod(0o644)
    # What pip writes about itself differs between two runs, and names this machine.
    for path in site.glob("*.dist-info/direct_url.json"):
        path.unlink()


def wheels(machine: str) -> list[str]:
    """Words for pip to take wheels of Debian 12's Python on a machine."""
    abis = (f"--abi={abi}" for abi in ("cp311", "abi3", "none"))
    glibc = (f"--platform=manylinux_2_{n}_{_WHEELS[machine]}" for n in range(*_GLIBC))
    return [f"--python-version={PYTHON}", "--implementation=cp", *abis, *glibc]


def _leave_out(site: Path) -> None:
    for pattern in LEFT_OUT:
        for folder in sorted(site.glob(pattern)):
            shutil.rmtree(folder)


def compiled(tree: Path, seen_as: str) -> None:
    """Byte code beside each module, taken without a look at the source.

    One process, in order, hashes fixed: the same source gives the same bytes.
    """
    words = ("-q", "-s", tree, "-p", seen_as, "--invalidation-mode", "unchecked-hash", "-j", "1")
    commands.run(
        _python(), "-I", "-m", "compileall", *words, tree, PYTHONHASHSEED="0", SOURCE_DATE_EPOCH=""
    )


def _python() -> str:
    """An interpreter of that version, which is the one that makes its byte code."""
    if sys.version_info[:2] == tuple(map(int, PYTHON.split("."))):
        return sys.executable
    return f"python{PYTHON}"


def walk(
    tree: Path, seen: Callable[[str, os.stat_result, Path], None], *, follow: bool = False
) -> None:
    """Every folder and file below a tree, parents first and in the same order everywhere."""
    for folder, names, files in os.walk(tree, followlinks=follow):
        names.sort()
        for name in sorted([*files, *names]):
            path = Path(folder, name)
            seen(str(path.relative_to(tree)), path.stat() if follow else path.lstat(), path)


def version() -> str:
    """Of koordlet, without importing it."""
    text = (commands.REPO / "koordlet/__init__.py").read_text()
    [number] = re.findall(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    return str(number)
