from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.config.operator import OperatorConfig, read_config
from muster.api.config.tenancy import check_tenancy
from muster.api.document import JSON, Document
from muster.api.field_problems import InvalidResource
from muster.api.validation.validate import validate
from muster.api.yaml.load import load_documents
from unit.api.api_resources import resource, spec

ROLE = "arn:aws:iam::111122223333:role/training"
OTHER = "arn:aws:iam::111122223333:role/training-admin"
COMMIT = "0a" * 20


def refusals(spec_changes: dict[str, JSON], *tenants: JSON, namespace: str = "team-a", region: str = "") -> list[str]:
    job = validate(Document(resource(metadata={"name": "vit", "namespace": namespace}, spec=spec(**spec_changes))))
    config = read_config(Document({"tenancy": list(tenants)}))
    try:
        check_tenancy(job, config.tenancy, region)
    except InvalidResource as refused:
        return [problem.path for problem in refused.problems]
    return []


def bucket(uri: str) -> dict[str, JSON]:
    return {"inputs": [{"name": "train", "s3": {"uri": uri}}]}


def git(url: str) -> dict[str, JSON]:
    return {"source": {"git": {"url": url, "commit": COMMIT}}}


def tenant(**fields: JSON) -> dict[str, JSON]:
    return {"namespaces": ["team-a"], **fields}


INPUT = "spec.inputs[0].s3.uri"
URL = "spec.source.git.url"
DATA: JSON = [{"name": "data", "prefixes": ["team-a/", "shared/images/"]}]


@pytest.mark.parametrize(
    ("uri", "grants", "expected"),
    [
        ("s3://data/x", [], [INPUT]),
        ("s3://data/x", [{"name": "data"}], []),
        ("s3://data", [{"name": "data"}], []),
        ("s3://data-of-others/x", [{"name": "data"}], [INPUT]),
        ("s3://dat/x", [{"name": "data"}], [INPUT]),
        ("s3://data/x", [{"name": "*"}], []),
        ("s3://data/team-a/x", DATA, []),
        ("s3://data/team-a/", DATA, []),
        ("s3://data/shared/images/1/", DATA, []),
        ("s3://data/team-a", DATA, [INPUT]),  # and so is s3://data/team-abc/x
        ("s3://data/team-abc/x", DATA, [INPUT]),
        ("s3://data/shared/", DATA, [INPUT]),
        ("s3://data", DATA, [INPUT]),
        ("s3://data//team-a/x", DATA, [INPUT]),
        ("s3://data/TEAM-A/x", DATA, [INPUT]),
        ("s3://data/team-a%2f..%2fteam-b/x", DATA, [INPUT]),
        ("s3://other/team-a/x", DATA, [INPUT]),
    ],
)
def test_a_bucket_is_used_by_who_may(uri: str, grants: JSON, expected: list[str]) -> None:
    assert refusals(bucket(uri), tenant(buckets=grants)) == expected


@pytest.mark.parametrize(
    ("url", "hosts", "expected"),
    [
        ("https://git.example/a", [], [URL]),
        ("https://git.example/a", ["git.example"], []),
        ("https://git.example:443/a", ["git.example"], []),
        ("https://git.example:8443/a", ["git.example"], [URL]),
        ("https://git.example:8443/a", ["git.example:8443"], []),
        ("https://git.example.evil.example/a", ["git.example"], [URL]),
        ("https://evil-git.example/a", ["git.example"], [URL]),
        ("https://169.254.169.254/a", ["git.example"], [URL]),
        ("https://a.git.example/a", ["git.example"], [URL]),
        ("https://git.example/a", ["*"], []),
    ],
)
def test_code_is_fetched_from_hosts_that_are_listed(url: str, hosts: list[JSON], expected: list[str]) -> None:
    assert refusals(git(url), tenant(gitHosts=hosts)) == expected


def _sagemaker(**fields: JSON) -> dict[str, JSON]:
    return {
        "backend": "SageMaker",
        "output": {"s3": "s3://data/out"},
        "image": "111122223333.dkr.ecr.us-west-2.amazonaws.com/train:1",
        "sagemaker": {"role": ROLE, "instanceType": "ml.m5.large", "region": "us-west-2", **fields},
    }


