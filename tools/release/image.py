"""The image of all programs, put together without a daemon and without root.

Covers: three layers (Debian, dependencies, koordlet), configuration, an archive in the layout of
OCI that also ``docker load`` takes. The same commit and packages give the same digest.
Does not cover: pushing it.
"""

from __future__ import annotations

import io
import json
import shutil
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tools.release import commands, debian, environment, layers, parts

PREFIX = "/opt/koordlet"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


def build(
    into: Path, wheel: Path, machine: str = environment.AMD64
) -> tuple[Path, list[parts.Part]]:
    """Write the archive; its path and what is in it beside koordlet."""
    epoch, version = commands.epoch(), environment.version()
    with tempfile.TemporaryDirectory() as work:
        base, program, own = (Path(work, name) for name in ("base", "program", "own"))
        base.mkdir()
        several = debian.build(base, machine)
        site = environment.build(program, PREFIX, wheel, machine)
        several += [part for part in parts.of_python(site) if part.name != "koordlet"]
        # koordlet changes with each release, what it runs with seldom: layers of their own.
        for path in sorted(site.glob("koordlet*")):
            target = own / path.relative_to(program)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(path, target)
        made = [layers.layer(tree, epoch) for tree in (base, program, own)]
    suffix = "" if machine == environment.AMD64 else f"-{machine}"
    archive = into / f"koordlet-{version}{suffix}.oci.tar"
    archive.write_bytes(_archive(made, version, epoch, machine))
    return archive, several


def digest(archive: Path) -> str:
    """What a registry will call the image."""
    with tarfile.open(archive) as tar:
        index = tar.extractfile("index.json")
        return str(json.loads(index.read())["manifests"][0]["digest"]) if index else ""


def _archive(made: Sequence[layers.Layer], version: str, epoch: int, machine: str) -> bytes:
    config = _bytes(_configuration(made, version, epoch, machine))
    manifest = _bytes(
        {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": _descriptor(_CONFIG, config),
            "layers": [_descriptor(_LAYER, layer.data) for layer in made],
        }
    )
    name = f"docker.io/library/koordlet:{version}"
    annotations = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": version}
    index = {
        "schemaVersion": 2,
        "manifests": [{**_descriptor(_MANIFEST, manifest), "annotations": annotations}],
    }
    blobs = {
        f"blobs/sha256/{layers.digest(data)[7:]}": data
        for data in (config, manifest, *(layer.data for layer in made))
    }
    files = {
        "oci-layout": _bytes({"imageLayoutVersion": "1.0.0"}),
        "index.json": _bytes(index),
        "manifest.json": _bytes(_docker(made, config, version)),
        **dict(sorted(blobs.items())),
    }
    return _tar(files, epoch)


def _configuration(
    made: Sequence[layers.Layer], version: str, epoch: int, machine: str
) -> dict[str, Any]:
    """As the Dockerfile has it; ``tests/tools/release`` compares."""
    created = datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    title = {"title": "koordlet", "version": version, "licenses": "Apache-2.0"}
    return {
        "architecture": machine,
        "os": "linux",
        "created": created,
        "config": {
            "Env": [f"PATH={PREFIX}/bin:/usr/bin", "PYTHONDONTWRITEBYTECODE=1"],
            "Entrypoint": [f"{PREFIX}/bin/python", "-P", "-m", "koordlet"],
            "Cmd": ["run"],
            "Labels": {f"org.opencontainers.image.{key}": value for key, value in title.items()},
        },
        "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in made]},
        "history": [{"created": created, "created_by": "tools.release.image"}] * len(made),
    }


def _docker(made: Sequence[layers.Layer], config: bytes, version: str) -> list[dict[str, Any]]:
    """What ``docker load`` reads."""
    paths = [f"blobs/sha256/{layer.digest[7:]}" for layer in made]
    where = f"blobs/sha256/{layers.digest(config)[7:]}"
    return [{"Config": where, "RepoTags": [f"koordlet:{version}"], "Layers": paths}]


def _descriptor(kind: str, data: bytes) -> dict[str, Any]:
    return {"mediaType": kind, "digest": layers.digest(data), "size": len(data)}


def _bytes(body: object) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()


def _tar(files: Mapping[str, bytes], epoch: int) -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = len(data), epoch
            tar.addfile(entry, io.BytesIO(data))
    return written.getvalue()
