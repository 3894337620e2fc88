"""Print the figures of identification: `python -m benchmarks.identification [go2] [agreement] [recovery] [trot]`."""

from __future__ import annotations

import argparse

import numpy as np


def go2() -> None:
    """Print errors and times beside `mujoco.sysid`."""
    from benchmarks.identification.go2 import compare_on_go2

    fits = compare_on_go2()
    names = ("nominal", "fitted", "sysid nominal", "sysid fitted")
    print("error of windows that were not fitted [mrad]:", {name: round(1e3 * fits[name], 2) for name in names})
    seconds = fits["seconds"], fits["seconds again"]
    print(f"legged: {fits['steps']} steps, {seconds[0]:.2f} s, again {seconds[1]:.2f} s")
    print(f"mujoco.sysid: {fits['sysid evaluations']} simulations of all windows, {fits['sysid seconds']:.1f} s")
    print(f"ratio of times: {fits['sysid seconds'] / np.mean(seconds):.1f}")


def agreement() -> None:
    """Print how far fits of disjoint windows agree."""
    from benchmarks.identification.go2 import agreement_on_go2

    for kind, variations in agreement_on_go2().items():
        print(kind, {field: f"{100 * x:.1f} %" for field, x in variations["variation"].items()})
        print("  ", variations["open"])


def recovery(seeds: int) -> None:
    """Print the shares of intervals that hold the true values."""
    from benchmarks.identification.simulated import recovery as recover

    shares = recover(seeds)
    held = " and ".join(f"{100 * share:.1f}" for share in shares["means"])
    print(
        f"{seeds} logs of MuJoCo in {shares['seconds']:.0f} s; 90 % intervals for independent noise and by the scatter"
    )
    print(f"of the windows hold {held} % of the values")
    for name, (share, robust) in shares["shares"].items():
        error = 100 * shares["errors"][name]
        print(f"  {name}: {100 * share:.1f} and {100 * robust:.1f} %, median error {error:.2f} %")


def trot() -> None:
    """Print payload and friction of a trotting robot."""
    from benchmarks.identification.simulated import trot as run

    for name, (truth, value, deviation) in run().items():
        print(f"  {name}: true {truth:.3f}, fitted {value:.3f} +- {deviation:.3f}")


def main() -> None:
    """Run the chosen parts."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.identification", description=__doc__)
    parser.add_argument("parts", nargs="*", default=["go2", "agreement", "recovery", "trot"])
    parser.add_argument("--seeds", type=int, default=200, help="logs of `recovery`")
    options = parser.parse_args()
    parts = {"go2": go2, "agreement": agreement, "recovery": lambda: recovery(options.seeds), "trot": trot}
    for name in options.parts:
        if name not in parts:
            parser.error(f"unknown part {name}; parts: {', '.join(parts)}")
        parts[name]()


if __name__ == "__main__":
    main()
