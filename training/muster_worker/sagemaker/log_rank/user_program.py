"""The user's own program again, where SageMaker's toolkit told a rank of the one that muster put in its place. Pure."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Mapping

_PYTHON = ".py"


def restored(environment: Mapping[str, str], entry: str, program: str) -> Dict[str, str]:
    """`environment` as the toolkit would have made it for `program`; `entry` is what it was made for.

    Names and form are those of sagemaker-training 5.1.4, `environment.py` (`to_env_vars`, `_parse_module_name`). Both
    programs are plain paths, by the toolkit's own rule (`process.py`), so that they are themselves in JSON.
    """
    result = dict(environment)
    if result.get("SM_USER_ENTRY_POINT") != entry:
        return result
    result["SM_USER_ENTRY_POINT"] = program
    if "SM_MODULE_NAME" in result:
        result["SM_MODULE_NAME"] = _module(program)
    if "SM_TRAINING_ENV" in result:
        value = result["SM_TRAINING_ENV"].replace(f'"user_entry_point":"{entry}"', f'"user_entry_point":"{program}"')
        result["SM_TRAINING_ENV"] = value.replace(
            f'"module_name":"{_module(entry)}"', f'"module_name":"{_module(program)}"'
        )
    return result


def _module(program: str) -> str:
    return program[: -len(_PYTHON)] if program.endswith(_PYTHON) else program
