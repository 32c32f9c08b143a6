"""Rules about `spec.source`: code that isn't in the image."""

import re
from collections.abc import Iterator

from muster.api import file_paths, s3_uri
from muster.api.document import quoted
from muster.api.spec.job import Spec
from muster.api.spec.source import GitSource
from muster.api.validation.rule import Breach, Rule

_KINDS = ("inline", "configMap", "git", "s3")

_HOST = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?([.][a-z0-9]([a-z0-9-]*[a-z0-9])?)*"
_URL = rf"https://{_HOST}(:[0-9]{{1,5}})?(/[A-Za-z0-9_~+-][A-Za-z0-9._~+-]*)+/?"
"""Without user, query, escapes and non-ASCII letters, every parser reads the same host from the URL."""

_COMMIT = "[0-9a-f]{40}"
_FOLDER = "[A-Za-z0-9_+-][A-Za-z0-9._ +-]*(/[A-Za-z0-9_+-][A-Za-z0-9._ +-]*)*"
_KEY = "[A-Za-z0-9._-]+"
_USERNAME = "[A-Za-z0-9._@+-]+"
_NAME = "[a-z0-9]([a-z0-9.-]*[a-z0-9])?"


def _one_kind(spec: Spec) -> Iterator[Breach]:
    if spec.source is None:
        return
    source = spec.source
    value = (source.inline, source.config_map, source.git, source.s3)
    kinds = [name for name, kind in zip(_KINDS, value, strict=True) if kind is not None]
    if len(kinds) != 1:
        yield Breach(("source",), " and ".join(kinds) or "none of them")


def _inline_paths(spec: Spec) -> Iterator[Breach]:
    if spec.source is None or spec.source.inline is None:
        return
    files = spec.source.inline.files
    for path in files:
        objection = file_paths.objection(path)
        if objection is not None:
            yield Breach(("source", "inline", "files", path), f"{quoted(path)}, and {objection}")
    both = file_paths.file_and_folder(files)
    if both is not None:
        yield Breach(("source", "inline", "files", both), f"{quoted(both)}, and other files lie below it")


def _git(spec: Spec) -> GitSource | None:
    return None if spec.source is None else spec.source.git


def _config_map_name(spec: Spec) -> str | None:
    source = spec.source
    return None if source is None or source.config_map is None else source.config_map.name


def _secret_name(spec: Spec) -> str | None:
    git = _git(spec)
    return None if git is None or git.secret_key_ref is None else git.secret_key_ref.name


def _object_names(spec: Spec) -> Iterator[Breach]:
    names = {("configMap", "name"): _config_map_name(spec), ("git", "secretKeyRef", "name"): _secret_name(spec)}
    for path, name in names.items():
        if name is not None and re.fullmatch(_NAME, name) is None:
            yield Breach(("source", *path), quoted(name))


def _git_url(spec: Spec) -> Iterator[Breach]:
    git = _git(spec)
    if git is not None and re.fullmatch(_URL, git.url) is None:
        # The URL may contain a password: do not repeat it.
        yield Breach(("source", "git", "url"), "another form of URL")


def _git_commit(spec: Spec) -> Iterator[Breach]:
    git = _git(spec)
    if git is not None and re.fullmatch(_COMMIT, git.commit) is None:
        yield Breach(("source", "git", "commit"), quoted(git.commit))


def _git_path(spec: Spec) -> Iterator[Breach]:
    git = _git(spec)
    if git is not None and git.path and re.fullmatch(_FOLDER, git.path) is None:
        yield Breach(("source", "git", "path"), quoted(git.path))


def _git_secret_key(spec: Spec) -> Iterator[Breach]:
    git = _git(spec)
    if git is not None and git.secret_key_ref is not None and re.fullmatch(_KEY, git.secret_key_ref.key) is None:
        yield Breach(("source", "git", "secretKeyRef", "key"), quoted(git.secret_key_ref.key))


