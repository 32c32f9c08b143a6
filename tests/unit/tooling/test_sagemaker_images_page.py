"""The images on the page about SageMaker's images are those that jobs get."""

import re

import pytest

from muster.api.validation.validate import validate
from muster.api.yaml.load import load_documents
from muster.render.sagemaker.image_facts import load_image_facts
from muster.render.sagemaker.request.image import choose_image
from muster_dev.paths import ROOT
from muster_dev.sagemaker_sdk import read_sdk_version

PAGE = (ROOT / "docs" / "sagemaker-images.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(\{.*\})` \| `(\S+)` \| `(\S+)` \|$", PAGE, re.MULTILINE)

JOB = """
apiVersion: muster.dev/v1alpha1
kind: DistributedTrainingJob
metadata: {{name: vit}}
spec:
  backend: SageMaker
  nodes: 1
  launcher: {{perNode: {{}}}}
  source: {{inline: {{files: {{train.py: "print()"}}}}}}
  command: [python, train.py]
  sagemaker:
    role: arn:aws:iam::111122223333:role/SageMakerRole
    instanceType: {instance_type}
    framework: {framework}
"""


def test_the_page_has_rows() -> None:
    assert len(ROWS) == PAGE.count("dkr.ecr")


@pytest.mark.parametrize(("framework", "instance_type", "address"), ROWS)
def test_a_row_of_the_table_is_what_a_job_gets(framework: str, instance_type: str, address: str) -> None:
    (document,) = load_documents(
        JOB.format(instance_type=instance_type, framework=framework), "docs/sagemaker-images.md"
    )
    assert choose_image(validate(document).spec, "us-west-2", load_image_facts()) == address


def test_the_page_names_the_locked_sdk() -> None:
    assert read_sdk_version().replace("sagemaker", "SageMaker SDK") in PAGE
    assert load_image_facts().source == read_sdk_version()
