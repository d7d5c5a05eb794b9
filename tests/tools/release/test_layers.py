"""A layer depends on what is in its folder, and on nothing of the machine that packs it."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from pathlib import Path

from tools.release import layers

EPOCH = 1_700_000_000


def tree(folder: Path, names: list[str], mtime: int) -> Path:
    """Files, a link and a script, made in this order."""
    (folder / "sub").mkdir(parents=True)
    for name in names:
        (folder / name).write_text(name)
        os.utime(folder / name, (mtime, mtime))
    (folder / "link").symlink_to("sub/a")
    (folder / "b").chmod(0o755)
    return folder


def test_two_builds_are_one(tmp_path: Path) -> None:
    """Neither the order in which files were made nor their times count; their content does."""
    first = layers.layer(tree(tmp_path / "one", ["sub/a", "b", "c"], 1), EPOCH)
    second = layers.layer(tree(tmp_path / "two", ["c", "b", "sub/a"], 2), EPOCH)
    (tmp_path / "two/c").write_text("other")

    assert first == second
    assert layers.layer(tmp_path / "two", EPOCH).digest != first.digest
    assert layers.digest(gzip.decompress(first.data)) == first.diff_id


def test_root_owns_all_and_modes_stay(tmp_path: Path) -> None:
    """Parents come before what is in them; a link is a link, or where asked what it names."""
    source = tree(tmp_path / "one", ["sub/a", "b"], 1)
    with tarfile.open(fileobj=io.BytesIO(layers.archive(source, EPOCH))) as tar:
        entries = tar.getmembers()
    with tarfile.open(
        fileobj=io.BytesIO(layers.archive(source, EPOCH, below="x", follow=True))
    ) as tar:
        followed = {entry.name: entry for entry in tar.getmembers()}

    assert [entry.name for entry in entries] == ["b", "link", "sub", "sub/a"]
    assert {(e.uid, e.gid, e.uname, e.mtime) for e in entries} == {(0, 0, "", EPOCH)}
    assert (oct(entries[0].mode), entries[1].linkname) == ("0o755", "sub/a")
    assert followed["x/link"].isfile()
