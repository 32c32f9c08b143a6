import pytest

from muster_worker.agent.state import Event, LauncherRecord, RankEnded
from muster_worker.contract.schema import EndReason
from muster_worker.rank_group.memory_limit import OomKillDetector, list_counter_files, read_count

CONTROL = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"
EVENTS = "low 0\nhigh 0\nmax 12\noom 2\noom_kill 2\noom_group_kill 1\n"


class Counter:
    """The kernel's counter."""

    def __init__(self, count: int | None) -> None:
        self.count = count

    def __call__(self) -> int | None:
        return self.count


def killed(rank: int, at: float) -> RankEnded:
    return RankEnded(rank, at, None, 9)


@pytest.mark.parametrize(
    ("text", "count"),
    [(CONTROL, 3), (EVENTS, 2), ("", None), ("oom_kill_disable 0\nunder_oom 0\n", None), ("oom_kill many\n", None)],
)
def test_the_counter_is_read(text: str, count: int | None) -> None:
    assert read_count(text) == count


@pytest.mark.parametrize(
    ("cgroups", "first"),
    [
        pytest.param("0::/\n", "/sys/fs/cgroup/memory.events", id="v2, in a container"),
        pytest.param("0::/user.slice/a:b\n", "/sys/fs/cgroup/user.slice/a:b/memory.events", id="v2, on a machine"),
        pytest.param("9:cpu,memory:/kube/x\n", "/sys/fs/cgroup/memory/kube/x/memory.oom_control", id="v1"),
        pytest.param("", "/sys/fs/cgroup/memory.events", id="nothing known"),
    ],
)
def test_the_counter_is_looked_for_where_the_process_is_and_where_containers_have_it(cgroups: str, first: str) -> None:
    files = list_counter_files(cgroups)

    assert files[0] == first
    assert files[-2:] == ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")


@pytest.mark.parametrize(
    ("rise", "events", "oom"),
    [
        pytest.param(1, (killed(2, 10.0),), [2], id="the one that was killed"),
        pytest.param(0, (killed(2, 10.0),), [], id="SIGKILL by another process"),
        pytest.param(1, (killed(2, 10.0), killed(3, 10.0)), [3], id="of two the larger"),
        pytest.param(2, (killed(2, 10.0), killed(3, 10.0)), [2, 3], id="both"),
        pytest.param(1, (RankEnded(2, 10.0, None, 11),), [], id="a crash of its own"),
        pytest.param(1, (RankEnded(2, 10.0, 137),), [], id="an exit code"),
        pytest.param(1, (LauncherRecord("torchrun", 10.0, None, 9),), [], id="a launcher"),
    ],
)
def test_who_was_killed_at_the_memory_limit(rise: int, events: tuple[Event, ...], oom: list[int]) -> None:
    counter = Counter(5)
    kills = OomKillDetector(counter, 0.0)
    counter.count = 5 + rise

    result = kills.add_oom_reasons(events, 10.1, {2: 100, 3: 200}.__getitem__)

    assert [end.rank for end in result if isinstance(end, RankEnded) and end.reason == EndReason.OOM_KILLED] == oom
    assert [type(event) for event in result] == [type(event) for event in events]


def test_a_kill_that_was_observed_before_the_end_is_reported_counts() -> None:
    counter = Counter(0)
    kills = OomKillDetector(counter, 0.0)
    counter.count = 1
    kills.update(10.0)
    kills.update(20.0)

    (end,) = kills.add_oom_reasons([killed(2, 9.9)], 20.1, lambda _: 0)

    assert isinstance(end, RankEnded)
    assert end.reason == EndReason.OOM_KILLED


def test_a_kill_long_before_explains_nothing() -> None:
    counter = Counter(0)
    kills = OomKillDetector(counter, 0.0)
    counter.count = 1  # for example a data loader's process
    kills.update(10.0)

    assert kills.add_oom_reasons([killed(2, 15.1)], 15.2, lambda _: 0) == [killed(2, 15.1)]


def test_a_killed_process_may_take_seconds_to_end() -> None:
    """The kernel frees its memory first, which takes longer on a loaded machine."""
    counter = Counter(0)
    kills = OomKillDetector(counter, 0.0)
    counter.count = 1
    kills.update(10.0)

    (end,) = kills.add_oom_reasons([killed(2, 14.9)], 15.0, lambda _: 0)

    assert isinstance(end, RankEnded)
    assert end.reason == EndReason.OOM_KILLED


def test_without_a_counter_nothing_is_said() -> None:
    assert OomKillDetector(Counter(None), 0.0).add_oom_reasons([killed(2, 1.0)], 1.1, lambda _: 0) == [killed(2, 1.0)]
