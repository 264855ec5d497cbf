"""The configuration: every mistake at once, and who beats whom."""

import os
import tomllib
from pathlib import Path

import msgspec
import pytest

from agent.config.load import Loaded, Origin, load
from agent.config.schema import Settings, list_keys
from agent.config.show import show
from agent.core.errors import ConfigError, ExitCode


def load_text(tmp_path: Path, text: str, **environment: str) -> Loaded:
    path = tmp_path / "agent.toml"
    path.write_text(text, encoding="utf-8")
    return load(path=str(path), environment=environment, flags={})


def problems_of(tmp_path: Path, text: str, **environment: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        load_text(tmp_path, text, **environment)
    assert caught.value.exit_code is ExitCode.CONFIG
    assert caught.value.subject == str(tmp_path / "agent.toml")
    return caught.value.problems


def test_defaults_without_a_file(tmp_path: Path) -> None:
    loaded = load(path=None, environment={}, flags={}, default_path=str(tmp_path / "absent.toml"))
    assert loaded.settings == Settings()
    assert loaded.settings.audit.volume_groups == ("cgts-vg",)
    assert loaded.settings.audit.transition_grace_seconds == 600
    assert loaded.settings.lvm.directory == "/usr/sbin"
    assert loaded.settings.lvm.timeout_seconds == 30
    assert loaded.settings.inventory.kind == "none"
    assert loaded.path is None


def test_the_default_file_is_read_when_it_is_there(tmp_path: Path) -> None:
    path = tmp_path / "agent.toml"
    path.write_text("[lvm]\ntimeout_seconds = 5\n", encoding="utf-8")
    loaded = load(path=None, environment={}, flags={}, default_path=str(path))
    assert loaded.settings.lvm.timeout_seconds == 5
    assert loaded.path == str(path)


def test_five_mistakes_are_told_together(tmp_path: Path) -> None:
    text = """
    [audit]
    volume_groups = []
    transition_grace_second = 600
    [lvm]
    timeout_seconds = "30"
    directory = "sbin"
    [log]
    level = "loud"
    """
    assert problems_of(tmp_path, text) == (
        "audit.transition_grace_second: unknown key (did you mean transition_grace_seconds?)",
        "audit.volume_groups: must be a list of one or more texts, not []",
        "lvm.timeout_seconds: must be a number from 1 to 3600, not '30'",
        "lvm.directory: must be an absolute path, not 'sbin'",
        "log.level: must be one of debug, info, warning, error, not 'loud'",
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("frob = 1", "frob: unknown key (known: agent, audit, lvm, "),
        ("[audti]\nx = 1", "audti: unknown section (did you mean audit?)"),
        ("lvm = 3", "lvm: must be a table: write [lvm]"),
        ("[lvm.directory]\nx = 1", "lvm.directory: must be text, not {'x': 1}"),
        ('["lvm.directory"]\nx = 1', "'lvm.directory': unknown section (known: agent"),
        ("[agent]\nhostname = 5", "agent.hostname: must be text, not 5"),
        ('[agent]\nhostname = " "', "agent.hostname: must not be empty"),
        ('[agent]\nhostname = "a\\nb"', "agent.hostname: holds characters that can't be printed"),
        ('[agent]\nstate_directory = "x"', "agent.state_directory: must be an absolute path, not 'x'"),
        ("[audit]\nvolume_groups = [1]", "audit.volume_groups: must be a list of one or more texts, not [1]"),
        (
            '[audit]\nvolume_groups = "vg"',
            "audit.volume_groups: must be a list of one or more texts, not 'vg'",
        ),
        ('[audit]\nvolume_groups = [""]', "audit.volume_groups: the name is empty"),
        (
            '[audit]\nvolume_groups = ["--all"]',
            (
                "audit.volume_groups: '--all' is no LVM name: letters, digits and + _ . - are allowed, "
                "no hyphen first"
            ),
        ),
        ('[audit]\nvolume_groups = ["a", "b", "a"]', "audit.volume_groups: a is named 2 times"),
        (
            "[audit]\ntransition_grace_seconds = nan",
            "audit.transition_grace_seconds: must be a number from 0 to 86400, not nan",
        ),
        (
            "[audit]\ntransition_grace_seconds = -1",
            "audit.transition_grace_seconds: must be a number from 0 to 86400, not -1",
        ),
        ("[lvm]\ntimeout_seconds = 0", "lvm.timeout_seconds: must be a number from 1 to 3600, not 0"),
        ("[lvm]\ntimeout_seconds = true", "lvm.timeout_seconds: must be a number from 1 to 3600, not True"),
        ("[lvm]\ntimeout_seconds = inf", "lvm.timeout_seconds: must be a number from 1 to 3600, not inf"),
        ('[inventory]\nkind = "file"', 'inventory.path: is needed when inventory.kind = "file"'),
        (
            '[inventory]\npath = "/x"',
            'inventory.path: is set, but inventory.kind is "none": nothing would be compared',
        ),
        ('[inventory]\nkind = "file"\npath = "x"', "inventory.path: must be an absolute path, not 'x'"),
        # Numbers that Python itself refuses to read or to print.
        ("[lvm]\ntimeout_seconds = " + "1" * 5000, "is not TOML: Exceeds the limit (4300 digits)"),
        (
            "[lvm]\ntimeout_seconds = 0x" + "f" * 20_000,
            "lvm.timeout_seconds: must be a number from 1 to 3600, not a huge number",
        ),
        (
            "[audit]\nvolume_groups = [0x" + "f" * 20_000 + "]",
            "audit.volume_groups: must be a list of one or more texts, not a huge number",
        ),
    ],
)
def test_one_mistake(tmp_path: Path, text: str, problem: str) -> None:
    (only,) = problems_of(tmp_path, text)
    assert only.startswith(problem)


