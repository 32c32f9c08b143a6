"""`spec.sagemaker.framework` as types: which of SageMaker's images runs the job, and the settings of its toolkit."""

from typing import Annotated, Literal

from pydantic import Field

from muster.api.spec.model import Model

VERSION_PATTERN = r"^[0-9]+([.][0-9]+){1,3}$"

Version = Annotated[str, Field(min_length=1, max_length=32, pattern=VERSION_PATTERN)]


class Framework(Model):
    """A framework with SageMaker's images.

    With spec.image the versions are optional: the job uses that image, and muster configures its toolkit in the same
    way.
    """

    name: Literal["PyTorch", "TensorFlow", "HuggingFace"] = Field(description="The framework.")
    version: Version | None = Field(
        default=None, description='Its version, such as "2.0.1"; of transformers for HuggingFace.'
    )
    python_version: str | None = Field(
        default=None,
        description="The image's Python: py310.",
        max_length=16,
        pattern=r"^py[0-9]{1,4}$",
    )
    pytorch_version: Version | None = Field(
        default=None, description="HuggingFace: the version of PyTorch; this or tensorflowVersion."
    )
    tensorflow_version: Version | None = Field(
        default=None, description="HuggingFace: the version of TensorFlow; this or pytorchVersion."
    )
    model_dir: str = Field(
        default="Auto",
        description="TensorFlow: the hyperparameter model_dir. Auto: as in the SageMaker SDK, /opt/ml/model with mpi, "
        "else a folder of the output. None: muster omits it. Or a path, or a folder in Amazon S3.",
        min_length=1,
        max_length=1024,
    )
