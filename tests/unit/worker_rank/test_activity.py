"""Stacks and the resulting activities. The dumps with `torch` are from torch 2.15 on two ranks with gloo."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_worker.contract.schema import MAX_ACTIVITY_CHARS
from muster_worker.rank_group import activity
from support.rows import check_rows

TORCH = "/opt/venv/lib/python3.11/site-packages/torch"
ALL_REDUCE = f"""\
Current thread 0x00007f0f9702cb80 (most recent call first):
  File "{TORCH}/distributed/distributed_c10d.py", line 4181 in all_reduce
  File "{TORCH}/distributed/c10d_logger.py", line 83 in wrapper
  File "/app/train.py", line 11 in <module>
"""
BACKWARD = f"""\
Current thread 0x00007f7a237bcb80 (most recent call first):
  File "{TORCH}/autograd/graph.py", line 1113 in _engine_run_backward
  File "{TORCH}/autograd/__init__.py", line 395 in backward
  File "{TORCH}/_tensor.py", line 623 in backward
  File "/app/train.py", line 11 in <module>
"""
IN_USER_CODE = """\
Current thread 0x00007f670adbab80 (most recent call first):
  File "/app/train.py", line 8 in late
  File "/app/train.py", line 10 in <module>
"""
OTHER_THREAD = """\
Thread 0x00007f1111111111 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 324 in wait
  File "/app/prefetch.py", line 3 in run

"""


def _stack(*frames: str) -> str:
    """Return a dump of frames written as `file:function`, the innermost first."""
    lines = []
    for frame in frames:
        file, _, function = frame.rpartition(":")
        lines.append(f'  File "{file.replace("torch/", TORCH + "/", 1)}", line 5 in {function}')
    return "Thread 0x00007f0000000000 (most recent call first):\n" + "\n".join(lines) + "\n"


C10D = "torch/distributed/distributed_c10d.py"


WHAT_A_DUMP_SAYS_ROWS: list[tuple[str, str | None]] = [
    (ALL_REDUCE, "all_reduce"),
    (BACKWARD, "backward"),
    (IN_USER_CODE, "train.py:8 in late"),
    (OTHER_THREAD + ALL_REDUCE, "all_reduce"),
    (OTHER_THREAD + ALL_REDUCE.replace("Current thread", "Thread"), "all_reduce"),
    (ALL_REDUCE.replace("cb80 (", "cb80 [MainThread] ("), "all_reduce"),
    (_stack(f"{C10D}:barrier", f"{C10D}:init_process_group", "/app/t.py:main"), "init_process_group"),
    (_stack(f"{C10D}:all_gather", f"{C10D}:all_gather_object", "/app/t.py:main"), "all_gather_object"),
    (_stack(f"{C10D}:recv", "/app/t.py:main", "torch/autograd/graph.py:_engine_run_backward"), "recv"),
    (
        _stack("torch/distributed/rendezvous.py:_create_c10d_store", "/app/t.py:main"),
        "init_process_group",
    ),
    (_stack(f"{C10D}:_verify", "torch/nn/parallel/distributed.py:__init__"), "setting up DistributedDataParallel"),
    (_stack("torch/distributed/_functional_collectives.py:wait_tensor", "/app/t.py:f"), "a collective"),
    (_stack("torch/optim/adamw.py:step", "/app/t.py:f"), "optimizer step"),
    (_stack("/app/t.py:closure", "torch/optim/lbfgs.py:step", "/app/t.py:f"), "optimizer step"),
    (_stack("/app/data.py:__getitem__", "torch/utils/data/dataloader.py:__next__"), "loading data"),
    (_stack("torch/serialization.py:_save", "torch/serialization.py:save", "/app/t.py:f"), "saving a checkpoint"),
    (_stack("torch/serialization.py:load", "/app/t.py:f"), "loading a checkpoint"),
    (_stack("torch/cuda/__init__.py:synchronize", "/app/t.py:f"), "waiting for the GPU"),
    (_stack("<frozen importlib._bootstrap>:_load", "/app/t.py:<module>"), "importing modules"),
    (_stack("/usr/lib/python3.11/socket.py:recv", "/app/my net.py:fetch"), "my net.py:5 in fetch"),
    (_stack("/usr/lib/python3.11/runpy.py:run"), None),
    (_stack("/app/t.py:" + "f" * 300), ("t.py:5 in " + "f" * 300)[:120]),
    (ALL_REDUCE + "...\n", None),
    (OTHER_THREAD, "prefetch.py:3 in run"),
    ("", None),
    ("junk", None),
]


def test_what_a_dump_says() -> None:
    def check(dump: str, expected: str | None) -> None:
        assert activity.describe_dump(dump) == expected

    check_rows(WHAT_A_DUMP_SAYS_ROWS, lambda row: check(*row))


TRACEBACK = f"""\
epoch 3
Traceback (most recent call last):
  File "/app/train.py", line 50, in <module>
    main()
  File "/app/train.py", line 42, in train_step
    dist.all_reduce(loss)
  File "{TORCH}/distributed/c10d_logger.py", line 83, in wrapper
    return func(*args, **kwargs)
  File "{TORCH}/distributed/distributed_c10d.py", line 4181, in all_reduce
    work.wait()
RuntimeError: [gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.1.1]:30148
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TRACEBACK, "all_reduce"),
        ('  File "/app/train.py", line 42, in train_step\nValueError: x', "train.py:42 in train_step"),
        ('  File "/app/train.py", line 3\n    def\nSyntaxError: invalid syntax', None),
        ("Killed", None),
    ],
)
def test_what_a_traceback_says(text: str, expected: str | None) -> None:
    assert activity.describe_traceback(text.splitlines()) == expected


@given(st.text())
def test_any_text_is_survived(text: str) -> None:
    for seen in (activity.describe_dump(text), activity.describe_traceback(text.splitlines())):
        assert seen is None or len(seen) <= MAX_ACTIVITY_CHARS


def test_torch_may_be_in_any_folder() -> None:
    assert activity.describe_dump(ALL_REDUCE.replace(TORCH, "/opt/muster-test/torch")) == "all_reduce"
