import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_worker.rank.hook_environment import add_hook, remove_hook

ARCHIVE = "/run/muster/agent.pyz"
SITE = f"{ARCHIVE}/muster_worker/site"


@pytest.mark.parametrize(
    ("user", "hooked", "memory"),
    [
        (None, SITE, "unset"),
        ("", SITE, "set"),
        ("/a", f"{SITE}:/a", "set"),
        ("/a:", f"{SITE}:/a:", "set"),
        (":/a", f"{SITE}::/a", "set"),
    ],
)
def test_the_hook_comes_first(user: str | None, hooked: str, memory: str) -> None:
    environment = {} if user is None else {"PYTHONPATH": user}
    assert add_hook(environment, ARCHIVE, "rank") == {"PYTHONPATH": hooked, "MUSTER_HOOK": f"rank:{memory}"}


@given(st.none() | st.text("ab:/", max_size=8), st.sampled_from(["rank", "node"]), st.booleans())
def test_what_was_added_is_taken_away_again(user: str | None, scope: str, twice: bool) -> None:  # noqa: FBT001
    environment = {"HOME": "/root"} if user is None else {"PYTHONPATH": user}
    hooked = add_hook(environment, ARCHIVE, "node")
    if twice:  # a wrapper inside a node's command
        hooked = add_hook(hooked, ARCHIVE, scope)
        assert hooked["PYTHONPATH"].split(":").count(SITE) == 1
    assert remove_hook({**hooked, "MUSTER_PROGRESS": "/x"}, ARCHIVE) == environment


def test_what_a_shell_put_before_it_stays() -> None:
    hooked = add_hook({}, ARCHIVE, "rank")
    changed = {**hooked, "PYTHONPATH": f"/mine:{hooked['PYTHONPATH']}:/other"}
    assert remove_hook(changed, ARCHIVE) == {"PYTHONPATH": "/mine:/other"}
