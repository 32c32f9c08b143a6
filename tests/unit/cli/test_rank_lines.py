import pytest

from muster.cli.board.rank_lines import OutputLine, format_coloured, format_plain, parse_line, should_show


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("[rank 3] loss 0.1", OutputLine("vit-0", "rank 3", 3, "loss 0.1")),
        ("[rank 3] ", OutputLine("vit-0", "rank 3", 3, "")),
        ("[torchrun] W1121 hello", OutputLine("vit-0", "torchrun", None, "W1121 hello")),
        ("[mpiexec.hydra] hello", OutputLine("vit-0", "mpiexec.hydra", None, "hello")),
        ("[muster] ready", OutputLine("vit-0", "muster", None, "ready")),
        ("Traceback of the agent itself", OutputLine("vit-0", "agent", None, "Traceback of the agent itself")),
        ("[rank 99999999999999] no rank", OutputLine("vit-0", "agent", None, "[rank 99999999999999] no rank")),
    ],
)
def test_a_line_has_an_origin(line: str, expected: OutputLine) -> None:
    assert parse_line("vit-0", line) == expected


def test_ranks_that_were_asked_for_exclude_all_others() -> None:
    rank, launcher = parse_line("vit-0", "[rank 3] a"), parse_line("vit-0", "[torchrun] b")
    assert should_show(rank, frozenset())
    assert should_show(launcher, frozenset())
    assert should_show(rank, frozenset({3}))
    assert not should_show(rank, frozenset({1}))
    assert not should_show(launcher, frozenset({3}))


def test_a_rank_keeps_its_colours_and_cannot_move_the_cursor() -> None:
    text = format_coloured(parse_line("vit-0", "[rank 3] \x1b[31mred\x1b[0m \x1b[2J\x1b[H done\r"))
    assert text.plain == "[rank 3] red  done"
    assert "color(1)" in {str(span.style) for span in text.spans}


def test_a_file_gets_the_line_as_it_is() -> None:
    assert format_plain(parse_line("vit-0", "[rank 3] a [b] c")) == "[rank 3] a [b] c"
    assert format_plain(parse_line("vit-0", "[torchrun] hello")) == "[vit-0 torchrun] hello"
