"""Templates that are read, and the problems of others."""

import pytest

from muster.api.document import JSON, Document
from muster.api.field_problems import InvalidResource
from muster.api.yaml.load import load_documents
from muster.render.training_template.template import TrainingTemplate, is_template, read_template


def document(spec: JSON, **fields: JSON) -> Document:
    value: dict[str, JSON] = {
        "apiVersion": "muster.dev/v1alpha1",
        "kind": "TrainingTemplate",
        "metadata": {"name": "large"},
        "spec": spec,
    }
    return Document({name: field for name, field in {**value, **fields}.items() if field is not None})


def test_a_template_may_leave_the_command_to_the_job() -> None:
    template = read_template(document({"image": "a", "queue": None}, metadata={"name": "large", "generation": 3}))
    assert template == TrainingTemplate("TrainingTemplate", "large", {"image": "a"}, 3)
    assert str(template) == "TrainingTemplate large"


@pytest.mark.parametrize(
    ("invalid", "expected"),
    [
        (document({"image": 3}), "spec.image: found 3"),
        (document({"imige": "a"}), "spec.imige: unknown field; did you mean image?"),
        (document({"nodes": 4}), "spec.nodes: a template can't set this field"),
        (document({"suspend": True}), "spec.suspend: a template can't set this field"),
        (document({"templateRef": {"name": "a"}}), "spec.templateRef: a template can't set this field"),
        (document(None), "spec: missing, and required"),
        (document([]), "spec: missing, and required"),
        (document({}, metadata={}), "metadata.name: missing, and required"),
        (document({}, apiVersion="v1"), "apiVersion: muster.dev/v1alpha1 is expected"),
        (document({}, kind="Template"), "kind: TrainingTemplate or ClusterTrainingTemplate is expected"),
        (document({}, status={}), "unknown field; remove it"),
        (document({}, metadata={"name": "Bad Name!"}), 'metadata.name: found "Bad Name!"'),
        (
            document({"template": {"spec": {"containers": [{"name": "traner"}]}}}),
            "spec.template.spec.containers[0].name",
        ),
    ],
)
def test_the_problems_name_the_field(invalid: Document, expected: str) -> None:
    with pytest.raises(InvalidResource) as error:
        read_template(invalid)
    assert expected in str(error.value)


def test_a_problem_has_its_line() -> None:
    text = "apiVersion: muster.dev/v1alpha1\nkind: ClusterTrainingTemplate\nmetadata: {name: a}\nspec:\n  image: 3\n"
    (read,) = load_documents(text, "a.yaml")
    assert is_template(read)
    with pytest.raises(InvalidResource, match=r"a\.yaml:5: spec\.image: found 3"):
        read_template(read)
