"""The names of MPI implementations and of their programs."""


class Mpi:
    """The MPI implementation (`spec.launcher.mpi.implementation`)."""

    AUTO = "Auto"  # detect it with `mpirun --version`
    OPEN_MPI = "OpenMPI"  # versions 4 and 5
    INTEL_MPI = "IntelMPI"
    MPICH = "MPICH"
    ALL = (AUTO, OPEN_MPI, INTEL_MPI, MPICH)

    RUNNERS = ("mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun")
    """Programs that start an MPI world. A user's command with one of these base names replaces muster's mpirun."""
