"""The phone simulator: a page with several people's phones and the stand-in Graph API behind it."""

from typing import TYPE_CHECKING

from app.lazy import lazily

if TYPE_CHECKING:
    from app.simulator.credentials import Credentials, load_credentials
    from app.simulator.graph import StandInGraph
    from app.simulator.people import PEOPLE, SimulatedPerson
    from app.simulator.simulator import Simulator

__getattr__ = lazily(
    __name__,
    {
        "credentials": ("Credentials", "load_credentials"),
        "graph": ("StandInGraph",),
        "people": ("PEOPLE", "SimulatedPerson"),
        "simulator": ("Simulator",),
    },
)
