from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.document import JSON, Document
from muster.api.load import load
from muster.api.operator_config import OperatorConfig, read_config
from muster.api.problems import InvalidResource
from muster.api.tenancy import check
from muster.api.validate import validate
from unit.api.api_resources import resource, spec

ROLE = "arn:aws:iam::111122223333:role/training"
OTHER = "arn:aws:iam::111122223333:role/training-admin"
COMMIT = "0a" * 20


def refusals(spec_changes: dict[str, JSON], *tenants: JSON, namespace: str = "team-a") -> list[str]:
    job = validate(Document(resource(metadata={"name": "vit", "namespace": namespace}, spec=spec(**spec_changes))))
    config = read_config(Document({"tenancy": list(tenants)}))
    try:
        check(job, config.tenancy)
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
        check(job, OperatorConfig().tenancy)
    assert [problem.path for problem in caught.value.problems] == [
        "spec.checkpoint.s3",
        "spec.output.s3",
        URL,
        "spec.sagemaker.role",
    ]
    assert caught.value.problems[0].message == (
        'found "s3://data/c"; that place in S3 is not allowed to namespace default: whoever runs the operator lists it'
        " there, in tenancy[].buckets"
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
        return  # no place that a job may name
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
        ("tenancy: [{namespaces: [a], roles: ['*']}]", "tenancy[0].roles[0]"),
        ("tenancy: [{namespaces: [a], roles: ['arn:aws:iam::111122223333:role/*']}]", "tenancy[0].roles[0]"),
    ],
)
def test_what_an_owner_writes_is_what_he_means(text: str, at: str) -> None:
    (document,) = load(text, "config.yaml")
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
        (None, None, []),
    ],
)
def test_code_is_put_only_where_the_namespace_may_write(
    output: str | None, location: str | None, expected: list[str]
) -> None:
    block: dict[str, JSON] = {"role": ROLE, "instanceType": "ml.c5.xlarge"}
    changes: dict[str, JSON] = {"backend": "SageMaker", "image": "i", "sagemaker": block}
    if location is not None:
        block["codeLocation"] = location
    if output is not None:
        changes["output"] = {"s3": output}
    grants: JSON = [{"name": "data", "prefixes": ["team-a/"]}, {"name": "all"}]
    assert refusals(changes, tenant(buckets=grants, roles=[ROLE])) == expected
