"""``python -m tools.release``: the parts of a release, into ``dist/``.

Covers: which parts there are, their checksums, the part of CHANGELOG.md that is about them.
Does not cover: publishing them.
"""

from __future__ import annotations

import argparse
import functools
import gzip
import re
import sys
from collections.abc import Callable
from pathlib import Path

from tools.release import commands, environment, image, layers, package, parts, sbom

PARTS = ("wheel", "chart", "deb", "image", "image-arm64", "notes")
#: Those that have parts of others, which are listed beside each.
_BUILDERS: dict[str, Callable[[Path, Path], tuple[Path, list[parts.Part]]]] = {
    "deb": package.build,
    "image": image.build,
    "image-arm64": functools.partial(image.build, machine=environment.ARM64),
}


def main(words: list[str]) -> int:
    """Build what is named, or everything."""
    parser = argparse.ArgumentParser(prog="tools.release", description="Build a release.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--into", type=Path, default=commands.REPO / "dist")
    args = parser.parse_args(words)
    if unknown := set(args.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    chosen = args.parts or PARTS
    args.into.mkdir(parents=True, exist_ok=True)
    try:
        for path in _build(chosen, args.into):
            sys.stdout.write(f"{path.stat().st_size / 1e6:8.1f} MB  {path.name}\n")
        if chosen == PARTS:
            _checksums(args.into)
    except commands.BuildError as error:
        sys.stderr.write(f"release: {error}\n")
        return 1
    return 0


def _build(chosen: tuple[str, ...] | list[str], into: Path) -> list[Path]:
    version, epoch, made = environment.version(), commands.epoch(), []
    wheel = into / f"koordlet-{version}-py3-none-any.whl"
    if {"wheel", *_BUILDERS} & set(chosen):
        # Also one that is there: by its name nobody sees of which commit it is.
        made += _wheel(into, version, epoch)
    if "chart" in chosen:
        made.append(_chart(into, version, epoch))
    for name, build in _BUILDERS.items():
        if name in chosen:
            path, several = build(into, wheel)
            made += [path, _listed(path, version, several, epoch)]
    if "notes" in chosen:
        made.append(into / f"koordlet-{version}.md")
        made[-1].write_text(notes((commands.REPO / "CHANGELOG.md").read_text(), version))
    return made


def _wheel(into: Path, version: str, epoch: int) -> list[Path]:
    for path in into.glob("koordlet-*.whl"):
        path.unlink()  # of another version: the documents install dist/koordlet-*.whl
    words = (sys.executable, "-m", "hatchling", "build", "-d", into.resolve())
    commands.run(*words, SOURCE_DATE_EPOCH=str(epoch))
    return [into / f"koordlet-{version}-py3-none-any.whl", into / f"koordlet-{version}.tar.gz"]


def _chart(into: Path, version: str, epoch: int) -> Path:
    """What ``helm package`` makes: the chart below its name, links as the files that they name."""
    path = into / f"koordlet-chart-{version}.tgz"
    plain = layers.archive(commands.REPO / "deploy/chart", epoch, below="koordlet", follow=True)
    path.write_bytes(gzip.compress(plain, mtime=0))
    return path


def _listed(path: Path, version: str, several: list[parts.Part], epoch: int) -> Path:
    listed = path.with_name(f"{path.name}.spdx.json")
    listed.write_text(sbom.text(path.name, version, commands.sha256(path), several, epoch))
    return listed


def notes(changelog: str, version: str) -> str:
    """The section of a version; before its release, the one that is not released yet."""
    sections = re.split(r"^## \[(.+?)\].*\n", changelog, flags=re.MULTILINE)[1:]
    bodies = dict(zip(sections[::2], sections[1::2], strict=True))
    body = bodies.get(version) or bodies.get("Unreleased")
    if body is None:
        raise commands.BuildError(f"CHANGELOG.md has no section of {version}")
    return f"# koordlet {version}\n\n{body.strip()}\n"


def _checksums(into: Path) -> None:
    names = sorted(path for path in into.iterdir() if path.is_file() and path.name != "SHA256SUMS")
    text = "".join(f"{commands.sha256(path)}  {path.name}\n" for path in names)
    (into / "SHA256SUMS").write_text(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
