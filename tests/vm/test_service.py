"""The installed service on a real service manager, with real devices: one guest, told as one story.

The tests build on each other, in this order: install, latency, the failing resize, sandbox, watchdog, bad
configuration, stop, upgrade, uninstall.
"""

import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import vmhost as host
from vmhost import CONFIG, SIZES, STATE, UNIT, Receiver, run, show, wait_for

from agent.core.report import AuditVerdict, FilesystemVerdict, Trigger

pytestmark = [pytest.mark.vm(boot="service"), pytest.mark.timeout(100)]

ROOT = Path(__file__).parent.parent.parent
ONCE = "lvm-audit-agent-once.service"
DROP_IN = Path(f"/run/systemd/system/{UNIT}.d/test.conf")
EXTENT_MIB = 32
TOTAL_EXTENTS = 5727
DOCKER_EXTENTS = 960
Record = Callable[[str, object], None]


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with Receiver() as opened:
        yield opened


@pytest.fixture(scope="module", autouse=True)
def volume_group(receiver: Receiver) -> None:
    """The bug's disk: 179 GiB, of which the guest stores only what is written."""
    run("vgcreate", "-s", f"{EXTENT_MIB}m", "cgts-vg", "/dev/ubda")
    run("lvcreate", "-y", "-l", "64", "-n", "log-lv", "cgts-vg")
    run("lvcreate", "-y", "-l", str(DOCKER_EXTENTS), "-n", "docker-lv", "cgts-vg")
    run("lvcreate", "-y", "-an", "-Zn", "-Wn", "-l", "32", "-n", "sleeping-lv", "cgts-vg")
    run("mkfs.ext4", "-q", "/dev/cgts-vg/log-lv")
    Path("/mnt/log").mkdir()
    run("mount", "/dev/cgts-vg/log-lv", "/mnt/log")


@pytest.fixture(scope="module")
def before_installation(volume_group: None) -> frozenset[str]:
    return list_files()


def list_files() -> frozenset[str]:
    """Everything that bears our name, and all of the places where nobody else installs meanwhile.

    The guest sees the machine's own files, where somebody may be installing packages right now.
    """
    places = (
        "/etc",
        "/lib/systemd",
        "/usr/lib/systemd",
        "/usr/share",
        "/usr/sbin",
        "/usr/lib/lvm-audit-agent",
        "/var/lib",
    )
    found = run(
        "find", *places, "-xdev", "(", "-name", "*lvm-audit-agent*", "-o", "-name", "agent*", ")", check=False
    )
    local = run("find", "/opt", "/usr/local", "-xdev")
    return frozenset((found.stdout + local.stdout).splitlines())


def configure(receiver: Receiver, *, extra: str = "", interval_seconds: int = 20) -> None:
    CONFIG.write_text(
        f"""
        [audit]
        interval_seconds = {interval_seconds}
        jitter_seconds = 0
        [inventory]
        kind = "file"
        path = "{SIZES}"
        [report]
        url = "{receiver.server.url}/v1"
        {extra}
        """
    )
    CONFIG.chmod(0o644)


def record(docker_gib: int) -> None:
    SIZES.write_text(
        f'[[filesystem]]\nname = "docker"\nlogical_volume = "docker-lv"\nsize = "{docker_gib}GiB"\n'
    )
    SIZES.chmod(0o644)


def install(artefacts: Path) -> subprocess.CompletedProcess[str]:
    return run(str(ROOT / "scripts/install"), "--wheelhouse", str(artefacts / "wheelhouse"))


def test_installing_starts_it(before_installation: frozenset[str], artefacts: Path) -> None:
    assert "/opt/lvm-audit-agent" not in before_installation
    install(artefacts)
    assert (show("ActiveState"), show("SubState"), show("Type")) == ("active", "running", "notify")
    assert run("systemctl", "is-enabled", UNIT).stdout == "enabled\n"
    deadline = time.monotonic() + host.PATIENCE_SECONDS
    while "cgts-vg: clean (3 LVs, " not in show("StatusText"):
        assert time.monotonic() < deadline, f"{show('StatusText')}\n{host.journal()}"
        time.sleep(0.1)
    # lines for people, not JSON, and one for the audit
    lines = host.journal()
    assert "audit.finished" in lines
    assert '"event"' not in lines


