"""The members of an attempt: their text in the status, and their node ranks in the facts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.core.facts import NodeFacts
from muster.core.membership.member_text import parse_members
from muster.core.membership.members import find_node, format_members, set_node_count, split_members
from muster.core.membership.non_members import find_change_time, find_nodes_to_create, remove_unwanted_pods
from muster.core.membership.peers import select_peers
from muster.core.reports.check import ImplausibleReport, JobShape, check_report
from muster_worker.contract.schema import AgentPhase, RankReport, RankState, Report
from unit.core.builders import START, T0, UID, exited_process, facts, job, missing_node, node, ready_node


def nodes(*numbers: int) -> tuple[NodeFacts, ...]:
    return tuple(node(number) for number in numbers)


@pytest.mark.parametrize(
    ("members", "text"), [((0,), "0"), ((0, 1, 2), "0-2"), ((0, 1, 4, 3), "0-1,4,3"), ((2, 3, 0), "2-3,0")], ids=str
)
def test_members_are_written_in_the_order_of_their_node_ranks(members: tuple[int, ...], text: str) -> None:
    assert format_members(nodes(*members)) == text
    assert parse_members(text, 5) == members


@given(st.permutations(range(8)), st.integers(1, 8))
def test_each_formatted_text_is_parsed_to_the_same_members(order: list[int], count: int) -> None:
    members = tuple(order[:count])
    assert parse_members(format_members(nodes(*members)), 8) == members


@pytest.mark.parametrize("text", ["", "0,", "-1", "3-1", "0-4", "0,0", "0-2,1", "0-999999", "1e3", "0 1", "٣"], ids=str)
def test_an_invalid_text_has_no_members(text: str) -> None:
    assert parse_members(text, 4) is None


def test_the_position_of_a_member_is_its_node_rank() -> None:
    job_facts = split_members(facts(ready_node(0), missing_node(1), ready_node(2)), (2, 0), 3)
    assert [(entry.node, entry.node_rank) for entry in job_facts.nodes] == [(2, 0), (0, 1)]
    assert [entry.node for entry in job_facts.non_members] == [1]
    assert find_node(job_facts, 1).name == "digits-1"
    assert [peer.node for peer in select_peers(job_facts.nodes)] == [2, 0]
    assert set_node_count(job(3), job_facts).spec.nodes == 2
    assert set_node_count(job(2), job_facts) is not None


def test_non_members_get_pods_and_unwanted_pods_are_deleted() -> None:
    exited_node = node(2, process=exited_process(10, 0))
    job_facts = split_members(facts(ready_node(0), missing_node(1), exited_node, ready_node(3)), (0,), 3)
    assert [entry.node for entry in find_nodes_to_create(job_facts, START + 11)] == [1]
    assert [entry.node for entry in find_nodes_to_create(job_facts, START + 40)] == [1, 2]
    assert find_change_time(job_facts) == 0.0
    assert [action.node for action in remove_unwanted_pods(job_facts)] == [3]


def rank_report(*numbers: int, sender: int = 1) -> Report:
    ranks = tuple(RankReport(number, number % 2, RankState.RUNNING) for number in numbers)
    return Report(UID, sender, 0, 2, 1, AgentPhase.RUNNING, ranks=ranks)


@pytest.mark.parametrize("numbers", [(), (0, 1), (2, 3), (4, 5)], ids=str)
def test_a_node_may_report_the_ranks_of_any_node_rank(numbers: tuple[int, ...]) -> None:
    check_report(rank_report(*numbers), JobShape(UID, 3, 2, T0, has_fixed_ranks=False), START)


@pytest.mark.parametrize("numbers", [(1, 2), (6, 7), (-1, 0), (10**30,)], ids=str)
def test_a_node_may_not_report_ranks_of_two_node_ranks(numbers: tuple[int, ...]) -> None:
    with pytest.raises(ImplausibleReport, match="this node has ranks"):
        check_report(rank_report(*numbers), JobShape(UID, 3, 2, T0, has_fixed_ranks=False), START)
