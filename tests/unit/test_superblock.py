"""Superblocks as mkfs really writes them, and superblocks that lie."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agent.core.layers.superblock import (
    HEAD_BYTES,
    MAX_HEAD_BYTES,
    Superblock,
    SuperblockError,
    read_superblock,
)
from agent.core.units import GIB, KIB, MIB

SBIN = "/usr/sbin:/sbin"
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - a name with the process id, removed by the fixture
TIB = 1024 * GIB

needs_ext = pytest.mark.skipif(
    shutil.which("mkfs.ext4", path=SBIN) is None, reason="e2fsprogs is not installed"
)
needs_xfs = pytest.mark.skipif(
    shutil.which("mkfs.xfs", path=SBIN) is None, reason="xfsprogs is not installed"
)


def run(program: str, *arguments: str, code: int | None = 0) -> str:
    path = shutil.which(program, path=SBIN)
    assert path is not None
    done = subprocess.run([path, *arguments], capture_output=True, text=True, check=False)
    assert code is None or done.returncode == code, done.stderr
    return done.stdout


@pytest.fixture
def image(tmp_path: Path) -> Iterator[Path]:
    """A file to make a filesystem on; in memory, where sparse files may be larger than ext4 allows."""
    directory = tmp_path
    if SHARED_MEMORY.is_dir():
        room = os.statvfs(SHARED_MEMORY)
        # The largest images hold a few hundred MiB; containers often get 64 MiB.
        directory = SHARED_MEMORY if room.f_bavail * room.f_frsize > GIB else tmp_path
    file = directory / f"agent-superblock-{os.getpid()}"
    file.touch()
    yield file
    file.unlink()


def resize(image: Path, size_bytes: int) -> None:
    try:
        os.truncate(image, size_bytes)
    except OSError as error:
        pytest.skip(f"no sparse file of {size_bytes} bytes here: {error.strerror}")


def head_of(image: Path) -> bytes:
    with image.open("rb") as file:
        return file.read(HEAD_BYTES)


def superblock_of(image: Path) -> Superblock:
    superblock = read_superblock(head_of(image))
    assert superblock is not None
    return superblock


@needs_ext
@pytest.mark.parametrize(
    ("kind", "size_bytes", "options", "block_bytes", "block_count"),
    [
        ("ext4", 64 * MIB, ["-b", "1024"], 1024, 65536),
        ("ext4", 64 * MIB, ["-b", "2048"], 2048, 32768),
        ("ext4", 64 * MIB, ["-b", "4096"], 4096, 16384),
        ("ext4", 512 * MIB, ["-b", "16384"], 16384, 32768),
        ("ext4", 2 * GIB, ["-b", "65536"], 65536, 32768),
        ("ext4", 64 * MIB, ["-b", "4096", "-E", "lazy_itable_init=0"], 4096, 16384),
        ("ext4", 1 * GIB, ["-O", "bigalloc", "-C", "65536"], 4096, 262144),
        ("ext4", 1 * GIB, ["-O", "bigalloc", "-C", "1048576"], 4096, 262144),
        ("ext4", 64 * MIB, ["-O", "^64bit,^metadata_csum"], 1024, 65536),
        ("ext4", 64 * MIB, ["-O", "^has_journal"], 1024, 65536),
        ("ext3", 64 * MIB, ["-b", "4096"], 4096, 16384),
        ("ext2", 64 * MIB, ["-b", "4096"], 4096, 16384),
        ("ext2", 1 * MIB, ["-r", "0"], 1024, 1024),
        ("ext4", 17 * TIB, ["-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard", "-J", "size=8"],
         4096, 4563402752),
        ("ext4", 17 * TIB, ["-b", "65536", "-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard"],
         65536, 285212672),
    ],
)  # fmt: skip
def test_ext_as_mkfs_makes_it(
    image: Path, kind: str, size_bytes: int, options: list[str], block_bytes: int, block_count: int
) -> None:
    resize(image, size_bytes)
    run(f"mkfs.{kind}", "-q", "-F", *options, str(image))
    superblock = superblock_of(image)
    assert (superblock.type, superblock.block_bytes, superblock.block_count) == (
        kind,
        block_bytes,
        block_count,
    )
    assert superblock.size_bytes == size_bytes
    assert superblock.reachable_bytes(size_bytes) == size_bytes
    assert superblock.reachable_bytes(size_bytes + 256 * MIB) > size_bytes


def ext_head(*, blocks: int, log_block: int = 2) -> bytes:
    """An ext4 superblock by hand, with the 64-bit feature."""
    head = bytearray(HEAD_BYTES)

    def put(offset: int, value: int, length: int = 4) -> None:
        head[1024 + offset : 1024 + offset + length] = value.to_bytes(length, "little")

    put(0x4, blocks & 0xFFFFFFFF)
    put(0x150, blocks >> 32)
    put(0x18, log_block)
    put(0x1C, log_block)
    put(0x20, 32768)
    put(0x28, 8192)
    put(0x38, 0xEF53, 2)
    put(0x4C, 1)
    put(0x58, 256, 2)
    put(0x60, 0x80 | 0x40)
    put(0xFE, 64, 2)
    return bytes(head)


@needs_ext
@pytest.mark.parametrize(
    ("old_bytes", "new_bytes", "options"),
    [
        (64 * MIB, 96 * MIB, ["-b", "1024"]),
        (256 * MIB, 260 * MIB, ["-b", "4096"]),
        (256 * MIB, 288 * MIB, ["-b", "4096"]),
        (128 * MIB, 129 * MIB, ["-b", "4096"]),  # the second group would be too small: it is left out
        (128 * MIB, 128 * MIB + 40 * KIB, ["-b", "4096"]),
        (64 * MIB, 64 * MIB + 3 * KIB, ["-b", "1024"]),
        (256 * MIB, 268390400, ["-b", "1024"]),  # below DRBD with its metadata at the end
        (1 * GIB, 1 * GIB + 32 * MIB, ["-O", "bigalloc", "-C", "65536"]),
    ],
)
def test_ext_is_full_grown_exactly_when_resize2fs_says_so(
    image: Path, old_bytes: int, new_bytes: int, options: list[str]
) -> None:
    resize(image, old_bytes)
    run("mkfs.ext4", "-q", "-F", *options, str(image))
    small = superblock_of(image)
    resize(image, new_bytes)
    run("e2fsck", "-fy", str(image), code=None)
    run("resize2fs", "-f", str(image))
    grown = superblock_of(image)
    assert grown.size_bytes >= grown.reachable_bytes(new_bytes)
    is_finished_before = small.size_bytes >= small.reachable_bytes(new_bytes)
    assert is_finished_before is (grown.size_bytes - small.size_bytes < 64 * KIB)


@needs_xfs
@pytest.mark.parametrize(
    ("size_bytes", "options", "block_bytes", "block_count"),
    [
        (512 * MIB, [], 4096, 131072),
        (512 * MIB, ["-b", "size=1024"], 1024, 524288),
        (512 * MIB, ["-b", "size=512", "-m", "crc=0"], 512, 1048576),
        (2 * GIB, ["-b", "size=65536"], 65536, 32768),
        (512 * MIB, ["-s", "size=4096"], 4096, 131072),
        (512 * MIB, ["-s", "size=512"], 4096, 131072),
    ],
)
def test_xfs_as_mkfs_makes_it(
    image: Path, size_bytes: int, options: list[str], block_bytes: int, block_count: int
) -> None:
    resize(image, size_bytes)
    run("mkfs.xfs", "-q", *options, str(image))
    superblock = superblock_of(image)
    assert (superblock.type, superblock.block_bytes, superblock.block_count) == (
        "xfs",
        block_bytes,
        block_count,
    )
    assert superblock.log_blocks > 0
    assert superblock.reachable_bytes(size_bytes) == size_bytes
    assert superblock.reachable_bytes(size_bytes + size_bytes // 4) > size_bytes


@needs_xfs
def test_xfs_of_20_tib(image: Path) -> None:
    """20 groups, each one block short of 1 TiB; the 20 blocks that remain are too few for another."""
    resize(image, 20 * TIB)
    run("mkfs.xfs", "-q", "-l", "size=64m", str(image))
    superblock = superblock_of(image)
    assert (superblock.block_count, superblock.group_blocks) == (5368709100, 268435455)
    assert superblock.reachable_bytes(20 * TIB) == 5368709100 * 4096


@needs_xfs
def test_xfs_leaves_an_end_too_small_for_a_group_unused(image: Path) -> None:
    """Four groups of 128 MiB and 8 MiB more: mkfs.xfs itself drops the 8 MiB, so nothing was forgotten."""
    resize(image, 520 * MIB)
    run("mkfs.xfs", "-q", "-d", "agsize=128m", str(image))
    superblock = superblock_of(image)
    assert superblock.size_bytes == 512 * MIB
    assert superblock.reachable_bytes(520 * MIB) == 512 * MIB
    assert superblock.reachable_bytes(544 * MIB) == 544 * MIB


@needs_ext
def test_journal_that_was_not_replayed_does_not_matter(image: Path) -> None:
    resize(image, 64 * MIB)
    run("mkfs.ext4", "-q", "-F", "-b", "4096", str(image))
    run("debugfs", "-w", "-R", "feature needs_recovery", str(image))
    assert (superblock_of(image).type, superblock_of(image).block_count) == ("ext4", 16384)


@needs_ext
def test_external_journal_is_no_filesystem(image: Path) -> None:
    resize(image, 64 * MIB)
    run("mke2fs", "-q", "-F", "-b", "4096", "-O", "journal_dev", str(image))
    assert read_superblock(head_of(image)) is None


@pytest.mark.parametrize(
    "head", [b"", b"\0" * HEAD_BYTES, b"\xff" * HEAD_BYTES, b"LUKS\xba\xbe" + b"\0" * 4096]
)
def test_something_else_is_nothing(head: bytes) -> None:
    assert read_superblock(head) is None


@pytest.mark.parametrize("length", [1024 + 0x3A, 1500, 2047])
def test_ext_cut_short(length: int) -> None:
    with pytest.raises(SuperblockError, match=f"only {length} bytes"):
        read_superblock(ext_head(blocks=16384)[:length])


@pytest.mark.parametrize("length", [4, 100, 127])
def test_xfs_cut_short(length: int) -> None:
    with pytest.raises(SuperblockError, match=f"only {length} bytes"):
        read_superblock((b"XFSB" + b"\0" * 200)[:length])


@pytest.mark.parametrize(
    ("offset", "length", "value", "what"),
    [
        (0x18, 4, 7, "block size"),
        (0x18, 4, 0xFFFFFFFF, "block size"),
        (0x4, 8, 0, "block count"),
        (0x150, 4, 0xFFFFFFFF, "block count"),
        (0x14, 4, 2, "first block"),
        (0x20, 4, 0, "blocks per group"),
        (0x20, 4, 32769, "blocks per group"),
        (0x28, 4, 0, "inodes per group"),
        (0x58, 2, 127, "inode size"),
    ],
)
def test_ext_fields_that_lie(offset: int, length: int, value: int, what: str) -> None:
    head = bytearray(ext_head(blocks=16384))
    head[1024 + offset : 1024 + offset + length] = value.to_bytes(length, "little")
    with pytest.raises(SuperblockError, match=what):
        read_superblock(bytes(head))


def check_sane(head: bytes) -> None:
    """Whatever the bytes: nothing known, a named mistake, or a size that a device can have."""
    try:
        superblock = read_superblock(head)
    except SuperblockError:
        return
    if superblock is None:
        return
    assert 0 < superblock.size_bytes < 2**63
    assert 512 <= superblock.block_bytes <= 64 * KIB
    for device_bytes in (0, superblock.size_bytes, 2**63 - 1):
        assert 0 <= superblock.reachable_bytes(device_bytes) <= device_bytes
    assert read_superblock(head[:MAX_HEAD_BYTES] + b"\xff" * 4096) == superblock or len(head) < MAX_HEAD_BYTES


def xfs_head() -> bytes:
    head = bytearray(HEAD_BYTES)
    head[:16] = b"XFSB" + (4096).to_bytes(4, "big") + (131072).to_bytes(8, "big")
    head[48:56] = (65540).to_bytes(8, "big")
    head[84:100] = b"".join(value.to_bytes(4, "big") for value in (32768, 4, 0, 16384))
    head[120] = 12
    return bytes(head)


def test_the_hand_made_heads_are_good_ones() -> None:
    assert read_superblock(xfs_head()) == Superblock(
        type="xfs",
        block_bytes=4096,
        block_count=131072,
        group_blocks=32768,
        tail_blocks=4096,
        log_blocks=16384,
    )
    assert read_superblock(ext_head(blocks=16384)) is not None


INTERESTING_PLACES = (
    [*range(4, 24), *range(48, 56), *range(84, 128)]
    + [
        1024 + offset
        for start in (0x4, 0x14, 0x18, 0x1C, 0x20, 0x28, 0x60, 0xFC, 0x150)
        for offset in range(start, start + 4)
    ]
    + [1024 + offset for offset in (0x4C, 0x58, 0x59, 0xCE, 0xCF, 0x5C, 0x64)]
)
FUZZ = settings(max_examples=10_000, deadline=None, suppress_health_check=list(HealthCheck), database=None)


@FUZZ
@given(st.booleans(), st.binary(max_size=24))
@example(is_xfs=False, changes=b"")
def test_fuzzed_fields(is_xfs: bool, changes: bytes) -> None:  # noqa: FBT001
    """Good heads with some of the bytes that matter replaced: pairs of a place and a value."""
    changed = bytearray(xfs_head() if is_xfs else ext_head(blocks=16384))
    for place, value in zip(changes[::2], changes[1::2], strict=False):
        changed[INTERESTING_PLACES[place % len(INTERESTING_PLACES)]] = value
    check_sane(bytes(changed))


@FUZZ
@given(
    st.sampled_from([b"", b"XFSB", b"\0" * 1024 + b"\xff" * 0x38 + b"\x53\xef", b"\0" * 1080 + b"\x53\xef"]),
    st.binary(max_size=1200),
)
def test_fuzzed_bytes(beginning: bytes, rest: bytes) -> None:
    check_sane(beginning + rest)


def test_nothing_beyond_the_head_is_looked_at() -> None:
    class Watched(bytes):
        """Bytes that know how far they were read."""

        def __getitem__(self, key: object) -> object:  # type: ignore[override]  # int and slice at once
            assert isinstance(key, slice)
            assert key.stop <= MAX_HEAD_BYTES
            return super().__getitem__(key)

    assert read_superblock(Watched(ext_head(blocks=16384) + b"\0" * 2 * MAX_HEAD_BYTES)) is not None
