"""Messages between ranks with mpi4py: around a ring, from one to all, and an average of what all have gathered.

A buffer is sent as it lies in memory, so the array's dtype and the message's MPI type have to name the same thing on
both sides: float64 is MPI.DOUBLE, float32 MPI.FLOAT, int64 MPI.INT64_T. A float64 array sent as MPI.FLOAT arrives by
half, as numbers that mean something else, and nobody says a word.
"""

import argparse

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

TOLERANCE = 0.01
"""Of an average of uniform numbers: 100,000 of them miss 0.5 by 0.001."""

Values = NDArray[np.float64]
Counts = NDArray[np.int64]
Weights = NDArray[np.float32]


def arguments() -> argparse.Namespace:
    """Hyperparameters arrive as --name value."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=100_000, help="of rank 0; each next rank has 1,000 more")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def pass_around(world: MPI.Intracomm) -> Values:
    """Send a value to the next rank and receive one from the rank before, until each is at home again; their sum.

    A rank that sends first and receives later may wait for one that does the same: Sendrecv does both at once.
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
    """The weights that rank 0 draws, on every rank: what a model's replicas begin with."""
    weights: Weights = np.empty(1024, dtype=np.float32)
    if world.Get_rank() == 0:
        weights[:] = np.random.default_rng(seed).standard_normal(weights.size)
    world.Bcast([weights, MPI.FLOAT], root=0)
    return weights


def gathered_average(world: MPI.Intracomm, own: Values) -> float:
    """The mean of all ranks' values, on every rank. Ranks have different numbers of them, so each mean has a weight."""
    means: Values = np.empty(world.Get_size(), dtype=np.float64)
    counts: Counts = np.empty(world.Get_size(), dtype=np.int64)
    average: Values = np.empty(1, dtype=np.float64)
    world.Gather([np.array([own.mean()]), MPI.DOUBLE], [means, MPI.DOUBLE], root=0)
    world.Gather([np.array([own.size], dtype=np.int64), MPI.INT64_T], [counts, MPI.INT64_T], root=0)
    # The root alone has them: to the others the buffers that they receive into mean nothing.
    if world.Get_rank() == 0:
        average[0] = np.average(means, weights=counts)
    world.Bcast([average, MPI.DOUBLE], root=0)
    return float(average[0])


def main() -> None:
    """Do all three, and fail unless each gives what it must."""
    args = arguments()
    world = MPI.COMM_WORLD
    rank, size = world.Get_rank(), world.Get_size()
    print(f"rank={rank} of {size} on {MPI.Get_processor_name()}", flush=True)

    ring = float(pass_around(world)[0])
    if ring != size * (size - 1) / 2:
        raise SystemExit(f"the ring's sum is {ring}: messages were lost or mixed up")

    weights = broadcast_weights(world, args.seed)
    # Every rank's weights are the same when the smallest and the largest sum are.
    total = float(weights.sum(dtype=np.float64))
    if world.allreduce(total, op=MPI.MIN) != world.allreduce(total, op=MPI.MAX):
        raise SystemExit("the ranks have different weights after the broadcast")

    own = np.random.default_rng([args.seed, rank]).uniform(size=args.samples + 1000 * rank)
    average = gathered_average(world, own)
    if abs(average - 0.5) > TOLERANCE:
        raise SystemExit(f"the average of uniform numbers is {average}, far from 0.5")
    if rank == 0:
        print(f"ring={ring:g} average={average:.6f}", flush=True)


if __name__ == "__main__":
    main()
