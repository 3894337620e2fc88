"""The fractions of the steps of a plan during which the feet of a gait stand."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np

from controllers.locomotion.gait.schedule import GaitState
from legged.compiler.ir import where

_LEAST = 1e-9  # fraction below which a foot does not stand


def stance_shares(state: GaitState, duration: Any, count: int) -> tuple[list[list[Any]], list[Any]]:
    """Return the fractions of each of N steps from now during which each foot, (N, n), and any foot, (N,), stands.

    While the gait waits for a foot, the feet that stand do so during the whole first step, and the schedule continues
    after it.

    Args:
        state: State of a gait with n feet. duration: Of a step, shorter than a stance and than a swing, [s].
        count: N.
    """
    waits, step = where(state.waited > 0.0, 1.0, 0.0), duration / state.period
    bounds = [np.maximum(k - waits, 0.0) * step for k in range(count + 1)]
    feet = zip(state.local, state.planted, state.duty, strict=True)
    columns = [_shares(s, planted, duty, bounds, state.walking, step) for s, planted, duty in feet]
    shares, supported = [], []
    for k, begin in enumerate(bounds[:-1]):
        stands = state.stance_after(begin * state.period)
        row = [column[k] for column in columns]
        if k == 0:
            row = [where(waits > 0.5, a, b) for a, b in zip(stands, row, strict=True)]
        until = reduce(np.maximum, [a * b for a, b in zip(stands, row, strict=True)])
        since = reduce(np.maximum, [(1.0 - a) * b for a, b in zip(stands, row, strict=True)])
        shares.append(row)
        supported.append(np.minimum(until + since, 1.0))
    return shares, supported


def _shares(s: Any, planted: Any, duty: Any, bounds: list[Any], walking: Any, step: Any) -> list[Any]:
    """Return the fraction of each of N steps during which a foot stands, (N,), dimensionless.

    Args:
        s: Local phase of the foot. planted: As in `GaitState`. duty: Its duty factor.
        bounds: Ends of the steps, (N + 1,), [cycles from now]. walking: As in `GaitState`. step: Of a step, [cycles].
    """
    early, stays = (planted > 0.5) & (s >= duty), (planted > 0.5) | (s < duty)
    stood = []
    for bound in bounds:
        later = s + bound
        whole = np.floor(later)
        scheduled = whole * duty + np.minimum(later - whole, duty)
        walks = scheduled + where(early, np.minimum(later, 1.0), 0.0)
        stood.append(where(walking > 0.5, walks, where(stays, later, np.maximum(later, 1.0))))
    shares = [np.minimum((b - a) / step, 1.0) for a, b in pairwise(stood)]
    return [where(share > _LEAST, share, 0.0) for share in shares]
