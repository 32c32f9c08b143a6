"""docs/kubernetes.md is true: its commands are run in its order, on a small job of the same name."""

import json
import re
import shlex
from dataclasses import dataclass

from cluster.digits.trained import NAME
from cluster.held_job import held_job, let_go
from cluster.installation import Installation
from cluster.muster_command import Muster
from cluster.places import ROOT
from cluster.shared import Kubectl

TEXT = (ROOT / "docs" / "kubernetes.md").read_text(encoding="utf-8")
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL) for line in block.splitlines()]
JOB = f"dtj/{NAME}"


@dataclass
class Reader:
    """Does what the page says, in a namespace."""

    kubectl: Kubectl
    muster: Muster
    namespace: str

    def do(self, command: str) -> None:
        """Run a command of the page to its good end; one that goes on, until it has said something."""
        program, *words = shlex.split(command)
        if words[:2] == ["wait", "--for=condition=Complete"]:
            let_go(self.kubectl, self.namespace)
        if words[:2] == ["apply", "-f"]:
            self._apply(words[2])
        elif "--watch" in words or "--follow" in words:
            self._look(program, words)
        elif program == "kubectl":
            self.kubectl(*words, self._inside)
        else:
            self._ask(words)
        self._await(words)

    @property
    def _inside(self) -> str:
        return f"--namespace={self.namespace}"

    def _apply(self, file: str) -> None:
        # The real one is trained in test_digits.py; here it's enough that the API server takes it.
        self.kubectl("apply", "-f", str(ROOT / file), "--dry-run=server", self._inside)
        self.kubectl("apply", "-f", "-", self._inside, stdin=json.dumps(held_job(NAME, self.namespace)))

    def _look(self, program: str, words: list[str]) -> None:
        begun = self.kubectl.begin(*words, self._inside) if program == "kubectl" else self.muster.begin(*words)
        with begun as process:
            assert process.stdout is not None
            assert process.stdout.readline()
            process.terminate()

    def _ask(self, words: list[str]) -> None:
        done = self.muster(*words)
        assert done.returncode == 0, done.stderr

    def _await(self, words: list[str]) -> None:
        """What a reader sees before going on."""
        said = " ".join(words)
        if words[0] == "apply" or '"suspend": false' in said:
            self.kubectl.wait("jsonpath={.status.phase}=Running", JOB, self._inside)
        if '"suspend": true' in said:
            self.kubectl.wait("condition=Suspended", JOB, self._inside)


def test_the_page_is_true(installed_operator: Installation) -> None:
    kubectl, namespace = installed_operator.kubectl, installed_operator.namespace
    reader = Reader(kubectl, Muster(kubectl.kubeconfig, namespace), namespace)
    for command in COMMANDS:
        reader.do(command)
    assert {command.split()[0] for command in COMMANDS} == {"kubectl", "muster"}
