"""The project and its Python dependencies as read-only disks of the guest.

Covers: installing what the lock file names, and packing that and the repository into disk images,
each with byte code, each built once for its content.
Does not cover: mounting them (``guest/stage1.sh``).

Why disks: imports over a shared folder cost a round trip to the host for every look at a file.
"""

from __future__ import annotations

import functools
import pathlib
import shutil
import sys
from collections.abc import Iterator, Sequence

from tests.vm import board, cache, image, root, tool
from tools.release import environment

REPO = pathlib.Path(__file__).resolve().parents[2]
LOCK = REPO / "requirements.lock"


def disks(
    packages: pathlib.Path | None = None, wanted: board.Board = board.X86
) -> dict[str, pathlib.Path]:
    """The disks by mount point: the repository, and the packages it needs.

    Without a folder of packages the lock file's are taken, and none if there is no lock file yet.
    """
    if packages is None and LOCK.exists():
        packages = site(wanted)
    disks = {root.REPO: repo_disk()}
    if packages is not None:
        disks[root.SITE] = site_disk(packages)
    return disks


def site(wanted: board.Board = board.X86, lock: pathlib.Path = LOCK) -> pathlib.Path:
    """A folder with the packages of a lock file, for the guest's CPython 3.11 on that board."""
    words = environment.wheels(wanted.machine)
    key = cache.digest(lock.read_bytes(), *words)
    return cache.once("site", key, functools.partial(_install, lock, words))


def site_disk(packages: pathlib.Path) -> pathlib.Path:
    """The disk of a folder of packages; sizes and times tell whether one was packed before."""
    files = sorted(path for path in packages.rglob("*") if path.is_file())
    stats = (f"{path}:{(s := path.stat()).st_size}:{s.st_mtime_ns}" for path in files)
    return _disk("packages", cache.digest(*stats), root.SITE, packages, files)


def repo_disk(repo: pathlib.Path = REPO) -> pathlib.Path:
    """The disk of the repository as it is now: tracked and new files, without ignored ones."""
    files = [path for path in _listed(repo) if path.is_file() and not path.is_symlink()]
    names = (str(path.relative_to(repo)) for path in files)
    parts = (part for pair in zip(names, files, strict=True) for part in pair)
    return _disk("repo", cache.digest(*parts), root.REPO, repo, files)


def _disk(
    kind: str, key: str, seen_as: str, base: pathlib.Path, files: Sequence[pathlib.Path]
) -> pathlib.Path:
    def make(into: pathlib.Path) -> None:
        tree = into / "tree"
        tree.mkdir()
        for path in files:
            copy = tree / path.relative_to(base)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
        root.compile_python(tree, seen_as)
        used = sum(path.stat().st_size + 8192 for path in tree.rglob("*"))
        image.make_disk(tree, into / "disk.img", f"{used * 11 // 10 // 2**20 + 8}M")
        shutil.rmtree(tree)

    return cache.once(kind, key, make) / "disk.img"


def _install(lock: pathlib.Path, words: Sequence[str], into: pathlib.Path) -> None:
    """Fills the folder; pip checks each package's hash. Wheels only: nothing is compiled."""
    for python in dict.fromkeys(
        (sys.executable, "/usr/bin/python3.11", shutil.which("python3.11"))
    ):
        if python and _has_pip(python):
            break
    else:
        raise tool.ToolError("no python3.11 with pip to install the packages of the lock file")
    tool.run(
        [
            *(python, "-m", "pip", "install", "-q", "--no-compile", "--target", str(into)),
            *("--require-hashes", "--only-binary=:all:", *words, "-r", str(lock)),
        ]
    )


def _has_pip(python: str) -> bool:
    try:
        tool.run([python, "-m", "pip", "--version"])
    except tool.ToolError:
        return False
    return True


def _listed(repo: pathlib.Path) -> Iterator[pathlib.Path]:
    """The repository's files by git; without git, all outside of hidden folders and byte code."""
    try:
        command = ["git", "-C", str(repo), "ls-files", "-z", "-c", "-o", "--exclude-standard"]
        names = sorted(set(tool.run(command).split("\0")) - {""})
        yield from (repo / name for name in names)
    except tool.ToolError:
        for path in sorted(repo.rglob("*")):
            parts = path.relative_to(repo).parts
            if "__pycache__" not in parts and not any(part.startswith(".") for part in parts):
                yield path
