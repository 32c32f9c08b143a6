"""How the spec of a template and that of a job become one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.document import JSON, FieldPath, format_path
from muster.api.schema import find_schema
from muster.render.training_template.merge import ALTERNATIVES, MERGED_LISTS, MERGED_OBJECTS, Origin, merge_specs

Spec = dict[str, JSON]


@pytest.mark.parametrize(
    ("template", "job", "expected"),
    [
        pytest.param({"image": "a"}, {}, {"image": "a"}, id="the job has no value"),
        pytest.param({"image": "a"}, {"image": "b"}, {"image": "b"}, id="the job's value"),
        pytest.param({"warmStart": "Off"}, {"warmStart": "Auto"}, {"warmStart": "Off"}, id="a default is no value"),
        pytest.param({"warmStart": "Auto"}, {"warmStart": "Off"}, {"warmStart": "Off"}, id="no default"),
        pytest.param(
            {"launcher": {"torchrun": {}}}, {"launcher": {"direct": {}}}, {"launcher": {"direct": {}}}, id="a choice"
        ),
        pytest.param({"command": ["a", "b"]}, {"command": ["c"]}, {"command": ["c"]}, id="a list"),
        pytest.param(
            {"resources": {"limits": {"cpu": 1, "memory": "1Gi"}}},
            {"resources": {"limits": {"memory": "2Gi"}}},
            {"resources": {"limits": {"cpu": 1, "memory": "2Gi"}}},
            id="an object",
        ),
        pytest.param(
            {"network": {"interface": "eth0", "efa": "None"}},
            {"network": {"interface": "Auto", "efa": "All", "check": False}},
            {"network": {"interface": "eth0", "efa": "All", "check": False}},
            id="defaults in an object",
        ),
        pytest.param(
            {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "1"}]},
            {"env": [{"name": "B", "valueFrom": {"x": 1}}, {"name": "C", "value": "3"}]},
            {"env": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"x": 1}}, {"name": "C", "value": "3"}]},
            id="a list by name",
        ),
        pytest.param(
            {"template": {"spec": {"containers": [{"name": "trainer", "tty": True}], "hostNetwork": True}}},
            {"template": {"spec": {"containers": [{"name": "trainer", "stdin": True}]}}},
            {
                "template": {
                    "spec": {"containers": [{"name": "trainer", "tty": True, "stdin": True}], "hostNetwork": True}
                }
            },
            id="a partial pod",
        ),
        pytest.param(
            {"sagemaker": {"instanceType": "ml.p4d.24xlarge", "role": "r"}},
            {"sagemaker": {"instanceGroups": [{"name": "a"}]}},
            {"sagemaker": {"instanceGroups": [{"name": "a"}], "role": "r"}},
            id="fields that exclude each other",
        ),
    ],
)
def test_the_job_takes_what_it_does_not_set(template: Spec, job: Spec, expected: Spec) -> None:
    assert merge_specs(template, job).spec == expected


def test_the_origins_are_the_values_of_the_template() -> None:
    template: Spec = {
        "image": "a",
        "env": [{"name": "A"}],
        "resources": {"limits": {"cpu": 1, "memory": 1}},
        "template": {"metadata": {"labels": {"a": "b"}}},
    }
    job: Spec = {
        "env": [{"name": "B"}],
        "resources": {"limits": {"memory": 2}},
        "template": {"metadata": {"labels": {"c": "d"}}},
    }
    assert merge_specs(template, job).origins == {
        ("image",): Origin.TEMPLATE,
        ("env", 0): Origin.TEMPLATE,
        ("resources", "limits", "cpu"): Origin.TEMPLATE,
        ("template",): Origin.BOTH,
    }


@pytest.mark.parametrize("path", [*MERGED_OBJECTS, *((name,) for name in MERGED_LISTS), *ALTERNATIVES])
def test_each_field_of_the_tables_exists(path: FieldPath) -> None:
    assert find_schema(("spec", *path)) is not None, format_path(path)


@pytest.mark.parametrize("name", [["A"], {"A": 1}, 1, None, ""])
def test_an_entry_without_a_valid_name_replaces_none(name: JSON) -> None:
    # The API server compares a job with the schema only after the webhook.
    template: Spec = {"env": [{"name": "A", "value": "1"}]}
    job: Spec = {"env": [{"name": name}, "B"]}
    assert merge_specs(template, job).spec == {"env": [{"name": "A", "value": "1"}, {"name": name}, "B"]}


VALUES = st.fixed_dictionaries(
    {},
    optional={
        "image": st.sampled_from(["a", "b"]),
        "backend": st.sampled_from(["Kubernetes", "SageMaker"]),
        "hyperparameters": st.dictionaries(st.sampled_from("ab"), st.integers(0, 2)),
        "env": st.lists(st.sampled_from("ABC"), unique=True).map(lambda names: [{"name": name} for name in names]),
        "template": st.fixed_dictionaries(
            {},
            optional={
                "tolerations": st.lists(st.sampled_from("ab"), unique=True).map(
                    lambda keys: [{"key": key, "operator": "Exists"} for key in keys]
                ),
                "volumes": st.lists(st.sampled_from("ab"), unique=True).map(
                    lambda names: [{"name": name, "emptyDir": {}} for name in names]
                ),
            },
        ).map(lambda spec: {"spec": spec}),
        "network": st.fixed_dictionaries({}, optional={"interface": st.sampled_from(["Auto", "eth0"])}),
    },
)


@given(VALUES, VALUES)
def test_a_merged_job_does_not_change_by_the_same_template_again(template: Spec, job: Spec) -> None:
    merged = dict(merge_specs(template, job).spec)
    assert merge_specs(template, merged).spec == merged
    assert merge_specs({}, job).spec == job
    assert merge_specs(template, {}).spec == template


@given(VALUES, VALUES)
def test_a_file_that_replaces_some_fields_of_its_merged_job_changes_nothing(template: Spec, job: Spec) -> None:
    # As kubectl does: fields of the file replace those of the stored job.
    merged = dict(merge_specs(template, job).spec)
    assert merge_specs(template, {**merged, **job}).spec == merged
