"""Settings for all tests: one BLAS thread per process, which is fastest for small matrices and parallel tests."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
