"""Locations in Amazon S3: s3://bucket/key."""

import re
from dataclasses import dataclass

MAX_CHARS = 1024
"""Maximum length of a URI in CreateTrainingJob (botocore's S3Uri), and of a key in bytes."""

_BUCKET = r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]"
"""Amazon S3 User Guide, "General purpose bucket naming rules": 3 to 63 small letters, digits, dots and dashes."""

PATTERN = rf"^s3://{_BUCKET}(/[^?#\\\x00-\x1f\x7f]*)?$"
"""Excludes ? and #, because the SageMaker SDK drops the rest of the URI as a query or fragment."""

CEL_PATTERN = rf"^s3://{_BUCKET}(/[^?#\\\\\\x00-\\x1f\\x7f]*)?$"
"""PATTERN, escaped for a string in CEL."""

PATH_TRAVERSAL = r"(/[.][.]?(/|$)|^[^/]*[.][.])"
"""Matches . or .. in a key, and two dots in a bucket's name. A program that resolves paths would read another key."""

CEL = f"self.matches('{CEL_PATTERN}') && !self.substring(5).matches('{PATH_TRAVERSAL}')"
"""The CEL rule of all fields whose value is an S3 URI."""

MESSAGE = (
    f"s3://bucket/key is expected, with at most {MAX_CHARS} characters: the bucket's name has 3 to 63 small letters,"
    " digits, dots and dashes; the key must not contain any of the characters ?, # and \\, nor a folder with the name"
    " `.` or `..`; access points and https:// are not supported"
)


class InvalidS3Uri(ValueError):
    """The text is not an S3 URI that muster accepts."""


@dataclass(frozen=True)
class S3Uri:
    """A bucket, and a key or key prefix; the prefix "" means the whole bucket."""

    bucket: str
    key: str

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.key}"

    def join_path(self, *parts: str) -> "S3Uri":
        """Return the URI of `parts` below this URI, like pathlib's `joinpath`."""
        folder = self.key.rstrip("/")
        return S3Uri(self.bucket, "/".join((*((folder,) if folder else ()), *parts)))


def parse(text: str) -> S3Uri:
    """Parse an S3 URI. Raise `InvalidS3Uri` if it is invalid."""
    is_invalid = (
        len(text) > MAX_CHARS or re.match(PATTERN, text) is None or re.search(PATH_TRAVERSAL, text[len("s3://") :])
    )
    if is_invalid or text.endswith("\n"):
        raise InvalidS3Uri(MESSAGE)
    bucket, _, key = text.removeprefix("s3://").partition("/")
    return S3Uri(bucket, key)


def is_s3_uri(text: str) -> bool:
    """Whether `parse` accepts the text."""
    try:
        parse(text)
    except InvalidS3Uri:
        return False
    return True
