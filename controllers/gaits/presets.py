"""The gaits of the paper's demonstrations, by name, with the readings of the text that differ."""

from __future__ import annotations

from controllers.gaits.alternating import Tripod, Trot, Walk


def paper_walk(printed: bool = False) -> Walk:
    """Return the walk of the planar biped: T = 1 s, l_s = 0.3 m, h_f = 0.1 m, z_c = 0.96 m.

    With `printed`, exactly as the text has it: hips at z_c - l0 / 2 = 0.71 m (the pendulum still of z_c), and a swing
    that ends 0.1 m in the air. Without, as the authors' programs have it: hips at z_c, and 2 pi t / T in the height
    of the swing. The printed hip height lies within reach, but the biped topples in its second step, since the bent
    legs carry the center of mass ahead of the toes.

    Source:
        Shah, Saha, Dutt 2012, Appendix B.
    """
    if printed:
        return Walk(hip_height=0.96 - 0.25, pendulum_height=0.96, path="printed")
    return Walk()


def paper_trot(printed: bool = False) -> Trot:
    """Return the trot of the spatial quadruped: T = 1 s, l_s = 0.3 m, h_f = 0.08 m, z_c = 0.5 m.

    With `printed`, the swing is that of the text, which ends in the air. Hips and center of mass of this trunk are
    equally high, so that the two readings of z_c agree.

    Source:
        Shah, Saha, Dutt 2012, Appendix B.
    """
    return Trot(path="printed" if printed else "cosine")


def authors_trot() -> Trot:
    """Return the trot in the data that the authors' toolbox ships: as the paper's, with h_f = 0.09 m."""
    return Trot(clearance=0.09)


def authors_tripod() -> Tripod:
    """Return the hexapod's gait in the authors' toolbox: T = 0.5 s, l_s = 0.4 m, h_f = 0.08 m, hips at 0.55 m."""
    return Tripod()
