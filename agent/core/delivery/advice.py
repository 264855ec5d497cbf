"""What an operator should know about the reports themselves: findings with the next step.

These go to whoever reads this audit here.  They are not part of the report that waits, except for a
replaced outbox, which the inventory should hear about.  Not here: deciding any of it (`agent.reporting`).
"""

from agent.core.models import Finding, Severity
from agent.core.units import MIB

_STATUS = "`agent status` shows what waits"


def pending(volume_group: str, reason: str | None) -> Finding:
    """Stored, not delivered yet."""
    why = reason or "another process is delivering, or there was no time left"
    return Finding(
        kind="report_pending",
        severity=Severity.WARNING,
        subject=volume_group,
        message=f"the report is stored and not delivered yet: {why}",
        hint=f"the daemon or the next audit delivers it; {_STATUS}",
    )


def unknown_host(hostname: str, reason: str) -> Finding:
    """The inventory API does not know this host; its reports are kept."""
    return Finding(
        kind="report_host_unknown",
        severity=Severity.WARNING,
        subject=hostname,
        message=f"the inventory does not know this host, so its reports wait: {reason}",
        hint=f"enrol it where the inventory runs (`agent inventory token --help`) under the name {hostname}, "
        "or correct [agent] hostname",
    )


def refused(volume_group: str, reason: str) -> Finding:
    """The inventory will never take this report as it is."""
    return Finding(
        kind="report_refused",
        severity=Severity.WARNING,
        subject=volume_group,
        message=f"the inventory refused the report, which is set aside: {reason}",
        hint="mend the cause, then `agent status --retry` sends it again",
    )


def not_accepted(volume_group: str, reason: str) -> Finding:
    """The server is no inventory API; said once."""
    return Finding(
        kind="reports_not_accepted",
        severity=Severity.INFO,
        subject=volume_group,
        message=f"the server takes no reports ({reason}): none is stored from now on, what waits is kept",
        hint="check [report] url; it is tried again every hour and at each start",
    )


def lost(volume_group: str, reason: str) -> Finding:
    """Neither delivered nor stored."""
    return Finding(
        kind="report_lost",
        severity=Severity.CRITICAL,
        subject=volume_group,
        message=f"the report of this audit is lost, neither delivered nor stored: {reason}",
        hint="audit again when the cause is mended: every report holds the whole state",
    )


def outbox_full(excess_bytes: int) -> Finding:
    """Nothing is left that could make room."""
    return Finding(
        kind="outbox_full",
        severity=Severity.CRITICAL,
        subject="outbox",
        message="the outbox is full of state changes that the inventory has not taken, "
        f"{max(1, round(excess_bytes / MIB))} MiB above its limit: reports without news are refused, "
        "state changes are still stored",
        hint=f"mend the delivery ({_STATUS}) or raise [report] outbox_max_bytes",
    )


def outbox_replaced(path: str, aside: str | None) -> Finding:
    """The database was damaged or removed; a new one was begun."""
    where = f"set aside as {aside}" if aside else "gone"
    return Finding(
        kind="outbox_replaced",
        severity=Severity.CRITICAL,
        subject=path,
        message=f"the outbox was damaged or removed and is {where}: "
        "reports that waited in it are not delivered",
        hint="look for disk errors (dmesg); `sqlite3 FILE .recover` may show what was in it"
        if aside
        else "nothing but the agent should touch its state directory",
    )
