"""Titles of papers and books, wherever they are cited, are those of the publications."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TITLES = """
Monotone piecewise cubic interpolation
Towards the ultimate conservative difference scheme. IV. A new approach to numerical convection
A beginner's guide to 6-D vectors
Accelerated policy learning with parallel differentiable simulation
Accuracy and resolution of Kinect depth data for indoor mapping applications
Actuator failure detection and isolation using generalized momenta
Footstep planning on uneven terrain with mixed-integer convex optimization
Exact energy-momentum conserving algorithms and symplectic schemes for nonlinear dynamics
A mixed formulation for frictional contact problems prone to Newton like solution methods
A new factorization of the mass matrix for optimal serial and parallel calculation of multibody dynamics
A new nonlinear model of contact normal force
A new simple model of balancing in the plane
A recursive workspace balancing controller for a 3D multibody model of a biped
A reduced-order recursive algorithm for the computation of the operational-space inertia matrix
A simple model of balancing in the plane and a simple preview balance controller
A spatial operator algebra for manipulator modeling and control
A study of replacement algorithms for a virtual-storage computer
A technique for analyzing constrained rigid-body systems, and its application to the constraint force algorithm
An architecture for fast and accurate control of shape memory alloy actuators
An empirical study of the joint space inertia matrix
An unconstrained convex formulation of compliant contact
Analytical derivatives of rigid body dynamics algorithms
Anderson acceleration for fixed-point iterations
Angular momentum based balance controller for an under-actuated planar robot
Application of interior-point methods to model predictive control
Applied Optimal Control
Balancing and hopping motion of a planar hopper with one actuator
Balancing control algorithm for a 3D under-actuated robot
BLIS: a framework for rapidly instantiating BLAS functionality
Biomechanics and Motor Control of Human Movement
Building an orthonormal basis, revisited
Centroidal dynamics of a humanoid robot
Centroidal momentum matrix of a humanoid robot: structure and properties
Control-limited differential dynamic programming
Crocoddyl: an efficient and versatile framework for multi-contact optimal control
Differential dynamic programming for multi-phase rigid contact dynamics
Jackknife, bootstrap and other resampling methods in regression analysis
Synthesis and stabilization of complex behaviors through online trajectory optimization
Bundled gradients through contact via randomized smoothing
Constraint wrench formulation for closed-loop systems using two-level recursions
Contact-aided invariant extended Kalman filtering for robot state estimation
Direct solutions of sparse network equations by optimally ordered triangular factorization
Dynamic model simplification of serial manipulators
Efficient analytical derivatives of rigid-body dynamics using spatial vector algebra
Efficient factorization of the joint-space inertia matrix for branched kinematic trees
Estimation of inertial parameters of manipulator loads and links
Exploiting sparsity in operational-space dynamics
Heuristic planning for rough terrain locomotion in presence of external disturbances and variable perception quality
Improved computation of the humanoid centroidal dynamics and application for whole-body control
Legged robots that balance
Linear matrix inequalities for physically-consistent inertial parameter identification: a statistical perspective on the mass distribution
Linear-time dynamics using Lagrange multipliers
Load independence of the dynamically consistent inverse of the Jacobian matrix
Perceptive locomotion in rough terrain - online foothold optimization
Probabilistic terrain mapping for mobile robots with uncertain localization
MIT Cheetah 3: design and control of a robust, dynamic quadruped robot
Modeling and control of contact between constrained rigid bodies
Modular framework for dynamic modeling and analyses of legged robots
New class of control laws for robotic manipulators
Nonlinear control of mechanical systems with an unactuated cyclic variable
Numerical calculation of the base inertial parameters of robots
On solving contact problems with Coulomb friction: formulations and numerical comparisons
On the adaptive control of robot manipulators
Optimal robot excitation and identification
Partial feedback linearization of underactuated mechanical systems
Plucker basis vectors
Quantitative measures of a robot's ability to balance
Quantitative measures of a robot's physical ability to balance
Random number generators: good ones are hard to find
Recursive formulation of operational space control
Recursive kinematics and dynamics for parallel structured closed-loop multibody systems
Reducing the bandwidth of sparse symmetric matrices
Robot dynamics: equations and algorithms
State estimation for legged robots: consistent fusion of leg kinematics and IMU
Smooth parameterization of rigid-body inertia
Symmetric quasidefinite matrices
Symmetrical gaits of horses
The acceleration vector of a rigid body
The CVXOPT linear and quadratic cone program solvers
The gaits of bipedal and quadrupedal animals
The non-smooth contact dynamics method
The swing up control problem for the Acrobot
Three-dimensional bipedal walking control based on divergent component of motion
Unilateral contact and dry friction in finite freedom dynamics
Walking control based on step timing adaptation
XenoCollide: complex collision made simple
""".strip().splitlines()  # noqa: E501
"""Each with the words of its publication, in sentence case; a new citation adds its title here, from the first page."""
YEAR = re.compile(r"\b(19|20)\d\d\b")
CITED = re.compile(r'(?<=[,;] )(?:"([A-Z][\w ,:\'-]{18,150}?\w)"|(?<!\*)\*([A-Z][^*"]{15,150}?)\*(?!\*))')
"""A title after an author or a year: in quotation marks or in italics."""
FILES = [
    path
    for folder in ("legged", "controllers", "robots", "benchmarks", "examples", "docs", ".")
    for pattern in ("*.md", "*.py")
    for path in (ROOT.glob(pattern) if folder == "." else (ROOT / folder).rglob(pattern))
    if "api" not in path.parts  # generated from docstrings
]


def plain(text: str) -> str:
    """Return a text on one line, without marks of comments and without the joints of strings over several lines."""
    lines = [re.sub(r'^(# |")|"$', "", line.strip()) for line in text.splitlines()]
    return re.sub(r"\s+", " ", " ".join(lines))


def citations(text: str) -> Iterator[str]:
    """Yield the titles that stand after an author or a year, with a year nearby."""
    for match in CITED.finditer(plain(text)):
        around = match.string[max(0, match.start() - 60) : match.end() + 80]
        if YEAR.search(around):
            yield (match[1] or match[2]).strip()


def shortened(text: str, size: int = 5) -> Iterator[str]:
    """Yield the places in a text that begin as a title, with at least `size` words, and go on differently."""
    words = plain(text).lower()
    for title in TITLES:
        start = " ".join(title.lower().split()[:size])
        if len(title.split()) > size:
            for match in re.finditer(re.escape(start), words):
                if not any(words.startswith(known.lower(), match.start()) for known in TITLES):
                    yield words[match.start() : match.start() + len(title)]


WRONG = {
    "Shah, Saha, Dutt, *Modular framework for dynamic modeling and analyzes of legged robots* (2012)": 2,
    "J. M. Wendlandt, *Workspace balance of a 3-D biped* (1997)": 1,
    'Baraff, "Linear-time dynamics\n# using Lagrange multipliers", 1996': 0,
}


@pytest.mark.parametrize("text, count", WRONG.items())
def test_wrong_titles_are_found(text, count):
    assert len([title for title in citations(text) if title not in TITLES]) + len(list(shortened(text))) == count


def test_titles_are_those_of_the_publications():
    known = {title.lower() for title in TITLES}
    texts = {path: path.read_text(encoding="utf-8") for path in FILES}
    wrong = {
        path.name: [title for title in citations(text) if title.lower() not in known] for path, text in texts.items()
    }
    assert {name: titles for name, titles in wrong.items() if titles} == {}
    wrong = {path.name: list(shortened(text)) for path, text in texts.items()}
    assert {name: titles for name, titles in wrong.items() if titles} == {}


def test_every_title_is_cited():
    together = " ".join(plain(path.read_text(encoding="utf-8")) for path in FILES).lower()
    assert [title for title in TITLES if title.lower() not in together] == []
