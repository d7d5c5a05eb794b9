"""The one image there is: busybox and nothing else, pause and workload alike.

Covers: an archive in the OCI layout, as ``ctr images import`` takes it. Does not cover: importing.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

#: "localhost" keeps the runtime from asking anybody else for it.
NAME = "localhost/koordlet-test:1"
#: What runs where a container names no command: longer than any test.
SLEEP = ("/bin/busybox", "sleep", "86400")
_INDEX = "application/vnd.oci.image.index.v1+json"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar"


def write(busybox: Path, into: Path) -> None:
    """Make the archive."""
    layer = _tar({"bin/busybox": busybox.read_bytes()}, mode=0o755)
    blobs: dict[str, bytes] = {}

    def blob(kind: str, data: bytes) -> dict[str, object]:
        digest = hashlib.sha256(data).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = data
        return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(data)}

    first = blob(_LAYER, layer)
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Cmd": list(SLEEP)},
        "rootfs": {"type": "layers", "diff_ids": [first["digest"]]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": blob(_CONFIG, _json(config)),
        "layers": [first],
    }
    listed = blob(_MANIFEST, _json(manifest))
    named = {**listed, "annotations": {"io.containerd.image.name": NAME}}
    index = {"schemaVersion": 2, "mediaType": _INDEX, "manifests": [named]}
    files = {
        **blobs,
        "oci-layout": _json({"imageLayoutVersion": "1.0.0"}),
        "index.json": _json(index),
    }
    into.write_bytes(_tar(files, mode=0o644))


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


def _tar(files: dict[str, bytes], *, mode: int) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), mode
            archive.addfile(entry, io.BytesIO(data))
    return out.getvalue()