def _git_username(spec: Spec) -> Iterator[Breach]:
    git = _git(spec)
    if git is not None and git.username is not None and re.fullmatch(_USERNAME, git.username) is None:
        # The user may have put a token there: do not repeat it.
        yield Breach(("source", "git", "username"), "another form of name")


def _username_alone(spec: Spec) -> Iterator[Breach]:
    git = _git(spec)
    if git is not None and git.username is not None and git.secret_key_ref is None:
        yield Breach(("source", "git"), "username without secretKeyRef")


def _archive(spec: Spec) -> Iterator[Breach]:
    if spec.source is not None and spec.source.s3 is not None:
        uri = spec.source.s3.uri
        if not s3_uri.is_s3(uri) or not uri.endswith(".tar.gz"):
            yield Breach(("source", "s3", "uri"), quoted(uri))


SOURCE_RULES = (
    Rule(
        places=("spec.source",),
        why="Two sources would overwrite each other's files.",
        sentence=f"exactly one of {', '.join(_KINDS)} must be set, for example inline: {{files: {{train.py: ...}}}}",
        breaches=_one_kind,
        cel=f"[{', '.join(f'has(self.{name})' for name in _KINDS)}].exists_one(chosen, chosen)",
    ),
    Rule(
        places=("spec.source.inline.files",),
        why="A file must not land outside the folder for the code.",
        sentence="write relative paths of files, such as train.py and lib/data.py, without . or .. as a part",
        breaches=_inline_paths,
    ),
    Rule(
        places=("spec.source.configMap.name", "spec.source.git.secretKeyRef.name"),
        why="ConfigMaps and Secrets have no other names, and the name becomes part of a request.",
        sentence="small letters, digits, dashes and dots are expected",
        breaches=_object_names,
        cel=f"self.matches('^({_NAME})$')",
    ),
    Rule(
        places=("spec.source.git.url",),
        why="If two parsers read a URL differently, a job can reach a host that is not allowed.",
        sentence="https://host/owner/name.git is expected: https, a host of small letters, no user, password, query or"
        " escapes; a repository that needs a token names its Secret in secretKeyRef",
        breaches=_git_url,
        cel=f"self.matches('^{_URL}$')",
    ),
    Rule(
        places=("spec.source.git.commit",),
        why="A branch moves: nodes that start at different times would run different code.",
        sentence="a commit's whole hash is expected, 40 of 0-9 and a-f: git rev-parse HEAD prints it",
        breaches=_git_commit,
        cel=f"self.matches('^({_COMMIT})$')",
    ),
    Rule(
        places=("spec.source.git.path",),
        why="A job may not read folders outside the repository.",
        sentence="a folder of the repository is expected, such as training/vision, without . or .. as a part",
        breaches=_git_path,
        cel=f"self == '' || self.matches('^{_FOLDER}$')",
    ),
    Rule(
        places=("spec.source.git.secretKeyRef.key",),
        why="No Secret can have another key.",
        sentence="letters, digits, dots, dashes and underscores are expected",
        breaches=_git_secret_key,
        cel=f"self.matches('^{_KEY}$')",
    ),
    Rule(
        places=("spec.source.git.username",),
        why="It becomes part of an HTTP header, in which a colon ends it.",
        sentence="letters, digits and . _ @ + - are expected; a token belongs into a Secret",
        breaches=_git_username,
        cel=f"self.matches('^{_USERNAME}$')",
    ),
    Rule(
        places=("spec.source.git",),
        why="A user name without a token has no effect.",
        sentence="name the Secret with the token in secretKeyRef: {name: ..., key: ...}, or leave out username",
        breaches=_username_alone,
        cel="!has(self.username) || has(self.secretKeyRef)",
    ),
    Rule(
        places=("spec.source.s3.uri",),
        why="SageMaker's containers get the archive unchanged, and they read .tar.gz.",
        sentence=f"an archive that ends in .tar.gz is expected; {s3_uri.SENTENCE}",
        breaches=_archive,
        cel=f"{s3_uri.CEL} && self.endsWith('.tar.gz')",
    ),
)
