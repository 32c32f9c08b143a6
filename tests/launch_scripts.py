"""Launch scripts as users write them, from the arguments that a test wants in them."""

from collections.abc import Mapping
from pathlib import Path

from muster.api.document import JSON

HEAD = """\
import sagemaker
from sagemaker.estimator import Estimator
from sagemaker.huggingface import HuggingFace
from sagemaker.inputs import TrainingInput
from sagemaker.instance_group import InstanceGroup
from sagemaker.pytorch import PyTorch
from sagemaker.tensorflow import TensorFlow

role = sagemaker.get_execution_role()
"""

_OBJECTS = ("S3DataType", "S3Uri", "S3DataDistributionType")
_INPUT_ARGUMENTS = {"ContentType": "content_type", "InputMode": "input_mode"}


def case_script(name: str, case: Mapping[str, JSON]) -> str:
    """A script that trains as one of the golden cases does. The SDK was given a folder for all but plain images."""
    estimator, arguments = str(case["estimator"]), case["kwargs"]
    assert isinstance(arguments, dict)
    code: dict[str, JSON] = {"entry_point": "train.py", "source_dir": "src"} if estimator != "Estimator" else {}
    given = "".join(f"    {key}={written(value)},\n" for key, value in {**code, **arguments}.items())
    job = f"golden-{name.replace('_', '-')}"
    inputs = written(case["inputs"])
    return f"{HEAD}estimator = {estimator}(\n    role=role,\n{given})\nestimator.fit({inputs}, job_name={job!r})\n"


def written(value: JSON) -> str:
    """A value as Python source: what was built by a class is built again."""
    match value:
        case {"__type__": "InstanceGroup", **fields}:
            return f"InstanceGroup({', '.join(f'{key}={written(item)}' for key, item in fields.items())})"
        case {"__type__": "TrainingInput", "config": {"DataSource": {"S3DataSource": {**objects}}, **options}}:
            assert set(objects) == set(_OBJECTS)
            arguments = {"distribution": objects["S3DataDistributionType"]}
            arguments |= {_INPUT_ARGUMENTS[key]: item for key, item in options.items()}
            more = "".join(f", {key}={item!r}" for key, item in arguments.items())
            return f"TrainingInput({objects['S3Uri']!r}{more})"
        case dict():
            return f"{{{', '.join(f'{key!r}: {written(item)}' for key, item in value.items())}}}"
        case list():
            return f"[{', '.join(written(item) for item in value)}]"
    return repr(value)


def code_folder(folder: Path) -> None:
    """The folder that the scripts name, with the script that the golden jobs have."""
    (folder / "src").mkdir()
    (folder / "src" / "train.py").write_text("print('trained')", encoding="utf-8")
