"""A copy of a rendered pod is the pod that `render.pod` renders for the other node."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.api.document import JSON
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.pod_copy import copy_pod
from muster.render.kubernetes.render import render_pod
from support.searches import choose_example_count
from unit.render.kubernetes.cluster_jobs import SETTING, cluster_job, with_trainer

CLAIM: Fields = {"persistentVolumeClaim": {"claimName": "data"}}
S3_INPUT: JSON = [{"name": "train", "s3": {"uri": "s3://data/train"}}]
SIDECAR: Fields = {
    "spec": {
        "initContainers": [{"name": "prepare", "image": "i", "command": ["prepare", "--node", "0"]}],
        "containers": [{"name": "sidecar", "image": "i", "command": ["watch", "--node", "0"]}],
    }
}
SPECS: dict[str, Fields] = {
    "torchrun": {},
    "MPI": {"launcher": {"mpi": {}}},
    "direct": {"launcher": {"direct": {}}, "spares": 1},
    "S3": {"inputs": S3_INPUT, "output": {"s3": "s3://data/out"}},
    "volume": {"inputs": [{"name": "train", "volume": CLAIM}]},
    "own Python": {"agent": {"inject": "InitContainer"}},
    "own containers": {"template": SIDECAR},
    "own variable": {"template": with_trainer(env=[{"name": "NODE", "value": "--node"}], args=["--node", "0"])},
    "override": {"nodeOverrides": [{"nodes": "0-3", "template": with_trainer(image="other")}]},
}


@pytest.mark.parametrize("name", SPECS)
@given(
    nodes=st.tuples(st.integers(0, 3), st.integers(0, 3)), replacements=st.tuples(st.integers(0, 9), st.integers(0, 9))
)
@settings(max_examples=choose_example_count(30), deadline=None)
def test_it_is_the_pod_of_the_other_node(name: str, nodes: tuple[int, int], replacements: tuple[int, int]) -> None:
    job = cluster_job(nodes=4, **SPECS[name])
    first, other = (
        render_pod(job, node, replacement, SETTING, ("machine-1",))
        for node, replacement in zip(nodes, replacements, strict=True)
    )
    assert copy_pod(first, "vit", nodes[1], replacements[1]) == other
    assert first == render_pod(job, nodes[0], replacements[0], SETTING, ("machine-1",))
