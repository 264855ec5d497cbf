"""Sizes of ext2/3/4 and XFS filesystems from the first bytes of their device: exact, and read-only.

The bytes may say anything: every number is checked against the format's own limits before it is
believed.  Layouts: the kernel's fs/ext4/ext4.h and fs/xfs/libxfs/xfs_format.h.  Pure.  Not here:
reading devices (`agent.host.prober`), other filesystems (their sizes come from statvfs).
"""

import struct
from typing import Final

import msgspec

from agent.core.units import MAX_BYTES, MIB

HEAD_BYTES: Final = 4096
"""What is read of a device.  Both superblocks lie within the first 2048 bytes."""

MAX_HEAD_BYTES: Final = 128 * 1024
"""Nothing beyond this is ever looked at, whatever is passed in."""


class SuperblockError(ValueError):
    """The magic number is there, but the rest can't be: damaged, or not what it looks like."""


class Superblock(msgspec.Struct, frozen=True, kw_only=True):
    """What a superblock says, in blocks of `block_bytes`."""

    type: str
    """ext2, ext3, ext4 or xfs."""
    block_bytes: int
    block_count: int
    """The whole filesystem with its overhead: what must be compared with the device."""
    group_blocks: int
    """Blocks of one block group (ext) or allocation group (xfs)."""
    first_block: int = 0
    """ext with 1 KiB blocks starts counting at 1."""
    step_blocks: int = 1
    """Sizes are multiples of this: ext4's clusters (bigalloc)."""
    tail_blocks: int = 0
    """A last group smaller than this is left unused by resize2fs or mkfs.xfs."""
    log_blocks: int = 0
    """xfs: an internal log, which statvfs leaves out."""

    @property
    def size_bytes(self) -> int:
        """The filesystem's size."""
        return self.block_count * self.block_bytes

    def reachable_bytes(self, device_bytes: int) -> int:
        """How large this filesystem could be made on a device of that size.

        The tools leave a last, too small group alone, and resize2fs rounds down to memory pages
        (64 KiB at most).
        """
        blocks = device_bytes // self.block_bytes
        blocks -= blocks % max(self.step_blocks, _PAGE_BYTES // self.block_bytes)
        rest = max(0, blocks - self.first_block) % self.group_blocks
        if blocks > self.group_blocks and rest < self.tail_blocks:
            blocks -= rest
        return blocks * self.block_bytes


_PAGE_BYTES: Final = 64 * 1024


def read_superblock(head: bytes) -> Superblock | None:
    """Recognise a filesystem by the first bytes of its device; None: none of those known here.

    Raises:
        SuperblockError: one is there, but its numbers contradict each other, or `head` ends too early.
    """
    head = head[:MAX_HEAD_BYTES]
    if head[:4] == b"XFSB":
        return _read_xfs(head)
    if head[_EXT_OFFSET + 0x38 : _EXT_OFFSET + 0x3A] == b"\x53\xef":
        return _read_ext(head)
    return None


_EXT_OFFSET: Final = 1024
_EXT_LEAST_INODE_BYTES: Final = 128
_EXT_MAX_LOG: Final = 6
"""64 KiB: the largest block size there is."""
_EXT_JOURNAL_DEVICE: Final = 0x8
_EXT_64BIT: Final = 0x80
_EXT_HAS_JOURNAL: Final = 0x4
_EXT3_INCOMPAT: Final = 0x2 | 0x4 | 0x10
"""filetype, recover, meta_bg: anything else makes it ext4."""
_EXT3_RO_COMPAT: Final = 0x1 | 0x2 | 0x4
"""sparse_super, large_file, btree_dir."""
_EXT_SPARE_BLOCKS: Final = 50
"""resize2fs wants so many blocks beside a last group's own tables."""


class _ExtFields(msgspec.Struct, frozen=True):
    blocks: int
    first_block: int
    log_block: int
    log_cluster: int
    group_blocks: int
    group_inodes: int
    inode_bytes: int
    reserved_gdt: int
    descriptor_bytes: int
    compat: int
    incompat: int
    ro_compat: int


def _ext_fields(head: bytes) -> _ExtFields:
    if len(head) < _EXT_OFFSET + 1024:
        msg = f"only {len(head)} bytes, which end within an ext superblock"
        raise SuperblockError(msg)

    def number(offset: int, code: str) -> int:
        value: int = struct.unpack_from(f"<{code}", head, _EXT_OFFSET + offset)[0]
        return value

    incompat = number(0x60, "I")
    is_64bit = bool(incompat & _EXT_64BIT)
    is_old = number(0x4C, "I") == 0
    return _ExtFields(
        blocks=number(0x4, "I") | (number(0x150, "I") << 32 if is_64bit else 0),
        first_block=number(0x14, "I"),
        log_block=number(0x18, "I"),
        log_cluster=number(0x1C, "I"),
        group_blocks=number(0x20, "I"),
        group_inodes=number(0x28, "I"),
        inode_bytes=128 if is_old else number(0x58, "H"),
        reserved_gdt=number(0xCE, "H"),
        descriptor_bytes=number(0xFE, "H") if is_64bit else 32,
        compat=number(0x5C, "I"),
        incompat=incompat,
        ro_compat=number(0x64, "I"),
    )


def _read_ext(head: bytes) -> Superblock | None:
    fields = _ext_fields(head)
    if fields.incompat & _EXT_JOURNAL_DEVICE:
        return None  # another filesystem's journal, no filesystem
    _require(fields.log_block <= _EXT_MAX_LOG, "ext block size", fields.log_block)
    block_bytes = 1024 << fields.log_block
    _require(fields.first_block in (0, 1), "ext first block", fields.first_block)
    _require(fields.blocks > fields.first_block, "ext block count", fields.blocks)
    _require(fields.blocks * block_bytes <= MAX_BYTES, "ext block count", fields.blocks)
    # A group's bitmap is one block; with bigalloc each of its bits stands for a whole cluster.
    most = (8 * block_bytes) << max(0, min(fields.log_cluster, 32) - fields.log_block)
    _require(0 < fields.group_blocks <= most, "ext blocks per group", fields.group_blocks)
    _require(0 < fields.group_inodes <= 8 * block_bytes, "ext inodes per group", fields.group_inodes)
    _require(
        _EXT_LEAST_INODE_BYTES <= fields.inode_bytes <= block_bytes, "ext inode size", fields.inode_bytes
    )
    return Superblock(
        type=_ext_type(fields),
        block_bytes=block_bytes,
        block_count=fields.blocks,
        group_blocks=fields.group_blocks,
        first_block=fields.first_block,
        step_blocks=most // (8 * block_bytes),
        tail_blocks=_ext_tail_blocks(fields, block_bytes),
    )


def _ext_type(fields: _ExtFields) -> str:
    if fields.incompat & ~_EXT3_INCOMPAT or fields.ro_compat & ~_EXT3_RO_COMPAT:
        return "ext4"
    return "ext3" if fields.compat & _EXT_HAS_JOURNAL else "ext2"


def _ext_tail_blocks(fields: _ExtFields, block_bytes: int) -> int:
    """Below so many blocks resize2fs drops a last group: tables, descriptors, 50 to spare."""
    inode_table = -(-fields.group_inodes * fields.inode_bytes // block_bytes)
    groups = -(-fields.blocks // fields.group_blocks)
    descriptors = -(-groups * max(32, fields.descriptor_bytes) // block_bytes)
    return 3 + inode_table + descriptors + fields.reserved_gdt + _EXT_SPARE_BLOCKS


_XFS: Final = struct.Struct(">4sIQQQ16sQQQQIIIIIHHHH12sBBBBBBBB")
_XFS_LEAST_BLOCK_BYTES: Final = 512
_XFS_LEAST_GROUP_BYTES: Final = 16 * MIB
"""mkfs.xfs makes no allocation group smaller than this and leaves the end of the device unused instead."""


def _read_xfs(head: bytes) -> Superblock:
    if len(head) < _XFS.size:
        msg = f"only {len(head)} bytes, which end within an xfs superblock"
        raise SuperblockError(msg)
    fields = _XFS.unpack_from(head)
    block_bytes, blocks, log_start = fields[1], fields[2], fields[6]
    group_blocks, groups, log_blocks, block_log = fields[11], fields[12], fields[14], fields[20]
    _require(
        _XFS_LEAST_BLOCK_BYTES <= block_bytes <= _PAGE_BYTES and block_bytes == 1 << block_log,
        "xfs block size",
        block_bytes,
    )
    _require(group_blocks > 0 and groups > 0, "xfs allocation groups", groups)
    _require((groups - 1) * group_blocks < blocks <= groups * group_blocks, "xfs block count", blocks)
    _require(blocks * block_bytes <= MAX_BYTES, "xfs block count", blocks)
    _require(log_blocks < blocks, "xfs log blocks", log_blocks)
    return Superblock(
        type="xfs",
        block_bytes=block_bytes,
        block_count=blocks,
        group_blocks=group_blocks,
        tail_blocks=_XFS_LEAST_GROUP_BYTES // block_bytes,
        log_blocks=log_blocks if log_start else 0,
    )


def _require(holds: bool, what: str, value: int) -> None:  # noqa: FBT001 - reads as a sentence
    if not holds:
        msg = f"{what} {value} can't be"
        raise SuperblockError(msg)
