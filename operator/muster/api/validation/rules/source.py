"""Rules about `spec.source`."""

import re
from collections.abc import Iterator

from muster.api import file_paths, s3_uri
from muster.api.document import quote
from muster.api.spec.job import Spec
from muster.api.spec.source import GitSource
from muster.api.validation.rule import Rule, Violation

_SOURCE_FIELDS = ("inline", "configMap", "git", "s3")

_HOST = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?([.][a-z0-9]([a-z0-9-]*[a-z0-9])?)*"
_URL = rf"https://{_HOST}(:[0-9]{{1,5}})?(/[A-Za-z0-9_~+-][A-Za-z0-9._~+-]*)+/?"
"""Excludes users, queries, escapes and non-ASCII letters, so that every parser reads the same host from a URL."""

_COMMIT = "[0-9a-f]{40}"
_FOLDER = "[A-Za-z0-9_+-][A-Za-z0-9._ +-]*(/[A-Za-z0-9_+-][A-Za-z0-9._ +-]*)*"
_KEY = "[A-Za-z0-9._-]+"
_USERNAME = "[A-Za-z0-9._@+-]+"
_NAME = "[a-z0-9]([a-z0-9.-]*[a-z0-9])?"


def _check_one_source(spec: Spec) -> Iterator[Violation]:
    if spec.source is None:
        return
    source = spec.source
    value = (source.inline, source.config_map, source.git, source.s3)
    field_names = [name for name, source_type in zip(_SOURCE_FIELDS, value, strict=True) if source_type is not None]
    if len(field_names) != 1:
        yield Violation(("source",), " and ".join(field_names) or "none")


def _check_inline_paths(spec: Spec) -> Iterator[Violation]:
    if spec.source is None or spec.source.inline is None:
        return
    files = spec.source.inline.files
    for path in files:
        problem = file_paths.find_path_problem(path)
        if problem is not None:
            yield Violation(("source", "inline", "files", path), f"{quote(path)}, and {problem}")
    conflict = file_paths.find_file_and_folder(files)
    if conflict is not None:
        yield Violation(("source", "inline", "files", conflict), f"{quote(conflict)}, and other files lie below it")


def _get_git_source(spec: Spec) -> GitSource | None:
    return None if spec.source is None else spec.source.git


def _get_config_map_name(spec: Spec) -> str | None:
    source = spec.source
    return None if source is None or source.config_map is None else source.config_map.name


def _get_secret_name(spec: Spec) -> str | None:
    git = _get_git_source(spec)
    return None if git is None or git.secret_key_ref is None else git.secret_key_ref.name


def _check_object_names(spec: Spec) -> Iterator[Violation]:
    names = {("configMap", "name"): _get_config_map_name(spec), ("git", "secretKeyRef", "name"): _get_secret_name(spec)}
    for path, name in names.items():
        if name is not None and re.fullmatch(_NAME, name) is None:
            yield Violation(("source", *path), quote(name))


def _check_git_url(spec: Spec) -> Iterator[Violation]:
    git = _get_git_source(spec)
    if git is not None and re.fullmatch(_URL, git.url) is None:
        # Do not repeat the URL, which may contain a password.
        yield Violation(("source", "git", "url"), "a URL in a form that is not allowed")


def _check_git_commit(spec: Spec) -> Iterator[Violation]:
    git = _get_git_source(spec)
    if git is not None and re.fullmatch(_COMMIT, git.commit) is None:
        yield Violation(("source", "git", "commit"), quote(git.commit))


def _check_git_path(spec: Spec) -> Iterator[Violation]:
    git = _get_git_source(spec)
    if git is not None and git.path and re.fullmatch(_FOLDER, git.path) is None:
        yield Violation(("source", "git", "path"), quote(git.path))


def _check_git_secret_key(spec: Spec) -> Iterator[Violation]:
    git = _get_git_source(spec)
    if git is not None and git.secret_key_ref is not None and re.fullmatch(_KEY, git.secret_key_ref.key) is None:
        yield Violation(("source", "git", "secretKeyRef", "key"), quote(git.secret_key_ref.key))


