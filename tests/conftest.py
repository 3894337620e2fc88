"""Small matrices and parallel tests: threads inside BLAS would only get in each other's way."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
