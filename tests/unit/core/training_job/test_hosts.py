"""SageMaker's names for a training job's instances."""

import pytest

from muster.api.spec.sagemaker.distribution import Distribution, StrategyWithoutSettings
from muster.api.spec.sagemaker.resources import InstanceGroup
from muster.api.spec.sagemaker.spec import SageMaker
from muster.core.training_job.hosts import list_host_names, list_node_names
from unit.core.training_job.training_world import job


@pytest.mark.parametrize(
    ("nodes", "names"),
    [(1, ["algo-1"]), (3, ["algo-1", "algo-2", "algo-3"]), (11, ["algo-1", "algo-10", "algo-11", "algo-2", "algo-3"])],
)
def test_hosts_are_sorted_as_text(nodes: int, names: list[str]) -> None:
    assert list(list_host_names(nodes))[:5] == names
    assert len(set(list_host_names(nodes))) == nodes


@pytest.mark.parametrize(
    ("instance_group", "names"),
    [
        ("train", ("train-1", "train-2", "data-1")),
        ("data", ("data-1", "train-1", "train-2")),
        (None, ("algo-1", "algo-2", "algo-3")),
    ],
)
def test_nodes_of_several_instance_groups_have_the_names_of_their_groups(
    instance_group: str | None, names: tuple[str, ...]
) -> None:
    groups = (
        InstanceGroup(name="train", instance_type="ml.p4d.24xlarge", instance_count=2),
        InstanceGroup(name="data", instance_type="ml.c5.xlarge", instance_count=1),
    )
    distribution = (
        Distribution(torch_distributed=StrategyWithoutSettings(), instance_group=instance_group)
        if instance_group is not None
        else None
    )
    block = SageMaker(instance_groups=groups, distribution=distribution)
    spec = job().spec.model_copy(update={"nodes": 3, "sagemaker": block})
    assert list_node_names(spec) == names
