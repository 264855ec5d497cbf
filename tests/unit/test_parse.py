"""Decoding LVM's reports: captured ones of every shape, and everything that is none."""

import json
import re
from typing import Any

import pytest
from fakelvm import DATA

from agent.core.extents.space import physical_extents
from agent.core.lvm.decode import ReportError
from agent.core.lvm.parse import (
    VisibleGroup,
    are_same_revision,
    join,
    parse_lvs,
    parse_vgs,
    parse_visible_groups,
    parse_volume_group,
)
from agent.core.models import Area, LogicalVolume, PhysicalVolume, Segment, VolumeGroup

Json = dict[str, Any]


def captured(case: str) -> tuple[bytes, bytes]:
    return (DATA / case / "vgs.json").read_bytes(), (DATA / case / "lvs.json").read_bytes()


def load(case: str, name: str) -> VolumeGroup:
    return parse_volume_group(*captured(case), name)


def find(group: VolumeGroup, name: str) -> LogicalVolume:
    lv = group.find(name)
    assert lv is not None
    return lv


def test_the_bug_reports_machine() -> None:
    group = load("bug-healthy", "cgts-vg")
    assert (group.seqno, group.extent_size_bytes, group.size_bytes) == (13, 33554432, 192166232064)
    assert (group.extent_count, group.free_extents, group.used_extents) == (5727, 517, 5210)
    assert (group.attributes, group.is_exported, group.missing_pv_count) == ("wz--n-", False, 0)
    assert group.physical_volumes == (
        PhysicalVolume(
            name="/dev/loop0",
            extent_count=5727,
            allocated_extents=5210,
            is_allocatable=True,
            is_missing=False,
        ),
    )
    assert {lv.name: lv.extents for lv in group.logical_volumes} == {
        "backup-lv": 800,
        "ceph-mon-lv": 640,
        "docker-lv": 960,
        "dockerdistribution-lv": 512,
        "etcd-lv": 160,
        "extension-lv": 32,
        "kubelet-lv": 320,
        "log-lv": 250,
        "pgsql-lv": 640,
        "platform-lv": 320,
        "rabbit-lv": 64,
        "scratch-lv": 512,
    }
    assert find(group, "log-lv") == LogicalVolume(
        uuid="92jGsF-QVw3-d6YI-3Ccv-FXga-gE4j-RWUgJL",
        name="log-lv",
        size_bytes=8388608000,
        extents=250,
        is_hidden=False,
        roles=("public",),
        layouts=("linear",),
        attributes="-wi-XX----",
        parent=None,
        origin=None,
        pool=None,
        health=None,
        active=None,
        data_percent=None,
        metadata_percent=None,
        sync_percent=None,
        segments=(
            Segment(
                segtype="linear",
                extents=250,
                stripes=1,
                data_stripes=1,
                data_copies=1,
                areas=(Area(name="/dev/loop0", extents=250),),
            ),
        ),
    )


@pytest.mark.parametrize("case", ["varied", "json-std"])
def test_every_layout(case: str) -> None:
    group = load(case, "var-vg")
    assert (len(group.logical_volumes), group.lv_count) == (28, 19)
    assert [segment.extents for segment in find(group, "docker-lv").segments] == [7680, 512]
    raid = find(group, "raid1-lv")
    assert raid.segments[0].areas == (
        Area(name="raid1-lv_rimage_0", extents=64),
        Area(name="raid1-lv_rimage_1", extents=64),
    )
    image = find(group, "raid1-lv_rimage_1")
    assert (image.is_hidden, image.parent, image.health) == (True, "raid1-lv", "unknown")
    assert image.roles == ("private", "raid", "image")
    assert image.segments[0].areas == (Area(name="/dev/loop3", extents=64),)
    striped = find(group, "striped-lv").segments[0]
    assert (striped.stripes, striped.data_stripes, striped.extents) == (2, 2, 64)
    assert striped.areas == (Area(name="/dev/loop2", extents=32), Area(name="/dev/loop3", extents=32))
    thin = find(group, "thin-snap-1")
    assert (thin.pool, thin.origin, thin.segments[0].areas) == ("thin-pool0", "thin-vol-1", ())
    assert find(group, "pgsql-lv-snap").origin == "pgsql-lv"
    assert sum(physical_extents(group).values()) == group.used_extents == 30886


