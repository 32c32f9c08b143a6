"""Builders for the tests of SageMaker's requests."""

from collections.abc import Mapping

from muster.api.document import JSON
from muster.api.spec.job import Job
from support.valid_jobs import make_job

ROLE = "arn:aws:iam::111122223333:role/SageMakerRole"


def sagemaker_spec(changes: Mapping[str, JSON], block: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the spec of a job on two GPU instances, with changes; null leaves a field out."""
    base: dict[str, JSON] = {
        "backend": "SageMaker",
        "nodes": 2,
        "launcher": {"torchrun": {}},
        "command": ["python", "train.py"],
        "source": {"inline": {"files": {"train.py": "print('trained')"}}},
    }
    own: dict[str, JSON] = {
        "role": ROLE,
        "instanceType": "ml.p4d.24xlarge",
        "framework": {"name": "PyTorch", "version": "2.0.1", "pythonVersion": "py310"},
    }
    return _without_nulls({**base, "sagemaker": _without_nulls({**own, **block}), **changes})


def sagemaker_job(changes: Mapping[str, JSON] | None = None, block: Mapping[str, JSON] | None = None) -> Job:
    """Return a job with such a spec."""
    return make_job("vit", sagemaker_spec(changes or {}, block or {}))


def _without_nulls(fields: Mapping[str, JSON]) -> dict[str, JSON]:
    return {name: value for name, value in fields.items() if value is not None}
