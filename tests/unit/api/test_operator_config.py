"""The operator's configuration file, valid and invalid."""

import pytest

from muster.api.config.operator import OperatorConfig, read_config
from muster.api.config.sagemaker import AwsEndpoints, SageMakerConfig
from muster.api.document import Document
from muster.api.field_problems import InvalidResource
from muster.api.spec.node_pool import NamedPool
from muster.api.yaml.load import load_documents
from support.rows import check_rows

POOLS = """\
nodePools:
- name: p5
  instanceType: p5.48xlarge
  zone: Same
  sameLabels: [topology.k8s.aws/network-node-layer-3]
- name: cpu
  nodeSelector: {eks.amazonaws.com/nodegroup: cpu}
  tolerations: [{key: team, operator: Exists}]
  machine: Any
"""


def read(text: str) -> OperatorConfig:
    (document,) = load_documents(text, "config.yaml")
    return read_config(document)


def test_pools_are_read_in_their_order() -> None:
    p5, cpu = read(POOLS).node_pools
    assert p5 == NamedPool(
        name="p5", instance_type="p5.48xlarge", zone="Same", same_labels=("topology.k8s.aws/network-node-layer-3",)
    )
    assert (cpu.machine, cpu.node_selector) == ("Any", {"eks.amazonaws.com/nodegroup": "cpu"})
    assert cpu.tolerations == ({"key": "team", "operator": "Exists"},)


def test_where_sagemaker_is_may_be_said() -> None:
    config = read("sagemaker: {region: eu-west-1, endpoints: {sts: 'http://127.0.0.1:1', logs: 'https://logs.test/'}}")
    assert config.sagemaker == SageMakerConfig(
        region="eu-west-1", endpoints=AwsEndpoints(sts="http://127.0.0.1:1", logs="https://logs.test/")
    )


def test_where_s3_is_for_pods_is_no_matter_of_sagemakers() -> None:
    config = read("storage: {s3Endpoint: 'http://minio.storage.svc:9000'}")
    assert config.storage.s3_endpoint == "http://minio.storage.svc:9000"
    assert config.sagemaker == SageMakerConfig()
    assert read("sagemaker: {endpoints: {s3: 'https://s3.test'}}").storage.s3_endpoint is None


def test_a_pool_may_say_its_type_twice() -> None:
    read("nodePools: [{name: a, instanceType: g5.xlarge, nodeSelector: {node.kubernetes.io/instance-type: g5.xlarge}}]")


@pytest.mark.parametrize("text", ["{}", "nodePools: []", "nodePools:\n", "sagemaker:\n"])
def test_a_configuration_may_say_nothing(text: str) -> None:
    assert read(text) == OperatorConfig()


A_PROBLEM_NAMES_ITS_FIELD_ROWS: list[tuple[str, str]] = [
    ("[]", "config.yaml:1: found an empty list; fields are expected: disruptions, nodePools"),
    ("nodePool: []", "config.yaml:1: nodePool: unknown field; did you mean nodePools?"),
    ("nodePools: {}", "config.yaml:1: nodePools: found no fields ({}); a list of at most 500 pools is expected"),
    ("nodePools: [p5]", 'config.yaml:1: nodePools[0]: found the text "p5"; fields are expected: instanceType'),
    ("nodePools: [{zone: Same}]", "config.yaml:1: nodePools[0].name: missing, and required"),
    ("nodePools:\n- name: a\n- {name: b, zone: same}", "config.yaml:3: nodePools[1].zone: found the text"),
    (
        "nodePools:\n- {name: a, typ: p5}",
        "config.yaml:2: nodePools[0].typ: unknown field; allowed here: instanceType",
    ),
    ("nodePools:\n- {name: A}", 'config.yaml:2: nodePools[0].name: found the text "A"; it must match'),
    ("nodePools:\n- {name: a, nodeSelector: {x: 1}}", "config.yaml:2: nodePools[0].nodeSelector.x: found 1; text"),
    (
        "nodePools:\n- {name: a, instanceType: g5.xlarge, nodeSelector: {node.kubernetes.io/instance-type: p3}}",
        'config.yaml:2: nodePools[0]: found instanceType "g5.xlarge" and nodeSelector node.kubernetes.io/inst',
    ),
    ("nodePools:\n- {name: a}\n- {name: a}", 'config.yaml:3: nodePools[1].name: found "a" twice'),
    ("sagemaker: us-west-2", 'config.yaml:1: sagemaker: found the text "us-west-2"; fields are expected'),
    ("sagemaker: {regoin: us-west-2}", "config.yaml:1: sagemaker.regoin: unknown field; did you mean region?"),
    ("sagemaker: {region: west}", 'config.yaml:1: sagemaker.region: found the text "west"; it must match'),
    (
        "sagemaker:\n  endpoints: {log: 'http://logs'}",
        "config.yaml:2: sagemaker.endpoints.log: unknown field; did you mean logs?",
    ),
    (
        "storage: {s3endpoint: 'http://minio'}",
        "config.yaml:1: storage.s3endpoint: unknown field; did you mean s3Endpoint?",
    ),
    ("disruptions: {taint: []}", "config.yaml:1: disruptions.taint: unknown field; did you mean taints?"),
    ("disruptions: {taints: [a b]}", 'config.yaml:1: disruptions.taints[0]: found the text "a b"; it must match'),
    ("storage: {s3Endpoint: minio}", 'config.yaml:1: storage.s3Endpoint: found the text "minio"; it must match'),
    (
        "sagemaker: {endpoints: {s3: s3}}",
        'config.yaml:1: sagemaker.endpoints.s3: found the text "s3"; it must match',
    ),
]


def test_a_problem_names_its_field() -> None:
    def check(text: str, problem: str) -> None:
        with pytest.raises(InvalidResource) as refused:
            read(text)
        assert str(refused.value).startswith(problem)

    check_rows(A_PROBLEM_NAMES_ITS_FIELD_ROWS, lambda row: check(*row))


def test_every_problem_is_reported() -> None:
    with pytest.raises(InvalidResource) as refused:
        read_config(Document({"nodePools": [{"name": "a", "zone": 1}, {"name": "b", "machine": 2}], "pools": 1}))
    assert [problem.path for problem in refused.value.problems] == [
        "pools",
        "nodePools[0].zone",
        "nodePools[1].machine",
    ]
