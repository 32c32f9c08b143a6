"""The type of `status.source`: the edited code that the ranks run."""

from pydantic import Field

from muster.api.names import MAX_CONFIG_MAP_NAME_CHARS
from muster.api.spec.model import Model

SHA256_CHARS = 64


class SourceStatus(Model):
    """Edited code that the ranks run instead of the code in the spec."""

    config_map: str = Field(description="The ConfigMap with the code.", max_length=MAX_CONFIG_MAP_NAME_CHARS)
    sha256: str = Field(
        description="The SHA-256 of the packed code. The ranks start only with exactly this code.",
        min_length=SHA256_CHARS,
        max_length=SHA256_CHARS,
    )
