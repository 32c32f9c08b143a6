"""On one machine all nodes share the output folder."""

import threading
from pathlib import Path

from muster_worker.sagemaker import opt_ml
from support.node_builders import make_node_context, make_plan


def test_nodes_that_share_their_output_prepare_it_at_the_same_time(tmp_path: Path) -> None:
    plan, host = make_plan(), make_node_context().host
    refused: list[OSError] = []

    def prepare(root: Path, start: threading.Barrier) -> None:
        start.wait()
        try:
            opt_ml.prepare(str(root), plan, 0, host)
        except OSError as error:
            refused.append(error)

    for attempt in range(10):
        output = tmp_path / str(attempt) / "output"
        output.mkdir(parents=True)
        nodes = [tmp_path / str(attempt) / str(node) for node in range(4)]
        start = threading.Barrier(len(nodes))
        threads = [threading.Thread(target=prepare, args=(node, start)) for node in nodes]
        for node in nodes:
            node.mkdir()
            (node / "output").symlink_to(output)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert refused == []
    assert (output / "data").is_dir()