def _tensorflow(model_dir: str) -> dict[str, JSON]:
    return {"name": "TensorFlow", "version": "2.16", "pythonVersion": "py310", "modelDir": model_dir}


@pytest.mark.parametrize(
    ("fields", "grants", "expected"),
    [
        ({}, {"roles": [ROLE]}, []),
        ({}, {}, ["spec.sagemaker.role"]),
        ({"role": OTHER}, {"roles": [ROLE]}, ["spec.sagemaker.role"]),
        ({}, {"assumeRoleArns": [ROLE]}, ["spec.sagemaker.role"]),
        ({"assumeRoleArn": OTHER}, {"roles": [ROLE, OTHER]}, ["spec.sagemaker.assumeRoleArn"]),
        ({"assumeRoleArn": OTHER}, {"roles": [ROLE], "assumeRoleArns": [OTHER]}, []),
        ({"codeLocation": "s3://code/x"}, {"roles": [ROLE]}, ["spec.sagemaker.codeLocation"]),
        ({"tensorBoard": {"s3": "s3://code/x"}}, {"roles": [ROLE]}, ["spec.sagemaker.tensorBoard.s3"]),
        ({"framework": _tensorflow("/opt/ml/model")}, {"roles": [ROLE]}, []),
        ({"framework": _tensorflow("s3://data/x")}, {"roles": [ROLE]}, []),
        ({"framework": _tensorflow("s3://code/x")}, {"roles": [ROLE]}, ["spec.sagemaker.framework.modelDir"]),
        # as only some programs would parse it
        ({"framework": _tensorflow("S3://data/x")}, {"roles": [ROLE]}, ["spec.sagemaker.framework.modelDir"]),
    ],
)
def test_roles_and_all_places_of_a_training_job_are_listed(
    fields: dict[str, JSON], grants: dict[str, JSON], expected: list[str]
) -> None:
    assert refusals(_sagemaker(**fields), tenant(buckets=[{"name": "data"}], **grants)) == expected


def test_without_a_word_in_the_configuration_nothing_is_allowed() -> None:
    changes: dict[str, JSON] = {**_sagemaker(), **git("https://git.example/a"), "checkpoint": {"s3": "s3://data/c"}}
    job = validate(Document(resource(spec=spec(**changes))))
    with pytest.raises(InvalidResource) as caught:
        check_tenancy(job, OperatorConfig().tenancy, "")
    assert [problem.path for problem in caught.value.problems] == [
        URL,
        "spec.checkpoint.s3",
        "spec.output.s3",
        "spec.sagemaker.role",
    ]
    assert caught.value.problems[1].message == (
        'found "s3://data/c"; this location in S3 is not allowed in namespace default: '
        "ask the operator's administrator to add it to tenancy[].buckets"
    )


def test_a_job_that_uses_nothing_of_others_needs_no_entry() -> None:
    assert refusals({"source": {"inline": {"files": {"a.py": ""}}}}) == []


def test_entries_are_for_their_namespaces_and_add_up() -> None:
    mine = tenant(buckets=[{"name": "data"}])
    all_of_us: JSON = {"namespaces": ["*"], "gitHosts": ["git.example"]}
    changes = {**bucket("s3://data/x"), **git("https://git.example/a")}
    assert refusals(changes, mine, all_of_us) == []
    assert refusals(changes, mine, all_of_us, namespace="team-b") == [INPUT]
    assert refusals(changes, mine, all_of_us, namespace="team-aa") == [INPUT]


_KEYS = st.text("ab/.-%", max_size=12)


