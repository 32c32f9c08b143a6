"""A pod's fields from its machine's instance type, and the priority of the owner's settings."""

import re

import pytest

from muster.api.document import JSON
from muster.api.field_problems import InvalidResource
from muster.api.json_fields import read_mapping
from muster.core.instances import INSTANCE_TYPES, describe_instance, find_instance_type
from muster.render.kubernetes.devices import resolve_procs_per_node
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.not_renderable import NotRenderable
from muster.render.kubernetes.pod_patch import get_entries
from support.rows import check_rows
from unit.render.kubernetes.cluster_jobs import cluster_job, pod_spec, trainer, with_trainer

P5: Fields = {"instanceType": "p5.48xlarge"}
TYPE = {"SM_CURRENT_INSTANCE_TYPE": "ml.p5.48xlarge"}
GPU_TAINT = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
NEURON_TAINT = {"key": "aws.amazon.com/neuron", "operator": "Exists", "effect": "NoSchedule"}


def resources(**spec: JSON) -> Fields:
    return read_mapping(trainer(cluster_job(**{"nodePool": P5, **spec})).get("resources"))


def limits(**spec: JSON) -> Fields:
    return read_mapping(resources(**spec).get("limits"))


def variables(**spec: JSON) -> dict[JSON, JSON]:
    result = trainer(cluster_job(**{"nodePool": P5, **spec}))
    return {str(variable["name"]): variable.get("value") for variable in get_entries(result, "env")}


GPUS_AND_EFA_DEVICES_ROWS: list[tuple[str, int, int]] = [
    ("p3.2xlarge", 1, 0),
    ("p3.8xlarge", 4, 0),
    ("p3.16xlarge", 8, 0),
    ("p3dn.24xlarge", 8, 1),
    ("p4d.24xlarge", 8, 4),
    ("p4de.24xlarge", 8, 4),
    ("p5.4xlarge", 1, 1),
    ("p5.48xlarge", 8, 32),
    ("p5e.48xlarge", 8, 32),
    ("p5en.48xlarge", 8, 16),
    ("p6-b200.48xlarge", 8, 8),
    ("p6-b300.48xlarge", 8, 16),
    ("g4dn.xlarge", 1, 0),
    ("g4dn.12xlarge", 4, 1),
    ("g5.4xlarge", 1, 0),
    ("g5.24xlarge", 4, 1),
    ("g6.48xlarge", 8, 1),
    ("g6e.16xlarge", 1, 1),
    ("g6e.24xlarge", 4, 2),
    ("g6e.48xlarge", 8, 4),
]


def test_gpus_and_efa_devices() -> None:
    def check_row(name: str, gpus: int, efa: int) -> None:
        instance = find_instance_type(name)
        assert instance is not None
        assert (instance.gpus, instance.efa, instance.neuron_chips) == (gpus, efa, 0)

    check_rows(GPUS_AND_EFA_DEVICES_ROWS, lambda row: check_row(*row))


@pytest.mark.parametrize(
    ("name", "chips", "cores", "efa"),
    [("trn1.32xlarge", 16, 32, 8), ("trn1n.32xlarge", 16, 32, 16), ("trn2.48xlarge", 16, 64, 16)],
)
def test_chips_and_cores(name: str, chips: int, cores: int, efa: int) -> None:
    instance = find_instance_type(name)
    assert instance is not None
    assert (instance.gpus, instance.neuron_chips, instance.neuron_cores, instance.efa) == (0, chips, cores, efa)


def test_every_type_has_devices_and_a_sentence() -> None:
    for name, facts in INSTANCE_TYPES.items():
        assert re.fullmatch(r"[a-z0-9-]+\.(\d*x)?large", name)
        assert bool(facts.gpus) != bool(facts.neuron_chips)
        assert facts.neuron_cores % max(facts.neuron_chips, 1) == 0
        assert facts.efa or not facts.huge_pages_mib
        # a part of the devices gets whole pages of 2 MiB
        assert facts.huge_pages_mib % (2 * max(facts.efa, 1)) == 0
        assert describe_instance(facts).endswith(("EFA devices", "EFA device"))


