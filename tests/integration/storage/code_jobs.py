"""SageMaker jobs with code, and requests that must not be sent while theirs are prepared."""

from muster.api.document import JSON, Document
from muster.api.spec.job import Job
from muster.api.spec.source import SecretKeyRef
from muster.api.validation.validate import validate
from muster.objects.aws.access import AwsAccess
from muster.render.storage.source_files import SourceFiles

HERE = AwsAccess("us-east-1")


def code_job(namespace: str = "team", code: str = "print(1)\n", **block: JSON) -> Job:
    """Return a job of that namespace, which runs `code`; `block` has further fields of its `sagemaker`."""
    spec: JSON = {
        "backend": "SageMaker",
        "launcher": {"torchrun": {}},
        "command": ["python", "train.py"],
        "source": {"inline": {"files": {"train.py": code}}},
        "output": {"s3": "s3://data/out"},
        "sagemaker": {
            "role": "arn:aws:iam::111122223333:role/training",
            "region": HERE.region,
            "instanceType": "ml.p4d.24xlarge",
            "framework": {"name": "PyTorch", "version": "2.2.0", "pythonVersion": "py310"},
            **block,
        },
    }
    metadata: JSON = {"name": "vit", "namespace": namespace, "uid": namespace}
    document: dict[str, JSON] = {"apiVersion": "muster.dev/v1alpha1", "kind": "DistributedTrainingJob"}
    return validate(Document({**document, "metadata": metadata, "spec": spec}))


async def no_config_map(namespace: str, name: str) -> SourceFiles:
    raise AssertionError(f"{namespace}/{name} is not asked for")


async def no_token(namespace: str, ref: SecretKeyRef) -> str:
    raise AssertionError(f"{namespace}/{ref.name} is not asked for")
