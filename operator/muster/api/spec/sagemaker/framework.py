"""`spec.sagemaker.framework` as types: which of SageMaker's own images runs the job, and how its toolkit is told."""

from typing import Annotated, Literal

from pydantic import Field

from muster.api.spec.model import Model

VERSION_PATTERN = r"^[0-9]+([.][0-9]+){1,3}$"

Version = Annotated[str, Field(min_length=1, max_length=32, pattern=VERSION_PATTERN)]


class Framework(Model):
    """A framework of SageMaker's images.

    With spec.image its versions may be left out: that image is taken, and its toolkit told as the framework's own are.
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
        default=None, description="HuggingFace: the PyTorch below; this or tensorflowVersion."
    )
    tensorflow_version: Version | None = Field(
        default=None, description="HuggingFace: the TensorFlow below; this or pytorchVersion."
    )
    model_dir: str = Field(
        default="Auto",
        description="TensorFlow: the hyperparameter model_dir. Auto: as the SageMaker SDK has it, /opt/ml/model with "
        "mpi and a folder of the output's else. None: not given. Or a path, or a folder in Amazon S3.",
        min_length=1,
        max_length=1024,
    )
