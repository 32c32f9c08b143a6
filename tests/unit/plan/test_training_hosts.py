"""SageMaker's names for a training job's instances."""

import pytest

from muster.plan.training_hosts import host_names


@pytest.mark.parametrize(
    ("nodes", "names"),
    [
        (1, ["algo-1"]),
        (3, ["algo-1", "algo-2", "algo-3"]),
        (11, ["algo-1", "algo-10", "algo-11", "algo-2", "algo-3"]),
    ],
)
def test_ranks_are_counted_over_hosts_as_text_is_sorted(nodes: int, names: list[str]) -> None:
    assert list(host_names(nodes))[:5] == names
    assert len(set(host_names(nodes))) == nodes
