"""Restores the user's program in the environment, where SageMaker's toolkit has set muster's entry point. Pure."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Mapping

_PYTHON = ".py"


def restore_program(environment: Mapping[str, str], entry: str, program: str) -> Dict[str, str]:
    """Return `environment` with `program` instead of `entry`.

    Names and formats are those of sagemaker-training 5.1.4, `environment.py` (`to_env_vars`, `_parse_module_name`). The
    toolkit accepts plain paths only (`process.py`), so JSON needs no escapes.
    """
    result = dict(environment)
    if result.get("SM_USER_ENTRY_POINT") != entry:
        return result
    result["SM_USER_ENTRY_POINT"] = program
    if "SM_MODULE_NAME" in result:
        result["SM_MODULE_NAME"] = _get_module_name(program)
    if "SM_TRAINING_ENV" in result:
        value = result["SM_TRAINING_ENV"].replace(f'"user_entry_point":"{entry}"', f'"user_entry_point":"{program}"')
        result["SM_TRAINING_ENV"] = value.replace(
            f'"module_name":"{_get_module_name(entry)}"', f'"module_name":"{_get_module_name(program)}"'
        )
    return result


def _get_module_name(program: str) -> str:
    return program[: -len(_PYTHON)] if program.endswith(_PYTHON) else program
