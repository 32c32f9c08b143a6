"""Measures the time from `kubectl apply` to Succeeded of two pods, as a job of muster and as pods written by hand.

    python bench/overhead.py --packages DIR --data DIR [--image IMAGE] [--pairs 10]

It uses the cluster of KUBECONFIG, where muster runs for all namespaces, or for that of `--namespace`. It runs both in
turns, so that other load affects both. It counts a failed run and repeats its pair, because a script on gloo may abort
at its end. `--packages` (Python packages with torch) and `--data` (from digits/prepare.py of the examples) are folders
on the cluster's nodes. Prints one JSON line. Times are in seconds.
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
MAX_FAILURES = 5


PAIR = {
    "by_hand.yaml": ("by-hand-0", "by-hand-1"),
    "with_muster.yaml": ("with-muster-0-0", "with-muster-1-0"),
}


class KubectlError(Exception):
    """kubectl's error."""


class RunFailed(Exception):
    """A run didn't succeed. The message is the manifest's name."""


def main(arguments: Sequence[str]) -> int:
    """Run the pairs; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packages", required=True, type=Path)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--image", default="cluster.muster.dev/python:1")
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--namespace", help="an existing namespace; by default the bench creates one")
    options = parser.parse_args(arguments)
    namespace = options.namespace or f"bench-{uuid.uuid4().hex[:8]}"
    values = {"NAMESPACE": namespace, "IMAGE": options.image, "PACKAGES": options.packages, "DATA": options.data}
    if not options.namespace:
        run_kubectl("create", "namespace", namespace)
    try:
        run_kubectl("create", "configmap", "digits", f"--namespace={namespace}", f"--from-file={TRAIN}")
        run_kubectl("wait", "--for=create", "serviceaccount/default", f"--namespace={namespace}")
        by_hand: list[float] = []
        with_muster: list[float] = []
        failed = Counter[str]()
        while len(by_hand) < options.pairs:
            try:
                pair = [measure_seconds(manifest, values, pods) for manifest, pods in PAIR.items()]
            except RunFailed as problem:
                failed[str(problem)] += 1
                if failed.total() > MAX_FAILURES:
                    raise SystemExit(f"too many failures: {dict(failed)}") from None
                continue
            by_hand.append(pair[0])
            with_muster.append(pair[1])
    finally:
        created_objects = (
            ("configmap/digits", f"--namespace={namespace}") if options.namespace else (f"namespace/{namespace}",)
        )
        run_kubectl("delete", *created_objects, "--wait=false")
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


def measure_seconds(manifest: str, values: dict[str, object], pods: Sequence[str]) -> float:
    """Return the seconds from `kubectl apply` until both pods are Succeeded. Deletes the objects before it returns.

    Raises NotSucceeded after the time limit.
    """
    text = string.Template((HERE / manifest).read_text(encoding="utf-8")).safe_substitute(values)
    namespace_option = f"--namespace={values['NAMESPACE']}"
    started = time.monotonic()
    run_kubectl("apply", "-f", "-", stdin=text)
    names = [f"pod/{name}" for name in pods]
    try:
        for name in names:
            # Wait for one pod at a time, because `kubectl wait` fails if several objects are missing.
            run_kubectl("wait", "--for=create", name, namespace_option, f"--timeout={WAIT_SECONDS}s")
        run_kubectl(
            "wait", "--for=jsonpath={.status.phase}=Succeeded", *names, namespace_option, f"--timeout={WAIT_SECONDS}s"
        )
        return time.monotonic() - started
    except KubectlError:
        raise RunFailed(manifest) from None
    finally:
        run_kubectl("delete", "-f", "-", "--wait", stdin=text)
        run_kubectl("wait", "--for=delete", *names, namespace_option, f"--timeout={WAIT_SECONDS}s")


def run_kubectl(*arguments: str, stdin: str | None = None) -> None:
    """Run kubectl. Raises Refused if it fails."""
    completed = subprocess.run(["kubectl", *arguments], check=False, capture_output=True, text=True, input=stdin)
    if completed.returncode != 0:
        raise KubectlError(f"kubectl {' '.join(arguments)}: {completed.stdout}{completed.stderr}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