def test_numbers_and_arrays_of_json_std() -> None:
    group = load("json-std", "var-vg")
    pool = find(group, "thin-pool0")
    assert (pool.active, pool.data_percent, pool.metadata_percent) == (True, 41.5, 10.69)
    assert find(group, "raid1-lv").sync_percent == 100.0
    assert find(group, "scratch-lv").data_percent is None


def test_release_2_03_11() -> None:
    group = load("release-2.03.11", "cgts-vg")
    assert [lv.active for lv in group.logical_volumes[:3]] == [True, False, True]
    assert (group.is_exported, group.physical_volumes[0].is_allocatable) == (False, True)
    assert [lv.name for lv in group.logical_volumes] == [
        lv.name for lv in load("bug-healthy", "cgts-vg").logical_volumes
    ]


def test_release_2_03_40_with_its_log() -> None:
    vgs, lvs = captured("release-2.03.40")
    assert parse_vgs(vgs, "cgts-vg").volume_group.attributes == "wz--n--"
    assert [row.log_type for row in parse_lvs(lvs, "cgts-vg").extras.log] == ["warn", "status"]


def test_the_comma_too_many_in_the_log_of_releases_before_2_03_23() -> None:
    vgs, _ = captured("release-2.03.40")
    broken = vgs.replace(b"}\n    ]\n}\n", b"},\n    ]\n}\n")
    assert broken != vgs
    report = parse_vgs(broken, "cgts-vg")
    assert (len(report.extras.log), report.extras.repairs) == (2, 0)


def test_backslashes_and_control_characters_survive_and_are_counted() -> None:
    vgs, lvs = captured("unescaped")
    volumes = parse_vgs(vgs, "cgts-vg")
    assert volumes.volume_group.physical_volumes[0].name == "/dev/mapper/odd\\x20disk\\"
    assert volumes.extras.repairs == 2
    volume_rows = parse_lvs(lvs, "cgts-vg")
    assert volume_rows.extras.repairs == 2
    scratch = find(join(volumes, volume_rows), "scratch-lv")
    assert scratch.segments[0].areas == (Area(name="/dev/mapper/odd\\x20\tdisk", extents=512),)


def test_an_empty_group() -> None:
    group = load("empty", "e-vg")
    assert (group.logical_volumes, group.lv_count, group.used_extents) == ((), 0, 0)


def test_a_missing_disk() -> None:
    group = load("missing-pv", "miss-vg")
    assert [(pv.name, pv.is_missing, pv.is_allocatable) for pv in group.physical_volumes] == [
        ("/dev/loop6", False, True),
        ("[unknown]", True, True),
    ]
    assert (group.missing_pv_count, group.attributes) == (1, "wz-pn-")
    assert find(group, "gone-lv").health == "partial"
    assert find(group, "gone-lv").segments[0].areas == (Area(name="[unknown]", extents=16),)


def lvs_with(**fields: object) -> bytes:
    """The healthy group's lvs report with some fields of its first row changed; None removes one."""
    document = json.loads(captured("bug-healthy")[1])
    row = document["report"][0]["lv"][0]
    row.update(fields)
    for field in [field for field, value in fields.items() if value is None]:
        del row[field]
    return json.dumps(document).encode()


