"""Puts the parts together: only here and in `wiring_…` is it known which class stands behind which port.

Not here: any decision about audits.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING, Final
from uuid import UUID, uuid4

from agent import __version__
from agent.audit import Auditor, LayerReader
from agent.config.load import Loaded, load
from agent.config.schema import Settings
from agent.core.errors import LvmError
from agent.core.models import DEFAULT_VOLUME_GROUP, VolumeGroup
from agent.core.report import HostSection
from agent.host import facts
from agent.host.lvm import LvmReader
from agent.host.process import Runner
from agent.inventory import Inventory

if TYPE_CHECKING:
    from agent.core.layers.view import LayerScan

_ENDING_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class SystemClock:
    """The real time."""

    def now(self) -> datetime:
        """Wall clock, UTC."""
        return datetime.now(UTC)

    def monotonic_seconds(self) -> float:
        """A clock that never jumps."""
        return monotonic()


class Wiring:
    """The real parts.  A test gives `agent.cli.main.run` another one."""

    def __init__(self) -> None:
        self.clock = SystemClock()

    def new_id(self) -> UUID:
        """An id for one audit."""
        return uuid4()

    def load(self, config_path: str | None, flags: dict[str, object]) -> Loaded:
        """The effective configuration.

        Raises:
            ConfigError: it can't be used.
        """
        return load(path=config_path, environment=os.environ, flags=flags)

    def read_host(self, settings: Settings, lvm_version: str | None = None) -> HostSection:
        """The host as documents name it."""
        return HostSection(
            hostname=settings.agent.hostname or facts.read_hostname(),
            boot_time=facts.read_boot_time(),
            agent_version=__version__,
            lvm_version=lvm_version,
        )

    def make_inventory(self, settings: Settings, parts: ExitStack) -> Inventory | None:
        """Where the recorded sizes come from; None = nowhere.  What must be closed is left in `parts`.

        Raises:
            ConfigError: `[inventory.auth]` can't be used.
        """
        if settings.inventory.kind == "sysinv":
            return self._open_sysinv(settings, parts)
        if settings.inventory.kind == "none" or settings.inventory.path is None:
            return None
        from agent.inventory.file import FileInventory  # noqa: PLC0415 - start-up time: tomllib

        groups = settings.audit.volume_groups
        return FileInventory(
            settings.inventory.path,
            default_volume_group=groups[0] if len(groups) == 1 else DEFAULT_VOLUME_GROUP,
        )

    def make_layers(self, settings: Settings, parts: ExitStack) -> LayerReader:
        """What looks at the layers above the LVs; its helper process, if one is needed, ends with `parts`."""
        return _LateLayers(settings.audit.nearly_full_percent, parts)

    def _open_sysinv(self, settings: Settings, parts: ExitStack) -> Inventory:
        from agent.inventory.sysinv import open_sysinv  # noqa: PLC0415 - start-up time

        inventory = open_sysinv(
            settings.inventory,
            hostname=settings.agent.hostname or facts.read_hostname(),
            credentials_directory=os.environ.get("CREDENTIALS_DIRECTORY"),
            user_agent=f"lvm-audit-agent/{__version__}",
            monotonic_seconds=self.clock.monotonic_seconds,
            now=self.clock.now,
        )
        parts.callback(inventory.close)
        return inventory

    @contextmanager
    def open_reader(self, settings: Settings) -> Iterator[LvmReader]:
        """What reads LVM.  While it is open a signal ends the children first; a second one ends us.

        Raises:
            KeyboardInterrupt: on leaving, when there was a signal.
        """
        with (
            Runner(meanwhile=partial(_import_the_rest, settings.inventory.kind)) as runner,
            _aborting(runner),
        ):
            yield LvmReader(runner, Path(settings.lvm.directory), settings.lvm.timeout_seconds)

    @contextmanager
    def open_auditor(self, settings: Settings) -> Iterator[Auditor]:
        """What audits, with `open_reader`'s behaviour on signals."""
        with ExitStack() as parts, self.open_reader(settings) as reader:
            yield Auditor(
                reader=reader,
                inventory=self.make_inventory(settings, parts),
                layers=self.make_layers(settings, parts),
                host=lambda: self.read_host(settings, reader.version()),
                clock=self.clock,
                new_id=self.new_id,
                boot_id=facts.read_boot_id(),
                grace_seconds=settings.audit.transition_grace_seconds,
            )


class _LateLayers:
    """The real scanner, made for the first scan: LVM is at work before its modules are loaded."""

    def __init__(self, nearly_full_percent: float, parts: ExitStack) -> None:
        self._nearly_full_percent = nearly_full_percent
        self._parts = parts
        self._scanner: LayerReader | None = None

    def scan(self, volume_group: VolumeGroup) -> "LayerScan":
        if self._scanner is None:
            from agent.host.layers import LayerScanner  # noqa: PLC0415 - start-up time
            from agent.host.prober import Prober  # noqa: PLC0415

            prober = Prober()
            self._parts.callback(prober.close)
            self._scanner = LayerScanner(prober, nearly_full_percent=self._nearly_full_percent)
        return self._scanner.scan(volume_group)


def _import_the_rest(inventory_kind: str) -> None:
    """Import, while LVM is at work, what is needed when it has answered."""
    for name in ("psutil", "agent.core.judge", "agent.host.layers", "agent.host.prober"):
        import_module(name)
    if inventory_kind == "file":
        import_module("tomllib")


@contextmanager
def _aborting(runner: Runner) -> Iterator[None]:
    """Turn the first signal into an orderly end of the LVM children, which have sessions of their own."""
    signals: list[int] = []

    def handle(number: int, _: FrameType | None) -> None:
        signals.append(number)
        runner.abort()
        if len(signals) > 1:
            raise KeyboardInterrupt

    before = {number: signal.getsignal(number) for number in _ENDING_SIGNALS}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:  # nohup, or started in the background by a shell
            signal.signal(number, handle)
    try:
        yield
    except LvmError:
        if not signals:
            raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if signals:
        raise KeyboardInterrupt
