"""What is handed back is as it is in its file, and comes back when it is touched."""

from __future__ import annotations

import ctypes
import mmap
import re
import resource
from pathlib import Path

from koordlet.host.process import code_pages, libc

_PAGE = resource.getpagesize()
#: PROT_READ and PROT_EXEC of mprotect(2).
_READ_ONLY, _EXECUTED = 1, 5


def _resident(path: str) -> int:
    """Kilobytes of that file, and of nothing else, that are mapped."""
    text = Path("/proc/self/smaps").read_text()
    parts = re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", text, flags=re.MULTILINE)
    sizes = re.findall(r"^Rss: +(\d+)", "".join(p for p in parts if path in p), re.MULTILINE)
    return sum(map(int, sizes))


def _mapped(path: Path, written: bytes = b"", access: int = _EXECUTED) -> mmap.mmap:
    """A private mapping of the file, read once, which nobody may write to any more."""
    with path.open("r+b") as file:
        pages = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE)
    pages[: len(written)] = written
    assert pages[-1] == 0
    start = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    sizes = ctypes.c_size_t(start), ctypes.c_size_t(len(pages))
    libc.call("mprotect", *sizes, access, path=str(path))
    return pages


def _file(path: Path) -> Path:
    path.write_bytes(b"file content".ljust(8 * _PAGE, b"\0"))
    return path


def test_pages_that_a_file_has_are_handed_back_and_found_again(tmp_path: Path) -> None:
    """Nothing is resident of it until it is read again."""
    path = _file(tmp_path / "library")
    pages = _mapped(path)
    before = _resident(str(path))

    code_pages.release()

    assert (before > 0, _resident(str(path))) == (True, 0)
    assert pages[:12] == b"file content"


def test_a_mapping_with_a_page_of_our_own_stays_as_it_is(tmp_path: Path) -> None:
    """What was written to it is in no file."""
    path = _file(tmp_path / "library")
    pages = _mapped(path, b"ours")

    code_pages.release()

    assert pages[:12] == b"ours content"
    assert _resident(str(path)) > 0


def test_a_file_that_is_read_and_not_executed_stays_mapped(tmp_path: Path) -> None:
    """What is only read may be the loader's table of addresses."""
    path = _file(tmp_path / "cache")
    pages = _mapped(path, access=_READ_ONLY)

    code_pages.release()

    assert _resident(str(path)) > 0
    pages.close()


def test_only_code_of_a_file_is_a_span() -> None:
    """A library's data, the loader's cache, the heap, and what the kernel maps."""
    kinds = (
        "1000-3000 r-xp 00000000 08:01 7   /lib/a b.so",
        "3000-4000 r--p 00002000 08:01 7   /lib/a b.so",
        "4000-5000 rw-p 00003000 08:01 7   /lib/a b.so",
        "4000-5000 r--p 00003000 08:01 8   /etc/ld.so.cache",
        "5000-6000 r--s 00003000 08:01 7   /dev/shm/shared",
        "6000-7000 r--p 00000000 00:00 0 ",
        "7000-8000 r-xp 00000000 00:00 0   [vdso]",
    )

    assert code_pages.spans(_smaps(*kinds)) == [(0x1000, 0x3000)]


def test_a_page_of_our_own_may_be_in_swap() -> None:
    """It is no anonymous memory meanwhile, and in no file either."""
    library = "3000-4000 r-xp 00002000 08:01 7   /lib/a b.so"

    assert code_pages.spans(_smaps(library))
    assert not code_pages.spans(_smaps(library, swapped=4))
    assert not code_pages.spans(_smaps(library, anonymous=4))


def _smaps(*heads: str, anonymous: int = 0, swapped: int = 0) -> list[str]:
    sizes = (
        f"Anonymous: {anonymous:7} kB",
        f"Swap: {swapped:7} kB",
        "VmFlags: rd ex",
    )
    return [f"{line}\n" for head in heads for line in (head, *sizes)]
