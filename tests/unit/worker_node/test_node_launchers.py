from collections.abc import Callable
from dataclasses import replace

import pytest

from muster_worker.contract.schema import Launcher, Plan
from muster_worker.launchers.environment import ForkServer, NodeContext
from muster_worker.launchers.launch import find_wrapper
from muster_worker.launchers.registry import find_launcher
from support.node_builders import make_node_context, make_plan


def nowhere(_: str) -> None:
    return None


def torchrun(plan: Plan, which: Callable[[str], str | None]) -> tuple[str, ...]:
    [start] = find_launcher(Launcher.TORCHRUN).list_processes(replace(make_node_context(plan), attempt=3), {}, which)
    return tuple(start.command)


def found(name: str) -> str:
    return f"/bin/{name}"


@pytest.mark.parametrize(
    ("command", "program"),
    [
        (("python", "train.py"), ("python", "-m", "torch.distributed.run")),
        (("/env/bin/python3.11", "t.py"), ("/env/bin/python3.11", "-m", "torch.distributed.run")),
        (("./train.sh",), ("/bin/torchrun",)),
        (("python-config",), ("/bin/torchrun",)),
    ],
)
def test_torchrun_runs_on_the_python_of_the_command(command: tuple[str, ...], program: tuple[str, ...]) -> None:
    assert torchrun(make_plan(*command), found)[: len(program)] == program


def test_torchrun_without_a_torchrun_on_the_path() -> None:
    line = torchrun(make_plan("./train.sh"), nowhere)
    assert line[:3] == ("python3", "-m", "torch.distributed.run")


def test_torchrun_wraps_the_command() -> None:
    plan = make_plan(hyperparameters={"lr": 3e-5}, launcher_args=("--log-dir", "x"))
    line = " ".join(torchrun(plan, nowhere))
    assert "--nnodes 2 --nproc_per_node 2 --node_rank 1 --master_addr 10.0.0.1 --master_port 29500" in line
    assert "--rdzv_id uid-3 --max_restarts 0 --log-dir x --no_python" in line
    assert line.endswith("/usr/bin/python3 -I -S /agent.pyz rank -- python train.py --lr 3e-05")


def test_the_agent_forks_wrappers_and_starts_other_programs() -> None:
    plain = make_node_context(make_plan("python", "train.py"))
    warm = replace(plain, fork_server=ForkServer(7, "/run/muster/fork.sock", forks_ranks=True))

    def forked(launcher: str, context: NodeContext) -> tuple[str, ...] | None:
        spec = find_launcher(launcher).list_processes(context, {}, nowhere)[0]
        wrapper = find_wrapper(spec, context)
        return None if wrapper is None else (wrapper.name, *wrapper.arguments)

    assert forked(Launcher.DIRECT, plain) == ("rank", "--", "python", "train.py")
    assert forked(Launcher.TORCHRUN, plain) is None
    launcher = forked(Launcher.TORCHRUN, warm)
    assert launcher is not None
    assert launcher[:6] == ("launcher", "/run/muster/fork.sock", "--", "python", "-m", "torch.distributed.run")
