"""The tests' builder reads the project's Dockerfile as Docker does."""

import pytest

from cluster import dockerfile
from cluster.dockerfile import Copy, Run, Stage
from cluster.places import ROOT
from cluster.say import CannotGoOn

TEXT = """\
# A comment.
FROM python:3.11-slim AS base
FROM base AS build
WORKDIR /build
COPY a.txt b.txt files/
COPY folder ./
# Another, between the lines.
RUN one \\
    && two
ENV NAME=value OTHER="two words"
FROM build
COPY --from=build /build/out /opt/muster
WORKDIR below
USER 65532:65532
LABEL title=muster
ENTRYPOINT ["muster"]
CMD ["operator", "--help"]
"""


def test_a_base_has_a_default() -> None:
    stages = dockerfile.parse("ARG BASE=python:3.11-slim\nFROM ${BASE} AS base\nFROM base\n")
    assert [stage.base for stage in stages] == ["python:3.11-slim", "base"]


def test_stages_have_their_steps_and_settings_and_inherit_settings() -> None:
    environment = (("NAME", "value"), ("OTHER", "two words"))
    copies = (Copy(("a.txt", "b.txt"), "/build/files/"), Copy(("folder",), "/build/"))
    assert dockerfile.parse(TEXT) == (
        Stage("base", "python:3.11-slim"),
        Stage("build", "base", "/build", (*copies, Run("one     && two", "/build")), environment),
        Stage(
            name="",
            base="build",
            folder="/build/below",
            steps=(Copy(("/build/out",), "/opt/muster", "build"),),
            environment=environment,
            labels=(("title", "muster"),),
            user="65532:65532",
            entrypoint=("muster",),
            command=("operator", "--help"),
        ),
    )


@pytest.mark.parametrize(
    "text",
    [
        "ADD x /x",
        "FROM x\nARG A=1",
        "FROM --platform=linux/arm64 x",
        "FROM x\nADD y /y",
        "FROM x\nCOPY --chown=1 a b",
        "FROM x\nENV A=$B",
        "FROM x\nENV A b",
    ],
)
def test_what_the_builder_does_not_understand_it_refuses(text: str) -> None:
    with pytest.raises(CannotGoOn, match="not understood"):
        dockerfile.parse(text)


def test_the_image_is_what_a_strict_cluster_runs() -> None:
    final = dockerfile.parse((ROOT / "Dockerfile").read_text(encoding="utf-8"))[-1]
    uid, gid = map(int, final.user.split(":"))
    assert uid > 0
    assert gid > 0
    assert (final.entrypoint, final.command) == (("muster",), ("operator",))


def test_docker_is_not_sent_what_git_ignores() -> None:
    ignored = {line.strip("/").removeprefix("**/") for line in lines(".gitignore")}
    assert {line.removeprefix("**/") for line in lines(".dockerignore")} == ignored | {".git"}


def lines(name: str) -> list[str]:
    read = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return [line for line in read if line and not line.startswith("#")]
