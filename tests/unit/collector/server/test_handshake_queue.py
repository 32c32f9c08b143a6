"""The order of TLS handshakes."""

from muster.collector.server.cpu_budgets import ADDRESS_RATE, UNAUTHENTICATED_RATE, CpuBudgets
from muster.collector.server.handshake_queue import HandshakeQueue


def queue(max_handshakes: int = 100, max_per_address: int = 2) -> HandshakeQueue[str]:
    return HandshakeQueue(max_handshakes, max_per_address, CpuBudgets(lambda _: 1.0))


def arrive(step: HandshakeQueue[str], *guests: str) -> None:
    for client in guests:
        step.add(client, client[0])


def test_addresses_take_turns() -> None:
    step = queue(max_per_address=3)
    arrive(step, "a1", "a2", "a3", "b1", "c1", "c2")

    assert [step.take_next(0.0) for _ in range(7)] == ["a1", "b1", "c1", "a2", "c2", "a3", None]


def test_an_address_has_few_handshakes_at_once() -> None:
    step = queue()
    arrive(step, "a1", "a2", "a3")
    assert [step.take_next(0.0) for _ in range(3)] == ["a1", "a2", None]

    step.remove("a1", "a")

    assert step.take_next(0.0) == "a3"
    assert step.count_connections("a") == 2


def test_so_have_all_together() -> None:
    step = queue(max_handshakes=2)
    arrive(step, "a1", "b1", "c1")

    assert [step.take_next(0.0) for _ in range(3)] == ["a1", "b1", None]
    assert step.has_waiting


def test_an_address_without_processor_time_waits_and_others_do_not() -> None:
    step = queue()
    step.cpu.charge_unauthenticated("a", ADDRESS_RATE.burst + 0.001, 0.0)
    arrive(step, "a1", "b1")

    assert [step.take_next(0.0), step.take_next(0.0)] == ["b1", None]
    assert step.take_next(1.0) == "a1"


def test_when_strangers_used_up_their_time_all_wait() -> None:
    step = queue()
    for address in range(100):
        step.cpu.charge_unauthenticated(str(address), UNAUTHENTICATED_RATE.burst / 99, 0.0)
    arrive(step, "a1")

    assert step.take_next(0.0) is None
    assert step.take_next(1.0) == "a1"


def test_who_leaves_leaves_nothing_behind() -> None:
    step = queue()
    arrive(step, "a1", "a2")
    step.take_next(0.0)
    step.remove("a1", "a")
    step.remove("a2", "a")

    assert (len(step), step.count_connections("a"), step.has_waiting) == (0, 0, False)


def test_the_address_with_most_places_makes_room_for_one_with_fewer() -> None:
    step = queue()
    arrive(step, "a1", "a2", "a3", "b1")
    step.take_next(0.0)

    assert step.find_connection_to_close("c") == "a2"
    assert step.find_connection_to_close("b") == "a2"
    assert step.find_connection_to_close("a") is None