def _check_git_username(spec: Spec) -> Iterator[Violation]:
    git = _get_git_source(spec)
    if git is not None and git.username is not None and re.fullmatch(_USERNAME, git.username) is None:
        # Do not repeat the name, which may be a token.
        yield Violation(("source", "git", "username"), "a name in a form that is not allowed")


def _check_username_without_token(spec: Spec) -> Iterator[Violation]:
    git = _get_git_source(spec)
    if git is not None and git.username is not None and git.secret_key_ref is None:
        yield Violation(("source", "git"), "username without secretKeyRef")


def _check_archive(spec: Spec) -> Iterator[Violation]:
    if spec.source is not None and spec.source.s3 is not None:
        uri = spec.source.s3.uri
        if not s3_uri.is_s3_uri(uri) or not uri.endswith(".tar.gz"):
            yield Violation(("source", "s3", "uri"), quote(uri))


SOURCE_RULES = (
    Rule(
        schema_paths=("spec.source",),
        rationale="Two sources would overwrite each other's files.",
        message=f"exactly one of {', '.join(_SOURCE_FIELDS)} must be set, for example inline: {{files: {{train.py: "
        "...}}",
        find_violations=_check_one_source,
        cel=f"[{', '.join(f'has(self.{name})' for name in _SOURCE_FIELDS)}].exists_one(chosen, chosen)",
    ),
    Rule(
        schema_paths=("spec.source.inline.files",),
        rationale="A file must not be outside the folder for the code.",
        message="write relative paths of files, such as train.py and lib/data.py, without a folder `.` or `..` in them",
        find_violations=_check_inline_paths,
    ),
    Rule(
        schema_paths=("spec.source.configMap.name", "spec.source.git.secretKeyRef.name"),
        rationale="Kubernetes allows no other names, and the name becomes part of a request.",
        message="small letters, digits, dashes and dots are expected",
        find_violations=_check_object_names,
        cel=f"self.matches('^({_NAME})$')",
    ),
    Rule(
        schema_paths=("spec.source.git.url",),
        rationale="If two parsers read a URL differently, a job could reach a host that is not allowed.",
        message="https://host/owner/name.git is expected: https, a host of small letters, no user, password, query or"
        " escapes; a repository that needs a token names its Secret in secretKeyRef",
        find_violations=_check_git_url,
        cel=f"self.matches('^{_URL}$')",
    ),
    Rule(
        schema_paths=("spec.source.git.commit",),
        rationale="A branch can change, and nodes that start at different times would run different code.",
        message="a commit's full hash is expected, 40 of 0-9 and a-f: git rev-parse HEAD prints it",
        find_violations=_check_git_commit,
        cel=f"self.matches('^({_COMMIT})$')",
    ),
    Rule(
        schema_paths=("spec.source.git.path",),
        rationale="A job must not read folders outside the repository.",
        message="a folder of the repository is expected, such as training/vision, without a folder `.` or `..` in it",
        find_violations=_check_git_path,
        cel=f"self == '' || self.matches('^{_FOLDER}$')",
    ),
    Rule(
        schema_paths=("spec.source.git.secretKeyRef.key",),
        rationale="Kubernetes allows no other keys in a Secret.",
        message="letters, digits, dots, dashes and underscores are expected",
        find_violations=_check_git_secret_key,
        cel=f"self.matches('^{_KEY}$')",
    ),
    Rule(
        schema_paths=("spec.source.git.username",),
        rationale="The user name becomes part of an HTTP header, in which a colon ends it.",
        message="letters, digits and . _ @ + - are expected; a token belongs in a Secret",
        find_violations=_check_git_username,
        cel=f"self.matches('^{_USERNAME}$')",
    ),
    Rule(
        schema_paths=("spec.source.git",),
        rationale="A user name without a token has no effect.",
        message="set secretKeyRef to the Secret with the token, {name: ..., key: ...}, or remove username",
        find_violations=_check_username_without_token,
        cel="!has(self.username) || has(self.secretKeyRef)",
    ),
    Rule(
        schema_paths=("spec.source.s3.uri",),
        rationale="SageMaker's containers get the archive unchanged, and can read only .tar.gz.",
        message=f"the archive's name must end in .tar.gz; {s3_uri.MESSAGE}",
        find_violations=_check_archive,
        cel=f"{s3_uri.CEL} && self.endsWith('.tar.gz')",
    ),
)
