"""Step-by-step simulation: `Simulation`, one robot or many whose state stays in place between calls."""

from legged.simulation.stepping.observation import Contacts
from legged.simulation.stepping.simulation import Simulation, SimulationState

__all__ = ["Contacts", "Simulation", "SimulationState"]
