"""What muster adds to two pods: from `kubectl apply` to both Succeeded, against the same pods written by hand.

    python bench/overhead.py --packages DIR --data DIR [--image IMAGE] [--pairs 10]

It asks the cluster of KUBECONFIG, where muster runs: for all namespaces, or for the one that `--namespace` names. The
two are run in turn, pair by pair, so that what else the machine does meets both; one that fails (a script on gloo may
abort when it ends) is counted and its pair taken again. `--packages` (Python packages with
torch) and `--data` (what digits/prepare.py of the examples made) are folders of the cluster's nodes. Prints one JSON
line; times are in seconds.
"""

import argparse
import json
import statistics
import string
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
TRAIN = HERE.parent / "training" / "examples" / "digits" / "train.py"
WAIT_SECONDS = 60
MOST_FAILURES = 5


PAIR = {
    "by_hand.yaml": ("by-hand-0", "by-hand-1"),
    "with_muster.yaml": ("with-muster-0-0", "with-muster-1-0"),
}


class Refused(Exception):
    """What kubectl said."""


class NotSucceeded(Exception):
    """A run didn't come to its good end; the manifest's name."""


def main(arguments: Sequence[str]) -> int:
    """Run the pairs; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packages", required=True, type=Path)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--image", default="cluster.muster.dev/python:1")
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--namespace", help="one that is there; by default one is made for the bench")
    options = parser.parse_args(arguments)
    namespace = options.namespace or f"bench-{uuid.uuid4().hex[:8]}"
    values = {"NAMESPACE": namespace, "IMAGE": options.image, "PACKAGES": options.packages, "DATA": options.data}
    if not options.namespace:
        kubectl("create", "namespace", namespace)
    try:
        kubectl("create", "configmap", "digits", f"--namespace={namespace}", f"--from-file={TRAIN}")
        kubectl("wait", "--for=create", "serviceaccount/default", f"--namespace={namespace}")
        by_hand, with_muster, failed = [], [], Counter[str]()
        while len(by_hand) < options.pairs:
            try:
                pair = [timed(manifest, values, pods) for manifest, pods in PAIR.items()]
            except NotSucceeded as problem:
                failed[str(problem)] += 1
                if failed.total() > MOST_FAILURES:
                    raise SystemExit(f"too many failures: {dict(failed)}") from None
                continue
            by_hand.append(pair[0])
            with_muster.append(pair[1])
    finally:
        made = ("configmap/digits", f"--namespace={namespace}") if options.namespace else (f"namespace/{namespace}",)
        kubectl("delete", *made, "--wait=false")
    medians = statistics.median(by_hand), statistics.median(with_muster)
    result = {
        "bench": "overhead",
        "pairs": options.pairs,
        "by_hand": [round(seconds, 2) for seconds in by_hand],
        "with_muster": [round(seconds, 2) for seconds in with_muster],
        "median_by_hand": round(medians[0], 2),
        "median_with_muster": round(medians[1], 2),
        "failed": failed,
        "longer_by": round(medians[1] - medians[0], 2),
    }
    print(json.dumps(result))
    return 0


def timed(manifest: str, values: dict[str, object], pods: Sequence[str]) -> float:
    """Seconds from `kubectl apply` to both pods Succeeded. The objects are gone again when it returns.

    Raises NotSucceeded when they aren't in time.
    """
    text = string.Template((HERE / manifest).read_text(encoding="utf-8")).safe_substitute(values)
    inside = f"--namespace={values['NAMESPACE']}"
    begun = time.monotonic()
    kubectl("apply", "-f", "-", stdin=text)
    names = [f"pod/{name}" for name in pods]
    try:
        for name in names:
            # one at a time: kubectl gives up on several when more than one isn't there yet
            kubectl("wait", "--for=create", name, inside, f"--timeout={WAIT_SECONDS}s")
        kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", *names, inside, f"--timeout={WAIT_SECONDS}s")
        return time.monotonic() - begun
    except Refused:
        raise NotSucceeded(manifest) from None
    finally:
        kubectl("delete", "-f", "-", "--wait", stdin=text)
        kubectl("wait", "--for=delete", *names, inside, f"--timeout={WAIT_SECONDS}s")


def kubectl(*arguments: str, stdin: str | None = None) -> None:
    """Run it to its good end. Raises Refused when it comes to another."""
    done = subprocess.run(["kubectl", *arguments], check=False, capture_output=True, text=True, input=stdin)
    if done.returncode != 0:
        raise Refused(f"kubectl {' '.join(arguments)}: {done.stdout}{done.stderr}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