def vgs_with(**fields: object) -> bytes:
    """The same for the vgs report."""
    document = json.loads(captured("bug-healthy")[0])
    row = document["report"][0]["vg"][0]
    row.update(fields)
    for field in [field for field, value in fields.items() if value is None]:
        del row[field]
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        ("/dev/a:0-799", [("/dev/a", 800)]),
        ("/dev/a:0-399 /dev/b:5-404", [("/dev/a", 400), ("/dev/b", 400)]),
        ("/dev/disk/by-path/pci-0:1:2,3:0-799", [("/dev/disk/by-path/pci-0:1:2,3", 800)]),
        ("/dev/with space:0-799", [("/dev/with space", 800)]),
        ("[hidden_lv]:0-799", [("hidden_lv", 800)]),
        ("[unknown]:0-799", [("[unknown]", 800)]),
        (["/dev/a:0-399", "[x]:5-404"], [("/dev/a", 400), ("x", 400)]),
        ("", []),
        ([], []),
    ],
)
def test_areas(ranges: object, expected: list[tuple[str, int]]) -> None:
    group = parse_volume_group(captured("bug-healthy")[0], lvs_with(seg_pe_ranges=ranges), "cgts-vg")
    areas = find(group, "backup-lv").segments[0].areas
    assert [(area.name, area.extents) for area in areas] == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [("active", True), ("", False), ("unknown", None), (1, True), (0, False), (-1, None), ("-1", None)],
)
def test_active(value: object, expected: bool | None) -> None:  # noqa: FBT001 - a table
    group = parse_volume_group(captured("bug-healthy")[0], lvs_with(lv_active=value), "cgts-vg")
    assert find(group, "backup-lv").active is expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [("", None), ("12.50", 12.5), (12.5, 12.5), ("-1", None), (100, 100.0), ("103.1", 103.1)],
)
def test_percent(value: object, expected: float | None) -> None:
    group = parse_volume_group(captured("bug-healthy")[0], lvs_with(data_percent=value), "cgts-vg")
    assert find(group, "backup-lv").data_percent == expected


def test_segments_are_put_in_order() -> None:
    vgs, lvs = captured("varied")
    document = json.loads(lvs)
    document["report"][0]["lv"].reverse()
    group = parse_volume_group(vgs, json.dumps(document).encode(), "var-vg")
    assert [segment.extents for segment in find(group, "docker-lv").segments] == [7680, 512]