def test_a_reload_takes_the_new_configuration(receiver: Receiver, figure: Record) -> None:
    configure(receiver)
    record(30)
    pid = show("MainPID")
    run("systemctl", "reload", UNIT)
    _, document = receiver.next()
    assert (document.trigger, document.verdict) == (Trigger.SIGNAL, AuditVerdict.CLEAN)
    assert show("MainPID") == pid
    layers = next(lv.layers for lv in document.logical_volumes or () if lv.name == "log-lv")
    assert layers is not None
    assert [(layer.kind, layer.mount_point) for layer in layers] == [("filesystem", "/mnt/log")]
    figure("rss_kib", read_rss_kib(pid))


def read_rss_kib(pid: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmRSS:")))


def test_an_extended_volume_is_reported_at_once(receiver: Receiver, figure: Record) -> None:
    """The window in which the bug happens: from lvextend's return to the inventory's knowledge."""
    seconds = []
    triggers = []
    for extents in range(65, 85):
        run("lvextend", "-q", "-l", str(extents), "cgts-vg/log-lv")
        extended_at = time.monotonic()
        at, document = receiver.wait_for_extents("log-lv", extents)
        seconds.append(at - extended_at)
        triggers.append(document.trigger)
    figure("lvextend_to_report_median_seconds", round(statistics.median(seconds), 3))
    figure("lvextend_to_report_worst_seconds", round(max(seconds), 3))
    # the schedule may have been first once or twice in all that time
    assert triggers.count(Trigger.UDEV) >= 17, triggers


@pytest.mark.parametrize(
    ("what", "command", "volume", "extents"),
    [
        ("lvcreate", "lvcreate -y -l 8 -n new-lv cgts-vg", "new-lv", 8),
        ("lvremove", "lvremove -y cgts-vg/new-lv", "new-lv", None),
        ("lvextend of an inactive LV", "lvextend -l 40 cgts-vg/sleeping-lv", "sleeping-lv", 40),
    ],
)
def test_other_changes_are_reported(
    receiver: Receiver, figure: Record, what: str, command: str, volume: str, extents: int | None
) -> None:
    run(*command.split())
    changed_at = time.monotonic()
    at, document = receiver.wait_for_extents(volume, extents)
    figure(f"{what}_seconds", round(at - changed_at, 3))
    figure(f"{what}_trigger", str(document.trigger))


def test_a_new_disk_is_reported(receiver: Receiver, figure: Record) -> None:
    run("vgextend", "cgts-vg", "/dev/ubdb")
    extended_at = time.monotonic()
    while True:
        at, document = receiver.next()
        if document.volume_group is not None and document.volume_group.pv_count == 2:
            break
    figure("vgextend_seconds", round(at - extended_at, 3))
    figure("vgextend_trigger", str(document.trigger))
    run("vgreduce", "cgts-vg", "/dev/ubdb")


def test_the_failing_resize_is_reported_and_then_resolved(receiver: Receiver) -> None:
    filler_extents = TOTAL_EXTENTS - 84 - DOCKER_EXTENTS - 40 - 5
    run("lvcreate", "-y", "-an", "-Zn", "-Wn", "-l", str(filler_extents), "-n", "filler-lv", "cgts-vg")
    record(40)
    failed = run("lvextend", "-L40G", "cgts-vg/docker-lv", check=False)
    assert failed.returncode == 5
    assert "320" in failed.stderr
    run("systemctl", "kill", "--signal=USR1", UNIT)
    while True:
        _, document = receiver.next()
        if document.verdict is AuditVerdict.DOES_NOT_FIT:
            break
    (docker,) = document.filesystems or ()
    assert (docker.verdict, docker.delta_extents) == (FilesystemVerdict.UNDERSIZED, -320)
    assert document.capacity is not None
    assert (document.capacity.needed_extents, document.capacity.available_extents) == (320, 5)
    status = run(
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "/opt/lvm-audit-agent/current/bin/agent",
        "status",
    )
    assert "does not fit" in status.stdout.replace("_", " ")
    assert "docker undersized" in show("StatusText")

    run("lvremove", "-y", "cgts-vg/filler-lv")
    run("lvextend", "-L40G", "cgts-vg/docker-lv")
    _, document = receiver.wait_for_extents("docker-lv", 1280)
    assert document.verdict is AuditVerdict.CLEAN
    lines = host.journal().splitlines()
    told = [line.split("[")[-1].split("]")[-1] and line for line in lines if "drift." in line]
    assert len([line for line in told if "drift.detected" in line]) == 1
    assert len([line for line in told if "drift.resolved" in line]) == 1


PROBE = """
try() { name=$1; shift; "$@" > /dev/null 2>&1; echo "$name $?"; }
try lvremove lvremove -f cgts-vg/docker-lv
try lvextend lvextend -l +1 cgts-vg/docker-lv
try lvchange lvchange --permission r cgts-vg/docker-lv
try lvcreate lvcreate -y -an -Zn -Wn -l 1 -n evil-lv cgts-vg
try vgreduce vgreduce cgts-vg /dev/ubdb
try pvchange pvchange -xn /dev/ubda
try dmsetup-remove dmsetup remove cgts--vg-docker--lv
try dmsetup-suspend dmsetup suspend cgts--vg-docker--lv
try dd-pv dd if=/dev/zero of=/dev/ubda bs=512 count=1 conv=notrunc
try dd-lv dd if=/dev/zero of=/dev/cgts-vg/docker-lv bs=512 count=1 conv=notrunc
try write-etc touch /etc/evil
try write-usr touch /usr/evil
try write-mounted touch /mnt/log/evil
try read-shadow cat /etc/shadow
try list-root ls /root
try modprobe modprobe dummy
try insmod insmod /usr/lib/modules/$(uname -r)/kernel/drivers/net/dummy.ko
try mknod mknod /tmp/evil b 98 0
try mount mount -t tmpfs evil /tmp
try mount-lv mount /dev/cgts-vg/docker-lv /tmp
try unshare unshare --user --map-root-user true
try sysctl sysctl -w kernel.hostname=evil
lvchange -an cgts-vg > /dev/null 2>&1  # ends with 0, because nothing looks active from in here
echo "--"
try vgs vgs cgts-vg
try lvs lvs -a cgts-vg
try read-lv dd if=/dev/cgts-vg/log-lv of=/dev/null bs=4096 count=1
try audit /opt/lvm-audit-agent/current/bin/agent audit --once --no-report
"""


def look() -> tuple[str, str]:
    """The metadata's revision, and every device-mapper table."""
    return run("vgs", "-o", "vg_seqno", "cgts-vg").stdout, run("dmsetup", "table").stdout


def test_nothing_can_be_changed_from_inside_the_sandbox(figure: Record) -> None:
    """The same unit file, but what it runs tries to do harm."""
    unit = (ROOT / "systemd" / UNIT).read_text()
    for setting in (
        "ExecStart",
        "ExecReload",
        "Type",
        "NotifyAccess",
        "Restart",
        "RestartSec",
        "RestartPreventExitStatus",
        "WatchdogSec",
    ):
        unit = "\n".join(line for line in unit.splitlines() if not line.startswith(f"{setting}="))
    script, output = Path("/opt/probe"), Path("/opt/probe.out")
    script.write_text(PROBE)
    unit = unit.replace(
        "[Service]", f"[Service]\nType=oneshot\nExecStart=/bin/bash {script}\nStandardOutput=file:{output}"
    )
    # it may not take the daemon's state directory away from it
    Path("/run/systemd/system/probe.service").write_text(
        unit.replace("StateDirectory=lvm-audit-agent", "StateDirectory=probe")
    )
    run("vgextend", "cgts-vg", "/dev/ubdb")
    before = look()
    run("systemctl", "daemon-reload")
    run("systemctl", "start", "probe.service", check=False)
    harmful, _, useful = output.read_text().partition("--\n")
    succeeded = [line for line in harmful.splitlines() if line.endswith(" 0")]
    failed = [line for line in useful.splitlines() if not line.endswith(" 0")]
    assert len(harmful.splitlines()) == 22
    assert succeeded == []
    assert failed == []
    assert look() == before
    run("vgreduce", "cgts-vg", "/dev/ubdb")
    for path in (script, output, Path("/run/systemd/system/probe.service")):
        path.unlink()
    run("rm", "-r", "/var/lib/probe")
    run("systemctl", "daemon-reload")
    security = run("systemd-analyze", "security", "--no-pager", UNIT, check=False).stdout
    exposure = float(security.splitlines()[-1].split(": ")[1].split()[0])
    figure("exposure", exposure)
    assert exposure <= 1.8
    units = [f"/etc/systemd/system/{name}" for name in (UNIT, ONCE, ONCE.replace(".service", ".timer"))]
    verified = run("systemd-analyze", "verify", *units, check=False)
    assert (verified.returncode, verified.stderr) == (0, "")


def drop_in(text: str | None) -> None:
    """Change the unit with a drop-in; None takes it away."""
    if text is None:
        DROP_IN.unlink()
    else:
        DROP_IN.parent.mkdir(exist_ok=True)
        DROP_IN.write_text(text)
    run("systemctl", "daemon-reload")


def test_the_example_drop_in_shows_how_full_a_thin_pool_is(receiver: Receiver) -> None:
    run("lvcreate", "-y", "-L", "256m", "-T", "cgts-vg/pool")
    percents = []
    for text in ((ROOT / f"systemd/{UNIT}.d/thin-pools.conf.example").read_text(), None):
        drop_in(text)
        run("systemctl", "restart", UNIT)
        receiver.forget()
        run("systemctl", "kill", "--signal=USR1", "--kill-whom=main", UNIT)
        _, document = receiver.wait_for_extents("pool", 8)
        percents += [lv.data_percent for lv in document.logical_volumes or () if lv.name == "pool"]
    run("lvremove", "-y", "cgts-vg/pool")
    assert percents == [0.0, None], "known with the drop-in, unknown (and not zero) without"


def test_an_audit_without_the_daemon_runs_in_the_same_sandbox() -> None:
    run("systemctl", "start", ONCE)
    assert (show("Result", ONCE), show("ExecMainStatus", ONCE)) == ("success", "0")


def test_a_daemon_that_stops_getting_on_is_killed_and_started_again(receiver: Receiver) -> None:
    drop_in("[Service]\nWatchdogSec=3\nRestartSec=0\n")
    run("systemctl", "restart", UNIT)
    pid = show("MainPID")
    receiver.forget()
    run("systemctl", "kill", "--signal=STOP", "--kill-whom=main", UNIT)
    wait_for("NRestarts", "1")
    wait_for("ActiveState", "active")
    assert show("MainPID") != pid
    while receiver.next()[1].trigger is not Trigger.STARTUP:
        pass
    drop_in(None)
    run("systemctl", "restart", UNIT)


def test_a_bad_configuration_is_refused_on_reload_and_makes_no_restart_loop(receiver: Receiver) -> None:
    pid = show("MainPID")
    configure(receiver, extra="[audit2]\nx = 1")
    run("systemctl", "reload", UNIT)
    receiver.forget()
    run("systemctl", "kill", "--signal=USR1", UNIT)
    assert receiver.next()[1].verdict is AuditVerdict.CLEAN, "the old configuration goes on"
    assert show("MainPID") == pid
    assert "config.reload.failed" in host.journal()

    assert run("systemctl", "restart", UNIT, check=False).returncode != 0
    wait_for("ActiveState", "failed")
    assert (show("ExecMainStatus"), show("NRestarts")) == ("4", "0")
    assert "audit2" in host.journal()

    configure(receiver)
    run("systemctl", "reset-failed", UNIT)
    run("systemctl", "start", UNIT)
    assert show("ActiveState") == "active"


def test_it_stops_at_once_and_well(receiver: Receiver, figure: Record) -> None:
    receiver.forget()
    begin = time.monotonic()
    run("systemctl", "stop", UNIT)
    figure("stop_seconds", round(time.monotonic() - begin, 3))
    assert (show("Result"), show("ExecMainStatus")) == ("success", "0")
    run("systemctl", "start", UNIT)


def test_an_upgrade_keeps_configuration_and_outbox(receiver: Receiver, artefacts: Path) -> None:
    configuration = CONFIG.read_text()
    outbox = (STATE / "outbox.sqlite3").stat().st_ino
    version = Path("/opt/lvm-audit-agent/current").resolve()
    pid = show("MainPID")
    receiver.forget()
    install(artefacts)
    assert CONFIG.read_text() == configuration
    assert (STATE / "outbox.sqlite3").stat().st_ino == outbox
    assert Path("/opt/lvm-audit-agent/current").resolve() != version
    assert not version.exists()
    assert show("MainPID") != pid
    while receiver.next()[1].trigger is not Trigger.STARTUP:
        pass


def test_the_package_is_refused_where_it_would_be_hidden(artefacts: Path) -> None:
    (package,) = artefacts.glob("*.deb")
    refused = run("dpkg", "--install", str(package), check=False)
    assert refused.returncode != 0
    assert "run scripts/uninstall first" in refused.stderr
    assert show("FragmentPath") == f"/etc/systemd/system/{UNIT}"
    assert show("ActiveState") == "active"


def test_uninstalling_leaves_nothing(before_installation: frozenset[str]) -> None:
    manifest = Path("/opt/lvm-audit-agent/manifest").read_text()
    made = [Path(line) for line in manifest.splitlines() if line.endswith("/")]
    for directory in made[:1]:  # somebody was quicker, perhaps an earlier uninstallation that was interrupted
        run("rm", "-r", str(directory))
    kept = run(str(ROOT / "scripts/uninstall")).stdout
    assert "kept: /etc/lvm-audit-agent" in kept
    assert "kept: /var/lib/lvm-audit-agent" in kept
    assert CONFIG.exists()
    run("rm", "-r", "/etc/lvm-audit-agent", "/var/lib/lvm-audit-agent")
    assert list_files() == before_installation
    assert show("LoadState") == "not-found"


def test_the_debian_package_lives_and_dies(before_installation: frozenset[str], artefacts: Path) -> None:
    Path("/var/lib/man-db/auto-update").unlink(missing_ok=True)  # minutes of indexing otherwise
    Path("/usr/sbin/policy-rc.d").unlink(missing_ok=True)  # container images forbid to start services
    (package,) = artefacts.glob("*.deb")
    before = list_files()
    run("dpkg", "--install", str(package))
    wait_for("ActiveState", "active")
    assert run("systemctl", "is-enabled", UNIT).stdout == "enabled\n"
    pid = show("MainPID")
    assert run("agent", "--version").stdout.startswith("agent ")
    refused = run(str(ROOT / "scripts/install"), "--wheelhouse", str(artefacts / "wheelhouse"), check=False)
    assert refused.returncode == 1
    assert "apt-get remove lvm-audit-agent" in refused.stderr
    assert not Path("/opt/lvm-audit-agent").exists()

    CONFIG.write_text("[audit]\ninterval_seconds = 30\n")
    run("dpkg", "--install", str(package))  # an upgrade, to the same version
    wait_for("ActiveState", "active")
    assert show("MainPID") != pid
    assert CONFIG.read_text() == "[audit]\ninterval_seconds = 30\n"

    run("dpkg", "--remove", "lvm-audit-agent")
    assert show("ActiveState") == "inactive"
    assert CONFIG.exists()
    run("dpkg", "--purge", "lvm-audit-agent")
    assert list_files() == before
    assert run("dpkg-query", "--show", "lvm-audit-agent", check=False).returncode != 0
