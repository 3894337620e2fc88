"""The inverse of the inertia matrix in module blocks, and the modules that make it badly conditioned."""

import numpy as np
import pytest

import legged
import robots
from legged.denoc import condition_report, module_inverse, udu
from legged.errors import ArgumentError, DefinitionError, SingularError

SEEDS = [seed for seed in range(20) if not legged.random_tree(seed, 7, physics=seed % 2 == 0).coupled_joints]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_blocks_are_the_inverse_of_the_inertia_matrix_and_of_its_factor(seed):
    robot = legged.random_tree(seed, 7, physics=seed % 2 == 0, shuffled=seed % 3 == 0)
    q = legged.random_configuration(robot, np.random.default_rng(seed))
    M, inverse = legged.inertia_matrix(robot, q), module_inverse(robot, q)
    rounding = 1e-14 * np.linalg.cond(M) * robot.nv
    assert np.abs(inverse.matrix @ M - np.eye(robot.nv)).max() < max(rounding, 1e-12)
    U, _ = udu(robot, q)
    exact = np.linalg.inv(U)
    for (i, j), block in inverse.U_inverse.items():
        own, other = robot.modules[i].v, robot.modules[j].v
        assert block == pytest.approx(exact[np.ix_(own, other)], abs=1e-12 * np.abs(exact).max())


def test_a_block_is_the_sum_of_the_motions_of_the_modules_inward_of_both():
    """Legs on different corners influence each other by the trunk alone; each leg itself, by the trunk and its own."""
    robot = robots.spatial_quadruped()
    q = legged.random_configuration(robot, np.random.default_rng(0))
    inverse = module_inverse(robot, q)
    assert inverse.block(1, 3) == pytest.approx(inverse.term(1, 3, 0), abs=1e-15)
    assert inverse.block(2, 2) == pytest.approx(inverse.term(2, 2, 0) + inverse.D_inverse[2])
    assert not inverse.term(1, 3, 2).any() and not inverse.term(1, 3, 1).any()
    held = np.linalg.inv(legged.inertia_matrix(robot, q)[np.ix_(robot.modules[2].v, robot.modules[2].v)])
    assert inverse.D_inverse[2] == pytest.approx(held)  # a leg without children, with the trunk held
    with pytest.raises(ArgumentError, match="j must be"):
        inverse.block(0, 9)


def quadruped(bad: tuple[int, ...], mass: float = 1e-7) -> legged.Robot:
    """A quadruped, some legs of which have a nearly massless thigh whose joints nearly coincide."""
    builder = legged.RobotBuilder("quadruped", legged.Link("trunk", legged.box_inertia(10, (0.5, 0.3, 0.1))))
    for k, (x, y) in enumerate([(1, 1), (1, -1), (-1, 1), (-1, -1)]):
        thigh = legged.Link(f"thigh{k}", _segment(mass if k in bad else 1.0))
        builder.add(legged.Revolute(f"hip{k}", "y"), thigh, to="trunk", at=(0.25 * x, 0.15 * y, 0))
        shank, at = legged.Link(f"shank{k}", _segment(1.0)), (0, 0, -1e-4 if k in bad else -0.3)
        builder.add(legged.Revolute(f"knee{k}", "y"), shank, to=f"thigh{k}", at=at)
    return builder.build()


def _segment(mass: float) -> legged.Inertia:
    return legged.box_inertia(mass, (0.05, 0.05, 0.3), (0, 0, -0.15))


def configuration(robot: legged.Robot) -> np.ndarray:
    q = robot.neutral()
    q[7:] = 0.3
    return q


@pytest.mark.parametrize("bad", [(2,), (0,), (0, 3), (0, 1, 2, 3)])
def test_bad_legs_are_named_with_the_factor_by_which_they_worsen_the_condition_number(bad):
    robot, healthy = quadruped(bad), quadruped(())
    report = condition_report(robot, configuration(robot))
    assert {cause.module for cause, _ in report.causes} == {leg + 1 for leg in bad}
    known = np.linalg.cond(_scaled(legged.inertia_matrix(robot, configuration(robot))))
    assert report.whole == pytest.approx(known, rel=1e-6)
    others = [i for i in range(robot.nv) if not any(i in robot.modules[leg + 1].v for leg in bad)]
    rest = np.linalg.cond(_scaled(legged.inertia_matrix(robot, configuration(robot)))[np.ix_(others, others)])
    assert report.remaining == pytest.approx(rest, rel=1e-6) and rest < 100
    for cause, factor in report.causes:
        assert 1e4 < factor <= 1.01 * known / rest
        assert cause.own > 1e6 and cause.name == f"shank{cause.module - 1}"
    assert f"M_{bad[0] + 1} (shank{bad[0]}) worsens it" in str(report)
    sound = condition_report(healthy, configuration(healthy))
    assert not sound.causes and "no small group of modules causes it" in str(sound)


def test_shares_sum_to_one_and_locking_a_module_never_worsens_the_condition_number():
    for seed in SEEDS[:6]:
        robot = legged.random_tree(seed, 7)
        q = legged.random_configuration(robot, np.random.default_rng(seed))
        report = condition_report(robot, q)
        assert sum(m.share for m in report.modules) == pytest.approx(1.0)
        assert all(m.factor >= 1.0 and m.share >= 0.0 for m in report.modules)
        inverse = np.linalg.inv(_scaled(legged.inertia_matrix(robot, q)))
        largest, trace = 1 / np.linalg.eigvalsh(_scaled(legged.inertia_matrix(robot, q)))[0], np.trace(inverse)
        assert trace / robot.nv <= largest <= trace


def test_the_report_does_not_depend_on_units_of_masses_and_lengths():
    robot = quadruped((2,))
    first = condition_report(robot, configuration(robot))
    doubled = robot.with_parameters({f"{link.name}.mass": 2.0 * link.inertia.mass for link in robot.links})
    second = condition_report(doubled, configuration(robot))
    assert second.whole == pytest.approx(first.whole, rel=1e-6)


def test_gimbal_lock_is_the_fault_of_the_base_and_coupled_joints_are_refused():
    body = legged.Link("body", legged.box_inertia(1, (0.1, 0.2, 0.3)))
    leg = legged.Link("leg", _segment(1.0))
    builder = legged.RobotBuilder("locked", body, base=legged.EulerBase())
    robot = builder.add(legged.Revolute("hip", "y"), leg, to="body").build()
    q = robot.neutral()
    q[1] = np.pi / 2
    with pytest.raises(SingularError, match="module M_0 has a motion without inertia"):
        module_inverse(robot, q)
    report = condition_report(robot, q)
    assert [cause.module for cause, _ in report.causes] == [0] and report.whole > 1e15
    assert "M_0: body" in report.table().text()
    coupled = next(r for r in (legged.random_tree(s, 5, coupled=True) for s in range(9)) if r.coupled_joints)
    with pytest.raises(DefinitionError, match="no factors module by module"):
        condition_report(coupled, coupled.neutral())


def _scaled(M: np.ndarray) -> np.ndarray:
    size = np.sqrt(np.diag(M))
    return M / np.outer(size, size)
