"""`agent baseline`: writes the actual sizes as a recorded-size file.

Not here: the text of the file (`agent.core.baseline`).
"""

import contextlib
import os
import tempfile
from typing import TYPE_CHECKING

import click

from agent.cli import options, output
from agent.core.errors import UsageError
from agent.core.names import to_visible

if TYPE_CHECKING:
    from agent.cli.wiring import Wiring

_FILE_MODE = 0o644


@click.command(
    short_help="Write the actual sizes as a recorded-size file.",
    epilog=options.make_epilog(
        "agent baseline",
        "agent baseline -o /etc/lvm-audit-agent/sizes.toml",
        "agent audit --once --inventory file:/etc/lvm-audit-agent/sizes.toml",
    ),
)
@click.option(
    "-o",
    "--output",
    "path",
    metavar="FILE",
    default="-",
    callback=options.check_path,
    help="File to write; - is stdout.  [default: -]",
)
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@options.config_option
@options.vg_option
@options.lvm_dir_option
@click.pass_context
def baseline(
    ctx: click.Context,
    *,
    path: str,
    force: bool,
    config_path: str | None,
    volume_groups: tuple[str, ...],
    lvm_dir: str | None,
) -> None:
    """Write the actual sizes, exactly, as a recorded-size file, for hosts without an inventory API.

    Volumes that belong to LVM itself and snapshots are left out.
    """
    from agent.cli import wiring as parts  # noqa: PLC0415 - start-up time
    from agent.core.baseline import write_baseline  # noqa: PLC0415

    wiring: Wiring = ctx.obj or parts.Wiring()
    if path != "-":
        _require_regular(path)
        if not force:
            _require_absent(path)
    flags = options.to_flags(volume_groups=volume_groups, lvm_dir=lvm_dir)
    settings = wiring.load(config_path, flags).settings
    taken_at = wiring.clock.now()
    with wiring.open_reader(settings) as reader:
        groups = [reader.read(name).volume_group for name in settings.audit.volume_groups]
    text = write_baseline(groups, hostname=wiring.read_host(settings).hostname, taken_at=taken_at)
    if path == "-":
        output.write_result(text)
    else:
        _write_file(path, text, is_forced=force)


def _require_regular(path: str) -> None:
    """Refuse what is no file: a rename would put one in the place of /dev/null or of a named pipe."""
    if os.path.exists(path) and not os.path.isfile(path):  # noqa: PTH110, PTH113 - start-up time
        shown = to_visible(path)
        detail = f"{shown} is no regular file; without -o the sizes go to stdout"
        raise UsageError(subject=shown, detail=detail)


def _require_absent(path: str) -> None:
    """Refuse early, before LVM is read; `_write_file` makes sure again."""
    if os.path.lexists(path):
        raise _exists(path)


def _exists(path: str) -> UsageError:
    detail = f"{to_visible(path)} exists and is not replaced without --force"
    return UsageError(subject=to_visible(path), detail=detail)


def _write_file(path: str, text: str, *, is_forced: bool) -> None:
    """Put the whole file there or nothing: a reader never sees half of it, not even after a power cut.

    Raises:
        UsageError: it can't be written there, or it exists by now.
    """
    # Through a symlink to the file it names: a link that an operator made stays one.
    target = os.path.realpath(path)
    directory = os.path.dirname(target)  # noqa: PTH120 - pathlib costs start-up time
    temporary = None
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=".baseline-", dir=directory)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            os.fchmod(descriptor, _FILE_MODE)
            file.flush()
            os.fsync(descriptor)
        if is_forced:
            os.replace(temporary, target)  # noqa: PTH105 - as above
            temporary = None
        else:
            os.link(temporary, target)  # fails when there is one by now; rename would replace it
        _sync_directory(directory)
    except FileExistsError:
        raise _exists(path) from None
    except OSError as error:
        detail = f"{to_visible(path)} can't be written: {error.strerror}"
        raise UsageError(subject=to_visible(path), detail=detail) from error
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)  # noqa: PTH108 - as above


def _sync_directory(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