def test_a_syntax_error_is_told_with_its_place(tmp_path: Path) -> None:
    (problem,) = problems_of(tmp_path, "[lvm]\ndirectory = \n")
    assert problem == "is not TOML: Invalid value (at line 2, column 13)"


def test_text_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "agent.toml"
    path.write_bytes(b"[lvm]\n# caf\xe9\n")
    with pytest.raises(ConfigError) as caught:
        load(path=str(path), environment={}, flags={})
    assert caught.value.problems == ("is not UTF-8 text: byte 0xe9 on line 2",)


def test_files_that_are_none(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    large = tmp_path / "large"
    large.write_bytes(b"#" * (1024 * 1024 + 1))
    dangling = tmp_path / "dangling"
    dangling.symlink_to(tmp_path / "nowhere")
    for path, problem in (
        (tmp_path / "absent", "can't be read: No such file or directory"),
        (tmp_path, "can't be read: Is a directory"),
        (fifo, "is not a regular file"),
        (Path("/dev/null"), "is not a regular file"),
        (large, "is larger than 1 MiB"),
        (dangling, "can't be read: No such file or directory"),
    ):
        with pytest.raises(ConfigError) as caught:
            load(path=str(path), environment={}, flags={})
        assert caught.value.problems == (problem,), path


def test_a_default_file_that_can_not_be_read_is_no_absent_file(tmp_path: Path) -> None:
    dangling = tmp_path / "agent.toml"
    dangling.symlink_to(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="No such file or directory"):
        load(path=None, environment={}, flags={}, default_path=str(dangling))


FILE = '[lvm]\ndirectory = "/file"\ntimeout_seconds = 11\n[audit]\nvolume_groups = ["file"]\n'


def test_flag_beats_environment_beats_file_beats_default(tmp_path: Path) -> None:
    path = tmp_path / "agent.toml"
    path.write_text(FILE, encoding="utf-8")
    loaded = load(
        path=str(path),
        environment={"AGENT_LVM_DIRECTORY": "/env", "AGENT_AUDIT_VOLUME_GROUPS": "one, two"},
        flags={"lvm.directory": "/flag"},
    )
    assert loaded.settings.lvm.directory == "/flag"
    assert loaded.settings.audit.volume_groups == ("one", "two")
    assert loaded.settings.lvm.timeout_seconds == 11
    assert loaded.settings.log.level == "info"
    assert [
        loaded.origin_of(path)
        for path in ("lvm.directory", "audit.volume_groups", "lvm.timeout_seconds", "log.level")
    ] == [Origin.FLAG, Origin.ENVIRONMENT, Origin.FILE, Origin.DEFAULT]


def test_a_mistake_in_the_file_is_told_even_when_a_flag_beats_it(tmp_path: Path) -> None:
    path = tmp_path / "agent.toml"
    path.write_text("[lvm]\ndirectory = 5\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"lvm\.directory: must be text, not 5"):
        load(path=str(path), environment={}, flags={"lvm.directory": "/flag"})


def test_the_none_flag_replaces_the_whole_section(tmp_path: Path) -> None:
    path = tmp_path / "agent.toml"
    path.write_text('[inventory]\nkind = "file"\npath = "/x"\n', encoding="utf-8")
    loaded = load(path=str(path), environment={}, flags={"inventory.kind": "none"})
    assert (loaded.settings.inventory.kind, loaded.settings.inventory.path) == ("none", None)


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("AGENT_LVM_TIMEOUT_SECONDS", "soon", "must be a number from 1 to 3600, not 'soon'"),
        ("AGENT_LVM_TIMEOUT_SECONDS", "1e9", "must be a number from 1 to 3600, not '1e9'"),
        ("AGENT_LVM_TIMEOUT_SECONDS", "nan", "must be a number from 1 to 3600, not 'nan'"),
        ("AGENT_AUDIT_VOLUME_GROUPS", "", "the name is empty"),
        ("AGENT_AUDIT_VOLUME_GROUPS", "a,,b", "the name is empty"),
        ("AGENT_LVM_DIRECTROY", "/x", "unknown environment variable (did you mean AGENT_LVM_DIRECTORY"),
    ],
)
def test_mistakes_in_the_environment(tmp_path: Path, name: str, text: str, problem: str) -> None:
    (only,) = problems_of(tmp_path, "", **{name: text})
    assert only.startswith(f"{name}: {problem}")


