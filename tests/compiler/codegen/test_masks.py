"""Masks of NumPy's functions, the option `where`, and other arguments of traced functions: as plain, or explained."""

import numpy as np
import pytest

from legged.compiler import compile
from legged.errors import TraceError

X = np.array([[0.4, -1.2, 0.7], [1.5, 0.3, -0.2]])
MASK = np.array([[True], [False]])
CASES = {
    "sum": lambda x: np.sum(x, axis=1, where=x > 0.0),
    "sum of a plain mask": lambda x: np.sum(x, axis=0, where=MASK),
    "prod": lambda x: np.prod(x, where=x < 1.0),
    "mean of a plain mask": lambda x: np.mean(x, axis=0, where=MASK),
    "max": lambda x: np.max(x, axis=0, where=x < 1.0, initial=-9.0),
    "min of a plain mask": lambda x: np.min(x, axis=0, where=MASK, initial=9.0),
    "any": lambda x: np.any(x > 1.0, axis=0, where=x < 2.0) * 1.0,
    "all of a plain mask": lambda x: np.all(x > -1.0, axis=0, where=~MASK) * 1.0,
    "hypot": lambda x: np.hypot.reduce(x, axis=(0, 1), initial=2.0, where=MASK),
    "arctan2": lambda x: np.arctan2.reduce(x, axis=0, initial=2.0, where=MASK),
    "sqrt": lambda x: np.sqrt(np.abs(x), where=x > 0.0, out=x.copy()),
    "in place": lambda x: np.add(x, 1.0, where=x > 0.0, out=x.copy()),
    "one number": lambda x: np.add(x, 1.0, where=x[0, 0] > 0.0, out=x.copy()),
    "logaddexp": lambda x: np.logaddexp.reduce(x, axis=(0, 1)),
}


@pytest.mark.parametrize("name", CASES)
def test_masked_functions_agree_with_numpy(name):
    function = CASES[name]
    for x in (X, -X, X[::-1].copy()):
        np.testing.assert_allclose(compile(function, x=X.shape)(x), function(x), rtol=1e-14)


@pytest.mark.parametrize(
    "function, words",
    [
        (lambda x: np.sqrt(x, where=x > 0.0), "np.sqrt with a mask `where` needs out"),
        (lambda x: np.max(x, where=x > 0.0), "np.maximum with a mask `where` needs initial"),
        (lambda x: np.nanmedian(x, axis=0), "np.nanmedian cannot be traced .* use np.sort or np.median"),
        (lambda x: np.median(x, axis=(0, 1)), "axis must be an integer or None"),
        (lambda x: np.frombuffer(x.tobytes()), "the bytes of a traced array are not known yet"),
    ],
)
def test_other_arguments_are_explained(function, words):
    with pytest.raises(TraceError, match=words):
        compile(function, x=X.shape)


def test_the_sign_of_zero_is_a_positive_zero():
    compiled = compile(lambda x: np.sign(x), x=3)
    signs = compiled(np.array([-0.0, 0.0, -1e-320]))
    assert signs.tolist() == [0.0, 0.0, -1.0] and not np.signbit(signs[0])
