"""The fields, types and backoffs on the pages about machines and queues equal the code's."""

import re

import pytest

from muster.api.spec.node_pool import NodePool
from muster.core.gang_release import FIRST_BACKOFF_SECONDS, MAX_BACKOFF_SECONDS
from muster.core.instances import INSTANCE_TYPES, find_instance_type
from muster_dev.paths import ROOT

PAGE = (ROOT / "docs" / "node-pools.md").read_text(encoding="utf-8")
QUEUES = (ROOT / "docs" / "queues.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (`p\d[^|]*) \| ([\d, ]+) \| ([\d, ]+) \|$", PAGE, re.MULTILINE)


def test_every_field_has_its_line() -> None:
    for name, field in NodePool.model_fields.items():
        assert f"| `{field.alias or name}` |" in PAGE


def test_every_family_is_in_the_table() -> None:
    families = {name.partition(".")[0] for name in INSTANCE_TYPES}
    assert [name for name in sorted(families) if f"`{name}." not in PAGE and f"`{name}`" not in PAGE] == []


@pytest.mark.parametrize(("types", "count", "efa"), ROWS)
def test_a_row_of_the_table_is_the_code_s(types: str, count: str, efa: str) -> None:
    names = re.findall(r"`([^`]+)`", types)
    names = [name if "." in name[1:] else names[0].partition(".")[0] + name for name in names]
    counts, devices = count.split(", "), efa.split(", ")
    for index, name in enumerate(names):
        facts = find_instance_type(name)
        assert facts is not None, name
        assert (facts.gpus, facts.efa) == (int(counts[index % len(counts)]), int(devices[index % len(devices)]))


def test_the_pauses_are_the_plan_s() -> None:
    first = f"{FIRST_BACKOFF_SECONDS / 2:.0f} to {FIRST_BACKOFF_SECONDS * 1.5:.0f} s"
    assert f"{first}, later up to {MAX_BACKOFF_SECONDS * 1.5 / 60:.0f} minutes" in QUEUES
