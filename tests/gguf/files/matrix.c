#include "matrix.h"

/* y = A x, for a matrix of n rows and m columns in row order. */
void multiply(const double *a, const double *x, double *y, int n, int m)
{
    for (int i = 0; i < n; i++) {
        double sum = 0.0;
        for (int j = 0; j < m; j++)
            sum += a[i * m + j] * x[j];
        y[i] = sum;
    }
}

/* The largest absolute value of a vector; 0 for an empty one. */
double largest(const double *x, int n)
{
    double best = 0.0;
    for (int i = 0; i < n; i++) {
        double value = x[i] < 0 ? -x[i] : x[i];
        if (value > best)
            best = value;
    }
    return best;
}
