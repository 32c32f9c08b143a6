"""The operator's defaults for a job's spec, and that a running gang keeps those of its start."""

import pytest

from muster.api.field_problems import InvalidResource
from muster.api.spec.node_pool import NamedPool
from muster.api.status.status import RankStatus, Status
from muster.core.world import get_procs_per_node
from muster.render.kubernetes.apply_defaults import apply_defaults
from unit.render.kubernetes.cluster_jobs import cluster_job

POOLS = (NamedPool(name="gpus", instance_type="p5.48xlarge"),)
JOB = cluster_job(nodePool={"name": "gpus"})
RUNS = Status(start_time="2026-11-21T04:05:00Z", ranks=RankStatus(world=16, running=16, ready="16/16"), attempt=1)


def test_pool_and_ranks_follow_from_the_configuration() -> None:
    result = apply_defaults(JOB, Status(), POOLS)
    assert get_procs_per_node(result) == 8
    assert result.spec.node_pool is not None
    assert result.spec.node_pool.instance_type == "p5.48xlarge"


def test_an_unknown_pool_is_refused_before_the_start() -> None:
    with pytest.raises(InvalidResource, match="has no node pools"):
        apply_defaults(JOB, Status(), ())


@pytest.mark.parametrize("pools", [(), (NamedPool(name="gpus", instance_type="trn1.32xlarge"),)])
def test_a_world_that_runs_stays_what_it_is(pools: tuple[NamedPool, ...]) -> None:
    assert get_procs_per_node(apply_defaults(JOB, RUNS, pools)) == 8
