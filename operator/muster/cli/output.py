"""The option `-o` of commands that print jobs of a cluster, or results.

Users can write any text into a job, so that JSON and YAML have only ASCII characters: others are escaped.
"""

from __future__ import annotations

import json
from typing import Literal

from muster.api.document import JSON
from muster.cli.errors import BadInput

DataFormat = Literal["json", "yaml"]
TextFormat = Literal["json", "yaml", "wide"]


def read_text_format(text: str | None) -> TextFormat | None:
    """Parse the value of `-o`. Raises `BadInput`."""
    match text:
        case None | "json" | "yaml" | "wide":
            return text
    raise BadInput(f"-o {text}: expected json, yaml or wide")


def format_data(value: JSON, output: DataFormat) -> str:
    """Return the value as JSON or YAML, in ASCII characters."""
    if output == "json":
        return json.dumps(value, indent=2) + "\n"
    from muster.api.yaml.serialise import to_yaml  # noqa: PLC0415 - it imports the job's types

    return to_yaml(value, is_ascii=True)
