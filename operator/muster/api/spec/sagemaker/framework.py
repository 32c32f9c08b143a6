"""`spec.sagemaker.framework` as types: which of SageMaker's images runs the job, and the settings of its toolkit."""

from typing import Annotated, Literal

from pydantic import Field

from muster.api.spec.model import Model

VERSION_PATTERN = r"^[0-9]+([.][0-9]+){1,3}$"

Version = Annotated[str, Field(min_length=1, max_length=32, pattern=VERSION_PATTERN)]


class Framework(Model):
    """A framework for which SageMaker has images.

    With spec.image the versions are optional: the job runs that image, and muster configures the image's toolkit.
    """

    name: Literal["PyTorch", "TensorFlow", "HuggingFace"] = Field(description="The framework.")
    version: Version | None = Field(
        default=None,
        description='The framework\'s version, such as "2.0.1". For HuggingFace, the version of transformers.',
    )
    python_version: str | None = Field(
        default=None,
        description="The image's Python version: py310.",
        max_length=16,
        pattern=r"^py[0-9]{1,4}$",
    )
    pytorch_version: Version | None = Field(
        default=None, description="For HuggingFace: the version of PyTorch. Set either this or tensorflowVersion."
    )
    tensorflow_version: Version | None = Field(
        default=None, description="For HuggingFace: the version of TensorFlow. Set either this or pytorchVersion."
    )
    model_dir: str = Field(
        default="Auto",
        description="For TensorFlow: the hyperparameter model_dir, which is a path or a folder in Amazon S3. Auto: as "
        "with the SageMaker SDK, /opt/ml/model with mpi, else a folder of the output. None: muster omits it.",
        min_length=1,
        max_length=1024,
    )