@given(_KEYS, _KEYS)
def test_a_prefix_lets_through_what_lies_below_it_and_nothing_else(key: str, name: str) -> None:
    prefix = f"{name.strip('/').replace('//', '/') or 'a'}/".replace("//", "/")
    try:
        problems = refusals(bucket(f"s3://data/{key}"), tenant(buckets=[{"name": "data", "prefixes": [prefix]}]))
    except InvalidResource:
        return  # not a path that a job may name
    assert (problems == []) == key.startswith(prefix)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("tenancy: {}", "tenancy"),
        ("tenancy: [{}]", "tenancy[0].namespaces"),
        ("tenancy: [{namespaces: []}]", "tenancy[0].namespaces"),
        ("tenancy: [{namespaces: [team-*]}]", "tenancy[0].namespaces[0]"),
        ("tenancy: [{namespaces: [a], bucket: []}]", "tenancy[0].bucket"),
        ("tenancy: [{namespaces: [a], buckets: [data]}]", "tenancy[0].buckets[0]"),
        ("tenancy: [{namespaces: [a], buckets: [{name: 'data-*'}]}]", "tenancy[0].buckets[0].name"),
        (
            "tenancy: [{namespaces: [a], buckets: [{name: data, prefixes: [team-a]}]}]",
            "tenancy[0].buckets[0].prefixes[0]",
        ),
        ("tenancy: [{namespaces: [a], buckets: [{name: data, prefixes: ['/']}]}]", "tenancy[0].buckets[0].prefixes[0]"),
        ("tenancy: [{namespaces: [a], gitHosts: ['*.example']}]", "tenancy[0].gitHosts[0]"),
        ("tenancy: [{namespaces: [a], gitHosts: ['https://a.example']}]", "tenancy[0].gitHosts[0]"),
        ("tenancy: [{namespaces: [a], gitHosts: ['g\u0131t.example']}]", "tenancy[0].gitHosts[0]"),
        ("tenancy: [{namespaces: [a], awsResources: ['*']}]", "tenancy[0].awsResources[0]"),
        ("tenancy: [{namespaces: [a], awsResources: ['subnet-*']}]", "tenancy[0].awsResources[0]"),
        ("tenancy: [{namespaces: [a], awsResources: [my-key]}]", "tenancy[0].awsResources[0]"),
        ("tenancy: [{namespaces: [a], roles: ['*']}]", "tenancy[0].roles[0]"),
        ("tenancy: [{namespaces: [a], roles: ['arn:aws:iam::111122223333:role/*']}]", "tenancy[0].roles[0]"),
    ],
)
def test_what_an_owner_writes_is_what_he_means(text: str, at: str) -> None:
    (document,) = load_documents(text, "config.yaml")
    with pytest.raises(InvalidResource) as caught:
        read_config(document)
    assert caught.value.problems[0].path == at


CODE = "spec.sagemaker.codeLocation"


@pytest.mark.parametrize(
    ("output", "location", "expected"),
    [
        ("s3://data/team-a/out", None, [CODE]),
        ("s3://data/team-a/out", "s3://data/team-a/code", []),
        ("s3://data/team-a/out", "s3://data/team-b/code", [CODE]),
        ("s3://all/out", None, []),
        (None, None, ["spec.output.s3"]),
        (None, "s3://all/code", ["spec.output.s3"]),
    ],
)
def test_code_is_put_only_where_the_namespace_may_write(
    output: str | None, location: str | None, expected: list[str]
) -> None:
    block: dict[str, JSON] = {"role": ROLE, "instanceType": "ml.c5.xlarge", "region": "us-west-2"}
    changes: dict[str, JSON] = {"backend": "SageMaker", "image": "i", "sagemaker": block}
    if location is not None:
        block["codeLocation"] = location
    if output is not None:
        changes["output"] = {"s3": output}
    grants: JSON = [{"name": "data", "prefixes": ["team-a/"]}, {"name": "all"}]
    assert refusals(changes, tenant(buckets=grants, roles=[ROLE])) == expected


