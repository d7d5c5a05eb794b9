"""What is built for a machine, as far as that can be seen without booting one."""

from __future__ import annotations

import lzma
import multiprocessing
import pathlib
import shutil
import stat
import struct
import subprocess
import sys

import pytest

from tests.vm import board, cache, image, kernel, kernels, packages, qemu, shape, tool


@pytest.fixture
def empty_cache(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A cache folder of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return cache.folder()


def _make(into: pathlib.Path) -> None:
    (into / "file").write_text("built")
    with (cache.folder() / "builds").open("a") as log:
        log.write("once\n")


def _fail(into: pathlib.Path) -> None:
    (into / "half").touch()
    raise OSError("disk full")


def test_two_processes_build_once(empty_cache: pathlib.Path) -> None:
    """Whoever comes second takes what the first has built."""
    context = multiprocessing.get_context("fork")
    both = [context.Process(target=cache.once, args=("kind", "key", _make)) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join(60)

    assert [process.exitcode for process in both] == [0, 0]
    assert (empty_cache / "kind-key" / "file").read_text() == "built"
    assert (empty_cache / "builds").read_text() == "once\n"


def test_a_failed_build_leaves_nothing(empty_cache: pathlib.Path) -> None:
    """Nothing half-built is taken for the real thing, now or later."""
    with pytest.raises(OSError, match="disk full"):
        cache.once("kind", "key", _fail)

    assert [path.name for path in empty_cache.iterdir()] == ["kind.lock"]
    assert (cache.once("kind", "key", _make) / "file").exists()


def test_the_cache_forgets_what_is_old(empty_cache: pathlib.Path) -> None:
    """A few of each kind stay, those used last."""
    for number in range(cache.KEPT + 2):
        cache.once("kind", str(number), _make)

    assert len(list(empty_cache.glob("kind-*"))) == cache.KEPT
    assert (empty_cache / f"kind-{cache.KEPT + 1}").exists()


def test_digest_tells_content_and_borders_apart(tmp_path: pathlib.Path) -> None:
    """Another content or another split into parts is another name."""
    file = tmp_path / "file"
    file.write_text("one")
    before = cache.digest(file)
    file.write_text("two")

    assert before != cache.digest(file)
    assert cache.digest("ab", "c") != cache.digest("a", "bc")


def test_vmlinux_is_unpacked() -> None:
    """The kernel is found where the boot sector says, whatever lies around it."""
    payload = lzma.compress(b"\x7fELF kernel", lzma.FORMAT_XZ) + struct.pack("<I", 11)
    image = bytearray(4 * kernel.SECTOR)
    image[kernel.SETUP_SECTS] = 2
    struct.pack_into("<II", image, kernel.PAYLOAD_OFFSET, 100, len(payload))
    start = 3 * kernel.SECTOR + 100

    assert kernel.vmlinux(bytes(image[:start]) + payload + b"rest") == b"\x7fELF kernel"


def test_a_kernel_of_arm64_is_taken_as_it_is() -> None:
    """It is packed in nothing."""
    plain = bytes(0x38) + b"ARMd" + b"kernel"
    assert kernel.bootable(plain) == plain


@pytest.mark.skipif(shutil.which("zstd") is None, reason="zstd is not installed")
def test_vmlinux_of_newer_kernels_is_unpacked() -> None:
    """They are packed with another program."""
    packed = tool.filter_through(["zstd", "-q"], b"\x7fELF kernel") + struct.pack("<I", 11)
    image = bytearray(4 * kernel.SECTOR)
    image[kernel.SETUP_SECTS] = 2
    struct.pack_into("<II", image, kernel.PAYLOAD_OFFSET, 100, len(packed))

    assert kernel.vmlinux(bytes(image[: 3 * kernel.SECTOR + 100]) + packed) == b"\x7fELF kernel"


def test_packed_modules_are_unpacked(tmp_path: pathlib.Path) -> None:
    """The first program of a machine loads plain files, in order."""
    names = ("mbcache", "ext4")
    (tmp_path / "modules.dep").write_text("ext4.ko.xz: mbcache.ko.xz\nmbcache.ko.xz:\n")
    for name in names:
        (tmp_path / f"{name}.ko.xz").write_bytes(lzma.compress(name.encode()))
    entries = kernel.module_entries(tmp_path)

    assert {f"modules/{name}.ko": name.encode() for name in names} == {
        path: entry.content for path, entry in entries.items() if path.endswith(".ko")
    }
    assert entries["modules/order"].content == b"/modules/mbcache.ko\n/modules/ext4.ko\n"


def test_which_kernel_a_machine_has(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The image's own, unless the variable or the caller names another; the caller has it first."""
    monkeypatch.delenv(kernels.VARIABLE, raising=False)
    assert kernels.chosen() is None
    assert kernels.chosen("bookworm") is None
    monkeypatch.setenv(kernels.VARIABLE, str(tmp_path / "vmlinux"))
    named = kernels.chosen()

    assert named is not None
    assert (tmp_path / "vmlinux", {}) == (named.vmlinux, named.disks)
    assert named.entries["modules/order"].content == b""
    assert kernels.chosen("bookworm") is None
    other = kernels.chosen(built=tmp_path / "other")
    assert other is not None
    assert tmp_path / "other" == other.vmlinux


def test_the_parts_of_a_kernel() -> None:
    """Newer packages are in several parts, which name each other; what else they need stays out."""
    needs = {
        "linux-image-amd64/sid": ("linux-base-amd64", "linux-image-7.3-amd64"),
        "linux-image-7.3-amd64/sid": ("dracut", "linux-modules-7.3-amd64", "linux-base-7.3"),
        "linux-modules-7.3-amd64/sid": ("kmod", "linux-base-7.3"),
    }
    parts = kernels.parts(lambda name: needs.get(name, ()), "sid")

    assert parts == {"linux-image-7.3-amd64", "linux-modules-7.3-amd64", "linux-base-7.3"}


def test_modules_load_after_what_they_need(tmp_path: pathlib.Path) -> None:
    """Needs come first, each module once, and one that is built in is left out."""
    dep = "a.ko: c.ko b.ko\nb.ko:\nc.ko: b.ko\nd-e.ko: b.ko\n"
    (tmp_path / "modules.dep").write_text(dep)
    order = kernel.load_order(tmp_path, ["a", "builtin", "d_e"])

    assert [path.name for path in order] == ["b.ko", "c.ko", "a.ko", "d-e.ko"]


def test_newc_is_what_the_kernel_reads() -> None:
    """Each header has the magic, names and contents start at multiples of four."""
    archive = kernel.newc(
        {
            "dir/file": kernel.Entry(stat.S_IFREG | 0o644, b"12345"),
            "dir": kernel.Entry(stat.S_IFDIR | 0o755),
        }
    )
    at, seen = 0, []
    while at < len(archive):
        assert archive[at : at + 6] == b"070701"
        fields = [int(archive[i : i + 8], 16) for i in range(at + 6, at + 110, 8)]
        end = at + 110 + fields[11]
        name = archive[at + 110 : end - 1].decode()
        start = -end % 4 + end
        seen.append((name, oct(fields[1]), archive[start : start + fields[6]]))
        at = start + fields[6]
        at += -at % 4

    expected = [("dir", "0o40755", b""), ("dir/file", "0o100644", b"12345")]
    assert [*expected, ("TRAILER!!!", "0o0", b"")] == seen


@pytest.mark.parametrize("preset", shape.SHAPES.values(), ids=lambda preset: preset.name)
def test_shapes_are_consistent(preset: shape.Shape) -> None:
    """Each CPU has one node, distances are square and symmetric with 10 to oneself."""
    owned = sorted(cpu for node in preset.nodes for cpu in node.cpus)

    assert list(preset.possible_cpus) == owned
    assert len(preset.online_cpus) <= len(preset.present_cpus) <= len(preset.possible_cpus)
    nodes = range(len(preset.nodes))
    for here in nodes:
        assert preset.distance(here, here) == shape.LOCAL
        assert all(preset.distance(here, there) == preset.distance(there, here) for there in nodes)


def test_unknown_shape_names_the_known() -> None:
    """A typing error is answered with the list."""
    with pytest.raises(ValueError, match="1s2c, 2s8t, 4n16"):
        shape.named("2s9t")


def test_command_line_has_what_was_wished() -> None:
    """The cgroup version, the shape's offline CPUs, mounts and the caller's words."""
    options = qemu.Options(
        shape.SHAPES["offline"],
        cgroup="v1",
        systemd=True,
        append=("isolcpus=2",),
        shares={"/mnt": pathlib.Path("/tmp")},
        disks={"/srv": pathlib.Path("/x")},
    )
    words = qemu.command_line(options).split()

    assert words[-1] == "isolcpus=2"
    for word in ("maxcpus=10", "vm.mount=ext4,/dev/vdb,/srv", "vm.mount=9p,share0,/mnt"):
        assert word in words
    assert "systemd.legacy_systemd_cgroup_controller=1" in words


def test_a_board_brings_its_own_processor_and_console() -> None:
    """No word of the other one's; a machine that counts says how much an instruction takes."""
    options = qemu.Options(shape.SHAPES["1s1c"], board=board.arm64(4))
    files = image.Image(*(pathlib.Path(name) for name in ("kernel", "initramfs", "disk")))
    words = qemu.arguments(options, files, pathlib.Path("/run"))

    assert (words.count("-cpu"), words[words.index("-icount") + 1]) == (1, "shift=4,sleep=off")
    assert "console=ttyAMA0" in words[words.index("-append") + 1].split()
    of_pc = qemu.arguments(qemu.Options(shape.SHAPES["1s1c"]), files, pathlib.Path("/run"))
    assert (of_pc.count("-cpu"), "-icount" in of_pc) == (1, False)
    assert "console=ttyS0" in of_pc[of_pc.index("-append") + 1].split()


def test_the_emulator_of_a_board_is_named_with_its_package(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The harness's own packages have the one of a PC alone."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(qemu.NotAvailableError, match=r"install .*qemu-system-arm$"):
        qemu.emulator(None, board.arm64(4))
    with pytest.raises(qemu.NotAvailableError, match=r"tests\.vm packages\)$"):
        qemu.emulator(None, board.X86)


def test_packages_are_printed() -> None:
    """``packages`` prints one name a line, with nothing installed but Python."""
    command = [sys.executable, "-S", "-m", "tests.vm", "packages"]  # -S: no installed packages
    repo = pathlib.Path(__file__).parents[2]
    done = subprocess.run(command, cwd=repo, capture_output=True, text=True, check=True)

    assert list(packages.HOST) == done.stdout.split()
