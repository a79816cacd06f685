"""The people whose phones the simulator plays. Their numbers are fictional and of valid length."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SimulatedPerson:
    """One phone of the simulator.

    `phone` is digits as WhatsApp delivers them, "" for a person with a username only; `user_id` is the
    business-scoped id that every webhook carries; `language` ("es", "pt", "en") is that of their page.
    """

    id: str
    name: str
    phone: str
    user_id: str
    username: str = ""
    language: str = "en"


PEOPLE = (
    SimulatedPerson("ana", "Ana", "5215550100001", "MX.10550100001", "", "es"),
    SimulatedPerson("bruno", "Bruno", "5511955501234", "BR.10955501234", "", "pt"),
    SimulatedPerson("chris", "Chris", "14155550123", "US.10155550123", "", "en"),
    SimulatedPerson("dani", "Dani", "", "AR.10000000004", "dani.escribe", "es"),
)
"""The first one owns the assistant while the simulator is in use."""