def test_variables_of_others_are_left_alone(tmp_path: Path) -> None:
    """Build servers set AGENT_NAME and the like."""
    loaded = load_text(tmp_path, "", AGENT_NAME="builder-7", AGENT_TOOLSDIRECTORY="/opt", PATH="/bin")
    assert loaded.settings == Settings()


def test_numbers_and_optional_texts_come_from_the_environment(tmp_path: Path) -> None:
    loaded = load_text(tmp_path, "", AGENT_LVM_TIMEOUT_SECONDS="2.5", AGENT_AGENT_HOSTNAME="controller-1")
    assert loaded.settings.lvm.timeout_seconds == 2.5
    assert loaded.settings.agent.hostname == "controller-1"


def test_systemd_names_the_state_directory(tmp_path: Path) -> None:
    given = {"STATE_DIRECTORY": "/var/lib/a:/var/lib/b"}
    assert load_text(tmp_path, "", **given).settings.agent.state_directory == "/var/lib/a"
    text = '[agent]\nstate_directory = "/own"\n'
    assert load_text(tmp_path, text, **given).settings.agent.state_directory == "/own"


def test_what_is_shown_is_a_valid_file_with_the_same_meaning(tmp_path: Path) -> None:
    text = FILE + '[agent]\nhostname = "a\\"b\\u00e9"\n[inventory]\nkind = "file"\npath = "/x y"\n'
    loaded = load_text(tmp_path, text)
    again = load_text(tmp_path, show(loaded))
    assert again.settings == loaded.settings


def test_what_is_shown_says_who_set_it(tmp_path: Path) -> None:
    path = tmp_path / "agent.toml"
    path.write_text("[lvm]\ntimeout_seconds = 11\n", encoding="utf-8")
    loaded = load(
        path=str(path),
        environment={"AGENT_LOG_LEVEL": "debug"},
        flags={"audit.volume_groups": ("a", "b")},
    )
    lines = show(loaded).splitlines()
    assert lines[0] == f"# file: {path}"
    assert "timeout_seconds = 11  # file" in lines
    assert 'level = "debug"  # environment' in lines
    assert 'volume_groups = ["a", "b"]  # flag' in lines
    assert 'directory = "/usr/sbin"  # default' in lines
    assert "# hostname =  # default" in lines


def test_every_key_is_documented_and_has_a_valid_default() -> None:
    keys = list_keys()
    assert len({key.variable for key in keys}) == len(keys)
    for key in keys:
        assert key.description, key.path
        assert msgspec.convert(key.default, type=key.type) == key.default, key.path


def test_the_shown_defaults_are_toml(tmp_path: Path) -> None:
    loaded = load(path=None, environment={}, flags={}, default_path=str(tmp_path / "absent"))
    document = tomllib.loads(show(loaded))
    assert document["lvm"] == {"directory": "/usr/sbin", "timeout_seconds": 30}
