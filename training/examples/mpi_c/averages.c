/* Computes pi by integration on all ranks: each sums its part of the intervals, and all get the total.
 *
 * mpicc -O2 -o averages averages.c
 *
 * The exit code is 1 if the sum is wrong, and 2 for wrong arguments: the job's status then has the rank and the
 * code. */

#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double PI = 3.14159265358979323846;
static const double TOLERANCE = 1e-8;

/* Returns the value of an option: muster appends spec.hyperparameters as --name value. */
static long read_option(int count, char **words, const char *name, long default_value) {
    for (int i = 1; i + 1 < count; i++) {
        if (strcmp(words[i], name) == 0) {
            return strtol(words[i + 1], NULL, 10);
        }
    }
    return default_value;
}

/* Returns this rank's part of the integral of 4 / (1 + x^2) from 0 to 1: every size-th interval. */
static double integrate_part(int rank, int size, long intervals) {
    double sum = 0.0;
    for (long i = rank; i < intervals; i += size) {
        double x = ((double)i + 0.5) / (double)intervals;
        sum += 4.0 / (1.0 + x * x);
    }
    return sum / (double)intervals;
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    int rank, size, length;
    char host[MPI_MAX_PROCESSOR_NAME];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_processor_name(host, &length);
    printf("rank=%d of %d on %s\n", rank, size, host);

    long intervals = read_option(count, words, "--intervals", 1000000);
    if (intervals < 1) {
        fprintf(stderr, "--intervals: a whole number above 0 is expected\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    double part = integrate_part(rank, size, intervals);
    double pi = 0.0;
    /* the MPI type of double; with another type the sum would be wrong */
    MPI_Allreduce(&part, &pi, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("pi=%.10f\n", pi);
    }
    MPI_Finalize();
    return fabs(pi - PI) < TOLERANCE ? 0 : 1;
}
