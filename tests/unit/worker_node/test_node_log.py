import os

from muster_worker.agent.log import MAX_BUFFERED_BYTES, Log


def test_a_reader_that_sleeps_costs_lines_and_never_time() -> None:
    reader, writer = os.pipe()
    log = Log(writer)
    line = b"x" * 1023 + b"\n"
    for _ in range(2 * MAX_BUFFERED_BYTES // (64 * len(line))):
        log.write(line * 64)
    assert log.dropped_lines > 0
    assert log.dropped_lines % 64 == 0
    os.close(reader)  # ends the thread's waiting
    log.flush(10.0)
    os.close(writer)


def test_all_is_written_in_order() -> None:
    reader, writer = os.pipe()
    log = Log(writer)
    log.write(b"[rank 0] one\n")
    log.print_line("two")
    log.flush(10.0)
    assert os.read(reader, 100) == b"[rank 0] one\n[muster] two\n"
    assert log.dropped_lines == 0
    os.close(reader)
    os.close(writer)


def test_a_gap_is_said_where_it_is() -> None:
    reader, writer = os.pipe()
    log = Log(writer)
    log.write(b"x" * (MAX_BUFFERED_BYTES - 1) + b"\n")
    log.write(b"lost\nand gone\n")
    shown_bytes = 0
    while shown_bytes < MAX_BUFFERED_BYTES:
        shown_bytes += len(os.read(reader, 1 << 20))
    log.flush(10.0)
    assert os.read(reader, 200) == b"[muster] 2 lines are missing here, because the output was read too slowly\n"
    assert log.dropped_lines == 2
    os.close(reader)
    os.close(writer)
