"""A launcher that muster doesn't have, on the operator's side: one class and one field."""

import pytest

from muster.api.field_problems import InvalidResource
from muster.api.launchers.base import Launcher
from muster.api.spec.job import Job
from muster.api.spec.launcher import LauncherSpec, list_launcher_types
from muster.api.spec.sagemaker.launch import Launch
from muster.api.validation.all_rules import RULES
from muster.cli.explain.explanations import explain_node
from muster.render.agent_plan import render_plan
from muster.render.sagemaker.request.start_script import make_start_files
from muster_worker.launchers.registry import MODULES
from unit.core.builders import job


class Greeting(Launcher):
    args: tuple[str, ...] = ()

    def list_arguments(self) -> tuple[str, ...]:
        return self.args


class Launchers(LauncherSpec):
    greeting: Greeting | None = None


@pytest.fixture
def greeted(monkeypatch: pytest.MonkeyPatch) -> Job:
    monkeypatch.setitem(MODULES, "greeting", "support.greeting_launcher")
    plain = job()
    launcher = Launchers(greeting=Greeting(args=("ranks",)))
    changes = {"launcher": launcher, "image": "image", "procs_per_node": 1}
    return plain.model_copy(update={"spec": plain.spec.model_copy(update=changes)})


def test_it_is_valid_and_known_by_its_name(greeted: Job) -> None:
    assert "greeting" in list_launcher_types(Launchers)
    assert [violation for rule in RULES for violation in rule.find_violations(greeted.spec)] == []


def test_agents_are_told_its_name_and_arguments(greeted: Job) -> None:
    plan = render_plan(greeted, "", "")
    assert (plan.launcher, plan.launcher_args) == ("greeting", ("ranks",))


def test_its_command_and_variables_are_explained(greeted: Job) -> None:
    found = {each.setting: (each.value, each.reason) for each in explain_node(greeted, 1)}
    assert found["greeting"] == ("hello", "what the shell says first")
    assert found["RANK"] == ("1", "the rank's place among all ranks")


def test_sagemaker_refuses_it_until_the_start_script_knows_it(greeted: Job) -> None:
    with pytest.raises(InvalidResource, match=r"spec\.launcher: found greeting, .* torchrun, mpi, direct, perNode"):
        make_start_files(greeted, Launch("Container", uses_start_script=True))
