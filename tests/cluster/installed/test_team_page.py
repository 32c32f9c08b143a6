"""docs/platform-hour.md: the team's commands and its job do what the page says."""

import re
import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path

from cluster.images import PULL_POLICY, PYTHON_IMAGE
from cluster.installation import Installation
from cluster.installed.awaited import until
from cluster.places import ROOT
from cluster.shared import Kubectl

PAGE = (ROOT / "docs" / "platform-hour.md").read_text(encoding="utf-8")
NAMESPACE = "team-a"
SECONDS = 30.0


def commands(heading: str) -> list[list[str]]:
    """Return the words of the kubectl commands below a heading that begins with this text."""
    section = PAGE.partition(f"\n## {heading}")[2].partition("\n## ")[0]
    shells = re.findall(r"^```sh\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    lines = [line for text in shells for line in re.sub(r"\\\n\s*", "", text).splitlines()]
    return [shlex.split(line)[1:] for line in lines if line.startswith("kubectl ")]


def write_file(folder: Path, name: str, namespace: str) -> str:
    """Write one of the page's files, with an image that the nodes have, and without the pool of the page's
    installation. Return its path.
    """
    block = re.search(rf"^```yaml\n# {re.escape(name)}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert block is not None
    text = block[1].replace(NAMESPACE, namespace).replace("  nodePool: {name: cpu}\n", "")
    text = text.replace("python:3.12-slim", PYTHON_IMAGE)
    text = text.replace("- name: trainer\n", f"- name: trainer\n        imagePullPolicy: {PULL_POLICY}\n")
    (folder / name).write_text(text, "utf-8")
    return str(folder / name)


def test_a_member_of_the_team_runs_the_job_until_killed_ranks_fail_it(
    installed_operator: Installation, tmp_path: Path
) -> None:
    kubectl, namespace = installed_operator.kubectl, installed_operator.namespace
    files = {name: write_file(tmp_path, name, namespace) for name in ("template.yaml", "team.yaml")}

    def run(words: list[str]) -> str:
        return kubectl(*(files.get(word, word.replace(NAMESPACE, namespace)) for word in words))

    [binding] = [words for words in commands("1.") if words[1] == "rolebinding"]
    for kind, name in (binding[1:3], ("dtj", "first")):  # of an earlier run of this test
        kubectl("delete", kind, name.replace(NAMESPACE, namespace), f"--namespace={namespace}", "--ignore-not-found")
    run(binding)
    for words in (*commands("3."), *commands("4.")):
        if words[:2] == ["auth", "can-i"]:
            allowed = NAMESPACE in words
            assert answer(kubectl, [word.replace(NAMESPACE, namespace) for word in words]) == allowed
        elif "quota" not in words:
            run(words)
    messages = []
    for words in commands("6."):
        if words[0] == "exec":
            # A rank that has just started may not have written its file yet.
            until(partial(succeeds, run, words), SECONDS)
        else:
            messages.append(run(words))
    assert re.search(r"Rank 2 on first-1\S* was killed by SIGKILL", "".join(messages)), messages


def succeeds(run: Callable[[list[str]], str], words: list[str]) -> bool:
    """Whether the command succeeds."""
    try:
        run(words)
    except AssertionError:
        return False
    return True


def answer(kubectl: Kubectl, words: list[str]) -> bool:
    """Return the answer of `kubectl auth can-i`, which fails if it is no."""
    return succeeds(lambda each: kubectl(*each), words)
