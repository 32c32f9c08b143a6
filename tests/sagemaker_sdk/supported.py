"""Print the SageMaker SDK's lists of supported values, as one JSON object. It runs as a program, without muster."""

import json
import sys
from pathlib import Path

from sagemaker import fw_utils
from sagemaker.estimator import Framework
from sagemaker.tensorflow import TensorFlow

NAMES = (
    "SM_DATAPARALLEL_SUPPORTED_FRAMEWORK_VERSIONS",
    "TORCH_DISTRIBUTED_GPU_SUPPORTED_FRAMEWORK_VERSIONS",
    "TRAINIUM_SUPPORTED_TORCH_DISTRIBUTED_FRAMEWORK_VERSIONS",
    "DEBUGGER_UNSUPPORTED_REGIONS",
    "PROFILER_UNSUPPORTED_REGIONS",
)


def main() -> None:
    result = {name: getattr(fw_utils, name) for name in NAMES}
    result["UNSUPPORTED_DLC_IMAGE_FOR_SM_PARALLELISM"] = Framework.UNSUPPORTED_DLC_IMAGE_FOR_SM_PARALLELISM
    result["HIGHEST_LEGACY_MODE_ONLY_VERSION"] = str(TensorFlow._HIGHEST_LEGACY_MODE_ONLY_VERSION)
    Path(sys.argv[1]).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
