"""muster's lists of what SageMaker supports equal the SageMaker SDK's own lists."""

import json

from muster.api.spec.sagemaker import support as ours
from muster_dev import sagemaker_sdk
from muster_dev.paths import ROOT


def test_the_lists_are_the_sdk_s() -> None:
    sdk = json.loads(sagemaker_sdk.run_script(ROOT / "tests" / "sagemaker_sdk" / "supported.py", ""))
    versions = {name.lower(): list(known) for name, known in ours.DATA_PARALLEL_VERSIONS.items()}
    assert sdk == {
        "SM_DATAPARALLEL_SUPPORTED_FRAMEWORK_VERSIONS": versions,
        "TORCH_DISTRIBUTED_GPU_SUPPORTED_FRAMEWORK_VERSIONS": list(ours.TORCH_DISTRIBUTED_ON_GPU),
        "TRAINIUM_SUPPORTED_TORCH_DISTRIBUTED_FRAMEWORK_VERSIONS": list(ours.TORCH_DISTRIBUTED_ON_TRAINIUM),
        "DEBUGGER_UNSUPPORTED_REGIONS": list(ours.REGIONS_WITHOUT_DEBUGGER),
        "PROFILER_UNSUPPORTED_REGIONS": list(ours.REGIONS_WITHOUT_DEBUGGER),
        "UNSUPPORTED_DLC_IMAGE_FOR_SM_PARALLELISM": [ours.IMAGE_WITHOUT_PARALLEL_LIBRARIES],
        "HIGHEST_LEGACY_MODE_ONLY_VERSION": ".".join(str(part) for part in ours.LAST_TENSORFLOW_WITHOUT_SCRIPTS),
    }