def test_spare_extents_of_a_reshaped_raid_are_no_part_of_its_size() -> None:
    lvs = lvs_with(segtype="raid5", seg_size_pe="802")
    assert find(parse_volume_group(captured("bug-healthy")[0], lvs, "cgts-vg"), "backup-lv").extents == 800


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"vg_name": "other-vg"}, "row 0 is about volume group 'other-vg', not 'cgts-vg'"),
        ({"vg_uuid": None}, "missing required field `vg_uuid` - at `$.report[0].vg[0]`"),
        ({"vg_free_count": "-1"}, "row 0 ('/dev/loop0'): vg_free_count is '-1'"),
        ({"vg_size": "9223372036854775808"}, "vg_size is '9223372036854775808'"),
        ({"vg_size": 10**30}, "vg_size is 1000000000000000000000000000000"),
        ({"vg_size": ""}, "vg_size is ''"),
        ({"vg_size": "178.97g"}, "vg_size is '178.97g'"),
        ({"vg_seqno": ["13"]}, "vg_seqno is ['13']"),
        ({"vg_extent_size": "0"}, "vg_extent_size is '0'"),
        ({"vg_extent_count": "5728"}, "vg_size is 192166232064, not 192199786496"),
        ({"pv_pe_count": "5726"}, "vg_extent_count is 5727, not 5726"),
        ({"vg_free_count": "518"}, "vg_free_count is 518, not 517"),
        ({"vg_free_count": "5728"}, "vg_free_count is 5728, not 517"),
        ({"pv_pe_alloc_count": "5728"}, "above pv_pe_count 5727"),
        ({"pv_count": "2"}, "pv_count is 2, not 1"),
        ({"pv_missing": "perhaps"}, "row 0 ('/dev/loop0'): pv_missing is 'perhaps', neither yes nor no"),
        ({"vg_name": 5}, "vg_name is 5"),
    ],
)
def test_vgs_reports_that_can_not_be(fields: Json, reason: str) -> None:
    with pytest.raises(ReportError, match=re.escape(reason)) as caught:
        parse_volume_group(vgs_with(**fields), captured("bug-healthy")[1], "cgts-vg")
    assert caught.value.program == "vgs"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"vg_name": "other-vg"}, "row 0 is about volume group 'other-vg', not 'cgts-vg'"),
        ({"vg_uuid": "other"}, "not of the same volume group and revision as row 0"),
        ({"lv_size": None}, "missing required field `lv_size` - at `$.report[0].lv[0]`"),
        ({"lv_size": "-1"}, "row 0 ('backup-lv'): lv_size is '-1'"),
        ({"lv_size": "9223372036854775808"}, "lv_size is '9223372036854775808'"),
        ({"lv_size": "26843545601"}, "no multiple of the extent size 33554432"),
        ({"lv_size": "26877100032"}, "801 extents where its segments have 800"),
        ({"lv_size": "26810ll"}, "lv_size is '26810ll'"),
        ({"seg_size_pe": "0"}, "seg_size_pe is '0'"),
        ({"seg_size_pe": ""}, "seg_size_pe is ''"),
        ({"seg_size_pe": "799"}, "800 extents where its segments have 799"),
        ({"segtype": "raid5", "seg_size_pe": "799"}, "800 extents where its segments have 799"),
        ({"seg_start_pe": "1"}, "row 0 ('backup-lv'): seg_start_pe is 1"),
        ({"stripes": "two"}, "stripes is 'two'"),
        ({"seg_pe_ranges": "/dev/loop0"}, "seg_pe_ranges is '/dev/loop0'"),
        ({"seg_pe_ranges": "/dev/loop0:5-4"}, "seg_pe_ranges is '/dev/loop0:5-4'"),
        ({"seg_pe_ranges": "/dev/loop0:0-799 x"}, "no list of NAME:FIRST-LAST"),
        ({"data_percent": "much"}, "data_percent is 'much', not a percentage"),
        ({"data_percent": "nan"}, "data_percent is 'nan', not a percentage"),
        ({"lv_name": "docker-lv"}, "two LVs are 'docker-lv'"),
        ({"lv_name": "[docker-lv]"}, "two LVs are 'docker-lv'"),
        ({"lv_name": ""}, "lv_name is ''"),
        ({"lv_uuid": ""}, "lv_uuid ''"),
        ({"lv_uuid": "mGIZtK-STZc-3agK-xcnh-XQAX-ucfx-AFj0Nh"}, "('docker-lv'): seg_start_pe is 0"),
        ({"lv_name": "[backup-lv]"}, "it lists 11 visible LVs where vgs counts 12"),
    ],
)
def test_lvs_reports_that_can_not_be(fields: Json, reason: str) -> None:
    with pytest.raises(ReportError, match=re.escape(reason)) as caught:
        parse_volume_group(captured("bug-healthy")[0], lvs_with(**fields), "cgts-vg")
    assert caught.value.program == "lvs"


def test_one_uuid_with_two_names_is_refused() -> None:
    document = json.loads(captured("varied")[1])
    rows = document["report"][0]["lv"]
    second = next(row for row in rows if row["lv_name"] == "docker-lv" and row["seg_start_pe"] == "7680")
    second["lv_name"] = "other-lv"
    with pytest.raises(ReportError, match="as is that of 'docker-lv'"):
        parse_volume_group(captured("varied")[0], json.dumps(document).encode(), "var-vg")