@pytest.mark.parametrize(
    ("bucket_name", "own_region", "default_region", "expected"),
    [
        ("sagemaker-us-west-2-111122223333", "us-west-2", "", []),
        ("sagemaker-us-west-2-111122223333", None, "us-west-2", []),
        ("sagemaker-us-west-2-111122223333", "us-west-2", "eu-west-1", []),
        ("sagemaker-us-west-2-111122223333", "eu-west-1", "us-west-2", ["spec.output.s3"]),
        # of another account than the role, and with it the training job
        ("sagemaker-us-west-2-444455556666", "us-west-2", "", ["spec.output.s3"]),
        ("data", "us-west-2", "", ["spec.output.s3"]),
        # without an account, which another rule refuses
        ("data", None, "", []),
    ],
)
def test_sagemakers_own_bucket_is_listed_like_any_other(
    bucket_name: str, own_region: str | None, default_region: str, expected: list[str]
) -> None:
    block: dict[str, JSON] = {"role": ROLE, "instanceType": "ml.c5.xlarge"}
    if own_region is not None:
        block["region"] = own_region
    changes: dict[str, JSON] = {"backend": "SageMaker", "image": "i", "sagemaker": block}
    grants = tenant(roles=[ROLE], buckets=[{"name": bucket_name}])
    assert refusals(changes, grants, region=default_region) == expected


KEY = "arn:aws:kms:us-west-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
PLAN = "arn:aws:sagemaker:us-west-2:111122223333:training-plan/team-b"
LAMBDA = "arn:aws:lambda:us-west-2:111122223333:function:registry"
FILES = "fs-0123456789abcdef0"


@pytest.mark.parametrize(
    ("fields", "listed", "expected"),
    [
        ({"volumeKmsKey": KEY}, [], ["spec.sagemaker.volumeKmsKey"]),
        ({"volumeKmsKey": KEY}, [KEY], []),
        # the same key under another name: muster compares the text
        ({"volumeKmsKey": "1234abcd-12ab-34cd-56ef-1234567890ab"}, [KEY], ["spec.sagemaker.volumeKmsKey"]),
        ({"outputKmsKey": "alias/team-b"}, ["alias/team"], ["spec.sagemaker.outputKmsKey"]),
        ({"outputKmsKey": "alias/team-a"}, ["alias/team-a"], []),
        ({"trainingPlanArn": PLAN}, [KEY], ["spec.sagemaker.trainingPlanArn"]),
        ({"trainingPlanArn": PLAN}, [PLAN], []),
        (
            {"vpc": {"subnets": ["subnet-1", "subnet-2"], "securityGroupIds": ["sg-1"]}},
            ["subnet-1"],
            ["spec.sagemaker.vpc.subnets[1]", "spec.sagemaker.vpc.securityGroupIds[0]"],
        ),
        ({"vpc": {"subnets": ["subnet-1"], "securityGroupIds": ["sg-1"]}}, ["subnet-1", "sg-1"], []),
        (
            {"imageRepository": {"access": "Platform", "credentialsProviderArn": LAMBDA}},
            [],
            ["spec.sagemaker.imageRepository.credentialsProviderArn"],
        ),
    ],
)
def test_what_else_of_aws_a_job_names_is_listed(
    fields: dict[str, JSON], listed: list[JSON], expected: list[str]
) -> None:
    grants = tenant(roles=[ROLE], buckets=[{"name": "data"}], awsResources=listed)
    assert refusals(_sagemaker(**fields), grants) == expected


def test_a_file_system_is_listed() -> None:
    channel: JSON = {"name": "train", "sagemaker": {"fileSystem": {"type": "EFS", "id": FILES, "path": "/data"}}}
    vpc: JSON = {"subnets": ["subnet-1"], "securityGroupIds": ["sg-1"]}
    changes: dict[str, JSON] = {**_sagemaker(vpc=vpc), "inputs": [channel]}
    grants: dict[str, JSON] = {"roles": [ROLE], "buckets": [{"name": "data"}]}
    others: list[JSON] = ["subnet-1", "sg-1"]
    assert refusals(changes, tenant(awsResources=others, **grants)) == ["spec.inputs[0].sagemaker.fileSystem.id"]
    assert refusals(changes, tenant(awsResources=[*others, FILES], **grants)) == []


def test_what_only_the_jobs_role_reads_is_the_roles_to_allow() -> None:
    """The operator passes these on and does not interpret them."""
    elsewhere = "s3://of-team-b/x"
    changes: dict[str, JSON] = {
        **_sagemaker(rawHyperparameters={"data": elsewhere}),
        "hyperparameters": {"model": elsewhere},
        "env": [{"name": "DATA", "value": elsewhere}],
    }
    assert refusals(changes, tenant(roles=[ROLE], buckets=[{"name": "data"}])) == []
