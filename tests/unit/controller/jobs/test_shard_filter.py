"""The filter decides from the text of a status as from the parsed status."""

import json

import pytest

from muster.api.document import JSON
from muster.api.status.status import DEFAULT_STATUS
from muster.controller.jobs.shard_filter import ShardFilter
from muster.core.shard import Shard
from muster.objects.kubernetes.kinds import Object

STATUSES: tuple[dict[str, JSON], ...] = (
    {},
    dict(DEFAULT_STATUS),
    {"phase": "Running"},
    {"phase": "Running", "shard": 1},
    {"message": 'rank 0: the "shard" is missing'},
    {"message": '"shard"', "shard": 2},
)


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("shard", [Shard(), Shard(0, 3), Shard(1, 3), Shard(2, 3)])
def test_the_text_of_a_status_decides_as_the_parsed_one(status: dict[str, JSON], shard: Shard) -> None:
    text = json.dumps(status, separators=(",", ":"))
    source: Object = {"metadata": {"uid": "a"}, "status": text}
    assert ShardFilter(shard).has_job(source) == shard.has_job("a", status)


@pytest.mark.parametrize("shard", [Shard(), Shard(0, 3), Shard(1, 3), Shard(2, 3)])
def test_a_job_without_a_status_is_new(shard: Shard) -> None:
    assert ShardFilter(shard).has_job({"metadata": {"uid": "a"}}) == shard.has_job("a", {})


def test_a_status_that_muster_can_not_read_belongs_to_a_shard_by_its_uid() -> None:
    source: Object = {"metadata": {"uid": "a"}, "status": '{"shard":' + "[" * 500}
    assert [ShardFilter(Shard(index, 2)).has_job(source) for index in range(2)].count(True) == 1
