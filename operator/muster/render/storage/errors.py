"""The errors of downloads and uploads, and their reasons."""

from __future__ import annotations


class StorageError(Exception):
    """A download or upload failed. `reason` is a CamelCase word, `message` a sentence for the user without a full stop.

    If `is_retryable` is set, the same request may succeed later.
    """

    def __init__(self, reason: str, message: str, *, is_retryable: bool = False) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.is_retryable = is_retryable


SOURCE_REFUSED = "SourceRefused"
"""muster rejects the code because of its content or size."""

GIT_UNREACHABLE = "GitUnreachable"
GIT_TOO_SLOW = "GitTooSlow"
GIT_TOKEN_MISSING = "GitTokenMissing"  # noqa: S105
GIT_ACCESS_DENIED = "GitAccessDenied"
GIT_COMMIT_NOT_FOUND = "GitCommitNotFound"

S3_ACCESS_DENIED = "S3AccessDenied"
S3_CREDENTIALS_MISSING = "S3CredentialsMissing"
S3_CREDENTIALS_EXPIRED = "S3CredentialsExpired"
S3_NOT_FOUND = "S3NotFound"
S3_UNREACHABLE = "S3Unreachable"
S3_REFUSED = "S3Refused"
S3_CHANGED = "S3Changed"
S3_KEYS_UNUSABLE = "S3KeysUnusable"
FOLDER_UNUSABLE = "FolderUnusable"
