"""Exchange messages between ranks with mpi4py: around a ring, a broadcast, and an average of gathered values.

MPI sends a buffer's bytes unchanged, so the array's dtype has to match the message's MPI type on both sides: float64 is
MPI.DOUBLE, float32 MPI.FLOAT, int64 MPI.INT64_T. MPI does not report a mismatch: a float64 array sent as MPI.FLOAT
arrives as half of the data with wrong values.
"""

import argparse

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

TOLERANCE = 0.01
"""Maximum error of the average. With 100,000 uniform numbers it is about 0.001."""

Values = NDArray[np.float64]
Counts = NDArray[np.int64]
Weights = NDArray[np.float32]


def parse_arguments() -> argparse.Namespace:
    """Parse the hyperparameters, which are --name value."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--samples", type=int, default=100_000, help="samples of rank 0; each further rank has 1,000 more"
    )
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def pass_around(world: MPI.Intracomm) -> Values:
    """Send a value to the next rank and receive one from the previous rank, until each value has returned. Sum them up.

    Sendrecv sends and receives at once. If all ranks sent first and then received, they could wait for each other.
    """
    rank, size = world.Get_rank(), world.Get_size()
    value: Values = np.full(1, float(rank), dtype=np.float64)
    received: Values = np.empty_like(value)
    total: Values = np.zeros_like(value)
    for _ in range(size):
        world.Sendrecv(
            [value, MPI.DOUBLE],
            dest=(rank + 1) % size,
            recvbuf=[received, MPI.DOUBLE],
            source=(rank - 1) % size,
        )
        value = received.copy()
        total += value
    return total


def broadcast_weights(world: MPI.Intracomm, seed: int) -> Weights:
    """Broadcast rank 0's random weights to all ranks, like the initial weights of a model."""
    weights: Weights = np.empty(1024, dtype=np.float32)
    if world.Get_rank() == 0:
        weights[:] = np.random.default_rng(seed).standard_normal(weights.size)
    world.Bcast([weights, MPI.FLOAT], root=0)
    return weights


def average_gathered_values(world: MPI.Intracomm, own: Values) -> float:
    """Return the mean of all ranks' values, on every rank. Each rank's mean is weighted by its number of values."""
    means: Values = np.empty(world.Get_size(), dtype=np.float64)
    counts: Counts = np.empty(world.Get_size(), dtype=np.int64)
    average: Values = np.empty(1, dtype=np.float64)
    world.Gather([np.array([own.mean()]), MPI.DOUBLE], [means, MPI.DOUBLE], root=0)
    world.Gather([np.array([own.size], dtype=np.int64), MPI.INT64_T], [counts, MPI.INT64_T], root=0)
    # Only the root has the gathered values.
    if world.Get_rank() == 0:
        average[0] = np.average(means, weights=counts)
    world.Bcast([average, MPI.DOUBLE], root=0)
    return float(average[0])


def main() -> None:
    """Run all three and check their results."""
    args = parse_arguments()
    world = MPI.COMM_WORLD
    rank, size = world.Get_rank(), world.Get_size()
    print(f"rank={rank} of {size} on {MPI.Get_processor_name()}", flush=True)

    ring = float(pass_around(world)[0])
    if ring != size * (size - 1) / 2:
        raise SystemExit(f"the ring's sum is {ring}: messages were lost or mixed up")

    weights = broadcast_weights(world, args.seed)
    # The weights are equal if the smallest sum is equal to the largest one.
    total = float(weights.sum(dtype=np.float64))
    if world.allreduce(total, op=MPI.MIN) != world.allreduce(total, op=MPI.MAX):
        raise SystemExit("the ranks have different weights after the broadcast")

    own = np.random.default_rng([args.seed, rank]).uniform(size=args.samples + 1000 * rank)
    average = average_gathered_values(world, own)
    if abs(average - 0.5) > TOLERANCE:
        raise SystemExit(f"the average of uniform numbers is {average}, far from 0.5")
    if rank == 0:
        print(f"ring={ring:g} average={average:.6f}", flush=True)


if __name__ == "__main__":
    main()