def test_a_whole_machine_gets_all_that_it_has() -> None:
    assert limits() == {"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 32, "hugepages-2Mi": "5120Mi"}
    assert resources()["requests"] == {"memory": "8000Mi"}
    assert variables() == {"FI_EFA_USE_HUGE_PAGE": "0", **TYPE}
    assert GPU_TAINT in get_entries(pod_spec(cluster_job(nodePool=P5)), "tolerations")


def test_chips_are_asked_for_whole() -> None:
    pool: Fields = {"instanceType": "trn2.48xlarge"}
    assert limits(nodePool=pool) == {"aws.amazon.com/neuron": 16, "vpc.amazonaws.com/efa": 16}
    assert NEURON_TAINT in get_entries(pod_spec(cluster_job(nodePool=pool)), "tolerations")


@pytest.mark.parametrize("name", sorted(INSTANCE_TYPES))
@pytest.mark.parametrize("efa", ["Auto", "None"])
def test_none_of_the_outdated_variables_is_set(name: str, efa: str) -> None:
    """They are for old software; with today's they have no effect, make EFA slow or break a fork."""
    result = variables(nodePool={"instanceType": name}, network={"efa": efa})
    outdated = {"FI_PROVIDER", "NCCL_PROTO", "FI_EFA_USE_DEVICE_RDMA", "RDMAV_FORK_SAFE", "FI_EFA_FORK_SAFE"}
    assert not outdated & result.keys()


def test_nothing_is_privileged() -> None:
    def check(name: str) -> None:
        job = cluster_job(nodePool={"instanceType": name})
        assert "securityContext" not in trainer(job)
        assert "hostNetwork" not in pod_spec(job)

    check_rows(sorted(INSTANCE_TYPES), check)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"resources": {"limits": {"nvidia.com/gpu": 4}}}, {"nvidia.com/gpu": 4}),
        ({"resources": {"limits": {"nvidia.com/mig-1g.10gb": 1}}}, {"nvidia.com/mig-1g.10gb": 1}),
        ({"resources": {"claims": [{"name": "gpus"}]}}, {}),
        ({"nodes": 1}, {"nvidia.com/gpu": 8}),
        ({"network": {"efa": "None"}}, {"nvidia.com/gpu": 8}),
        (
            {"nodes": 1, "network": {"efa": "All"}},
            {"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 32, "hugepages-2Mi": "5120Mi"},
        ),
        (
            {"resources": {"limits": {"nvidia.com/gpu": "8", "hugepages-1Gi": "4Gi", "cpu": 90}}},
            {"nvidia.com/gpu": "8", "hugepages-1Gi": "4Gi", "cpu": 90, "vpc.amazonaws.com/efa": 32},
        ),
        (
            {"resources": {"limits": {"vpc.amazonaws.com/efa": 4}}},
            {"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 4, "hugepages-2Mi": "640Mi"},
        ),
        (
            {"resources": {"limits": {"vpc.amazonaws.com/efa": "32"}}},
            {"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": "32", "hugepages-2Mi": "5120Mi"},
        ),
        (
            {"resources": {"limits": {"vpc.amazonaws.com/efa": 8, "hugepages-2Mi": "64Mi"}}},
            {"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 8, "hugepages-2Mi": "64Mi"},
        ),
        (
            {"resources": {"limits": {"vpc.amazonaws.com/efa": 0}}},
            {"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 0},
        ),
        (
            {"nodePool": {"instanceType": "g5.48xlarge"}, "resources": {"limits": {"vpc.amazonaws.com/efa": 1}}},
            {"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 1},
        ),
        (
            {
                "nodePool": {"instanceType": "trn2.48xlarge"},
                "resources": {"limits": {"aws.amazon.com/neuroncore": 128}},
            },
            {"aws.amazon.com/neuroncore": 128, "vpc.amazonaws.com/efa": 16},
        ),
        (
            {"nodePool": {"instanceType": "trn2.48xlarge"}, "resources": {"limits": {"aws.amazon.com/neuroncore": 32}}},
            {"aws.amazon.com/neuroncore": 32},
        ),
        ({"nodePool": {"instanceType": "m7i.large"}}, {}),
        ({"nodePool": {"instanceType": "g5.xlarge"}}, {"nvidia.com/gpu": 1}),
    ],
)
def test_devices_follow_what_the_owner_says(spec: dict[str, JSON], expected: Fields) -> None:
    assert limits(**spec) == expected


def test_a_request_without_a_limit_is_the_owner_s_word_too() -> None:
    assert limits(template=with_trainer(resources={"requests": {"nvidia.com/gpu": 2}})) == {}


def test_memory_is_requested_only_if_the_user_requests_none() -> None:
    assert "requests" not in resources(resources={"limits": {"memory": "1Ti"}})
    assert resources(resources={"requests": {"cpu": 90}})["requests"] == {"cpu": 90}


def test_the_owner_s_variable_counts() -> None:
    assert variables(env=[{"name": "FI_EFA_USE_HUGE_PAGE", "value": "1"}])["FI_EFA_USE_HUGE_PAGE"] == "1"


def test_a_script_finds_the_type_by_sagemakers_name() -> None:
    assert variables(nodePool={"instanceType": "ml.own"}) == {"SM_CURRENT_INSTANCE_TYPE": "ml.own"}
    own: JSON = {"name": "SM_CURRENT_INSTANCE_TYPE", "value": "local"}
    assert variables(env=[own])["SM_CURRENT_INSTANCE_TYPE"] == "local"
    assert variables(nodePool=None) == {}


def test_efa_of_one_s_own_gets_its_variable() -> None:
    result = variables(nodePool=None, resources={"limits": {"vpc.amazonaws.com/efa": 1}})
    assert result == {"FI_EFA_USE_HUGE_PAGE": "0"}
    assert variables(resources={"limits": {"vpc.amazonaws.com/efa": 0}}) == TYPE


def in_terms(*values: list[str]) -> Fields:
    expressions: list[JSON] = [
        {"matchExpressions": [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": list(each)}]}
        for each in values
    ]
    required: Fields = {"nodeSelectorTerms": expressions}
    return {"spec": {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}}


@pytest.mark.parametrize(
    ("template", "gpus"),
    [
        ({"spec": {"nodeSelector": {"node.kubernetes.io/instance-type": "g5.12xlarge"}}}, 4),
        (in_terms(["g5.12xlarge"]), 4),
        (in_terms(["g5.12xlarge"], ["g5.12xlarge"]), 4),
        (in_terms(["g5.12xlarge", "g5.48xlarge"]), None),
        (in_terms(["g5.12xlarge"], ["g5.48xlarge"]), None),
        ({"spec": {"nodeSelector": {"team": "a"}}}, None),
    ],
)
def test_the_type_is_found_in_a_template_too(template: Fields, gpus: int | None) -> None:
    assert limits(nodePool=None, template=template).get("nvidia.com/gpu") == gpus


def test_a_template_s_type_counts_more_than_the_pool_s() -> None:
    template: Fields = {"spec": {"nodeSelector": {"node.kubernetes.io/instance-type": "g5.xlarge"}}}
    job = cluster_job(nodePool=P5, template=template)
    assert limits(template=template) == {"nvidia.com/gpu": 1}
    assert pod_spec(job)["nodeSelector"] == {"node.kubernetes.io/instance-type": "g5.xlarge"}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"nodePool": None}, "the job names no instance type: set spec.nodePool.instanceType"),
        ({"nodePool": {"instanceType": "x9.large"}}, "muster doesn't know how many EFA devices a x9.large has"),
        ({"nodePool": {"instanceType": "p3.2xlarge"}}, "a p3.2xlarge has no EFA devices"),
        (
            {"network": {"efa": "None"}, "resources": {"limits": {"vpc.amazonaws.com/efa": 1}}},
            "spec.network.efa is None, but resources request vpc.amazonaws.com/efa; remove one of these settings",
        ),
    ],
)
def test_an_efa_that_can_t_be_is_refused(spec: dict[str, JSON], words: str) -> None:
    whole: Fields = {"nodePool": P5, "network": {"efa": "All"}, **spec}
    with pytest.raises(NotRenderable, match=re.escape(words)):
        trainer(cluster_job(**whole))


@pytest.mark.parametrize(
    ("spec", "procs"),
    [
        ({}, 8),
        ({"nodePool": {"instanceType": "trn1.32xlarge"}}, 32),
        ({"nodePool": {"instanceType": "trn2.48xlarge"}}, 64),
        (
            {
                "nodePool": {"instanceType": "trn2.48xlarge"},
                "resources": {"limits": {"aws.amazon.com/neuron": 4}},
            },
            16,
        ),
        ({"resources": {"limits": {"nvidia.com/gpu": 2}}}, 2),
        ({"nodePool": {"instanceType": "m7i.large"}}, 1),
    ],
)
def test_ranks_follow_from_the_type(spec: dict[str, JSON], procs: int) -> None:
    assert resolve_procs_per_node(cluster_job(**{"nodePool": P5, **spec})).spec.procs_per_node == procs


def test_chips_of_an_unknown_type_need_a_number_of_ranks() -> None:
    job = cluster_job(resources={"limits": {"aws.amazon.com/neuron": 4}})
    with pytest.raises(
        InvalidResource, match=r"how many NeuronCores a chip .* of this instance type has; set a number"
    ):
        resolve_procs_per_node(job)
