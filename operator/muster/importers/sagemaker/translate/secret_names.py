"""Warn about values that look like secrets, because everyone who reads the job can read them. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from muster.api.document import JSON
from muster.importers.sagemaker.translate.arguments import Problems

_SECRET = re.compile(r"(?i)(^|[_-])(token|secret|password|passwd|credentials?|api[_-]?key|access[_-]?key)($|[_-])")


def warn_about_secrets(spec: Mapping[str, JSON], problems: Problems) -> None:
    """Warn about variables and hyperparameters whose names suggest secrets."""
    env, hyperparameters = spec.get("env"), spec.get("hyperparameters")
    variables = [item.get("name") for item in env if isinstance(item, dict)] if isinstance(env, list) else []
    names = [*variables, *(hyperparameters if isinstance(hyperparameters, dict) else ())]
    for name in names:
        if isinstance(name, str) and _SECRET.search(name):
            problems.warn(
                name, "may be a secret, and the file contains its value; let the ranks fetch the secret with their role"
            )