def test_two_volume_groups_of_one_name_are_refused() -> None:
    document = json.loads(captured("bug-healthy")[0])
    rows = document["report"][0]["vg"]
    for change in ({"vg_uuid": "other", "pv_uuid": "p"}, {"vg_seqno": "14", "pv_uuid": "p"}, {}):
        changed = {"report": [{"vg": [rows[0], {**rows[0], **change}]}]}
        with pytest.raises(ReportError, match=r"two volume groups|two revisions|two PVs"):
            parse_vgs(json.dumps(changed).encode(), "cgts-vg")


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (b"", "it printed nothing"),
        (b" \n", "it printed nothing"),
        (b"{}", "missing required field `report`"),
        (b'{"report":[]}', "the report has no section"),
        (b'{"report":[{"vg":[]}]}', "complete but has no row"),
        (b'{"report":[{"lv":[]}]}', "missing required field `vg`"),
        (b'{"report":[{"vg":[{}]}]}', "missing required field `vg_name` - at `$.report[0].vg[0]`"),
        (b'{"report":[{"vg":"x"}]}', "Expected `array`"),
        (b"null", "Expected `object`, got `null`"),
        (b"<html>\x1b[2J", "it began with '<html>\\x1b[2J' (10 bytes)"),
        (b"\x00\xff\xfe", "it began with"),
        (b'{ "report": [', "truncated"),
        (b"[" * 100_000, "Expected `object`, got `array`"),
        (b'{"report":' + b"[" * 100_000, "report"),
    ],
)
def test_what_is_no_report(output: bytes, reason: str) -> None:
    with pytest.raises(ReportError, match=re.escape(reason)) as caught:
        parse_vgs(output, "cgts-vg")
    assert len(str(caught.value)) < 600


def test_every_cut_of_a_report_is_refused() -> None:
    for case, output in (("vgs", captured("bug-healthy")[0]), ("lvs", captured("empty")[1])):
        for length in range(len(output.rstrip())):
            with pytest.raises(ReportError):
                (parse_vgs if case == "vgs" else parse_lvs)(
                    output[:length], "cgts-vg" if case == "vgs" else "e-vg"
                )


def test_revisions() -> None:
    vgs, lvs = captured("bug-healthy")
    assert are_same_revision(parse_vgs(vgs, "cgts-vg"), parse_lvs(lvs, "cgts-vg"))
    newer = lvs.replace(b'"vg_seqno":"13"', b'"vg_seqno":"14"')
    assert not are_same_revision(parse_vgs(vgs, "cgts-vg"), parse_lvs(newer, "cgts-vg"))
    with pytest.raises(ReportError, match="not the revision"):
        parse_volume_group(vgs, newer, "cgts-vg")
    other = lvs.replace(b"wSUFCe", b"xxxxxx")
    assert not are_same_revision(parse_vgs(vgs, "cgts-vg"), parse_lvs(other, "cgts-vg"))


def test_no_lv_row_agrees_only_with_an_empty_group() -> None:
    nothing = parse_lvs(captured("empty")[1], "e-vg")
    assert are_same_revision(parse_vgs(captured("empty")[0], "e-vg"), nothing)
    assert not are_same_revision(parse_vgs(captured("bug-healthy")[0], "cgts-vg"), nothing)
    # Hidden LVs alone, such as a pool metadata spare left over, are not counted but occupy extents.
    hidden_only = parse_vgs(vgs_with(lv_count="0"), "cgts-vg")
    assert not are_same_revision(hidden_only, nothing)


def test_visible_groups() -> None:
    output = (
        b'{"report":[{"vg":[{"vg_name":"a","vg_uuid":"u","vg_exported":"1","vg_systemid":""},'
        b'{"vg_name":"b","vg_uuid":"w","vg_exported":"","vg_systemid":"host-b"}]}]}'
    )
    assert parse_visible_groups(output) == (
        VisibleGroup(name="a", uuid="u", is_exported=True, system_id=""),
        VisibleGroup(name="b", uuid="w", is_exported=False, system_id="host-b"),
    )
