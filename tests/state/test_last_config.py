"""The last good configuration on disk, and what is not taken for it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from koordlet.state import last_config


def test_what_was_kept_is_read(tmp_path: Path) -> None:
    """The newest text, letter by letter; none where nothing was kept, and an empty one is one."""
    where = tmp_path / "lib/last-config.yaml"
    assert last_config.load(where) is None
    for text in ("kind: Config\n# größe\n", "", "kind: Config\n"):
        last_config.keep(where, text)
        assert text == last_config.load(where)
    assert where.stat().st_mode & 0o777 == 0o600
    assert [where] == list(where.parent.iterdir()), "nothing else is left"


def test_what_is_kept_again_is_not_written(tmp_path: Path) -> None:
    """A start with the same file costs the disk nothing."""
    where = tmp_path / "last-config.yaml"
    last_config.keep(where, "kind: Config\n")
    before = where.stat().st_ino
    last_config.keep(where, "kind: Config\n")
    assert before == where.stat().st_ino


def test_what_somebody_else_may_have_written(tmp_path: Path) -> None:
    """A link, a pipe, a directory, another's file, one that others may write, a giant, no text."""
    where = tmp_path / "last-config.yaml"

    def refused(words: str) -> None:
        with pytest.raises(last_config.UntrustedError, match=words) as failed:
            last_config.load(where)
        assert str(where) in str(failed.value)
        where.rmdir() if where.is_dir() and not where.is_symlink() else where.unlink()

    (tmp_path / "other").write_text("kind: Config\n")
    where.symlink_to(tmp_path / "other")
    refused("symbolic links")
    os.mkfifo(where)
    refused("not a regular file")
    where.mkdir()
    refused("not a regular file")
    where.write_text("kind: Config\n")
    where.chmod(0o622)
    refused("others can write to it")
    where.write_bytes(b"a" * (last_config.MAX_BYTES + 1))
    refused("more than")
    where.write_bytes(b"\xff\xfe")
    refused("decode")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_another_user_s_file(tmp_path: Path) -> None:
    """It is not believed, whatever its mode."""
    where = tmp_path / "last-config.yaml"
    last_config.keep(where, "kind: Config\n")
    os.chown(where, 65534, 65534)
    with pytest.raises(last_config.UntrustedError, match="others can write to it"):
        last_config.load(where)
    last_config.keep(where, "kind: Config\n")
    assert last_config.load(where) == "kind: Config\n", "it is replaced by our own"
