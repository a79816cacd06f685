"""What the page is told where it cannot have its way."""

from typing import Final

from app.messages import JSON

REASONS: Final = {
    "name": "A name has 1 to 40 characters.",
    "no_address": "A person has a phone number, a username or both.",
    "phone": "A phone number has 8 to 15 digits, the country code first.",
    "username": "A username has 3 to 35 small letters, digits, dots and underscores.",
    "phone_taken": "Somebody here has that number.",
    "username_taken": "Somebody here has that username.",
    "full": "There are {most} people already.",
    "file": "A file of this type or size cannot be sent: photos up to 5 MB, WebP up to 500 KB.",
    "version": "This is no transcript of version {version}.",
    "form": "'people' and 'events' must be lists as a saved transcript has them.",
    "long": "A transcript has at most {most} events.",
    "proves_nothing": "Somebody must say something and something must come of it.",
    "playing": "Another transcript is being played.",
    "event_part": "Event {event}: {part} is not as a saved transcript has it.",
    "event_person": "Event {event}: {person} is none of its people.",
    "event_kind": "Event {event}: it has none of 'says', 'gets', 'refused', 'switches'.",
    "event_answer": "Event {event}: an answer needs letters of its own, or any would fit.",
    "lost_message": "{reference} is no message before this one.",
    "lost_choice": "The message has no button or row {title} any more.",
}
"""Each reason in English; static/reasons.js has them in the page's other languages."""


class Objection(ValueError):
    """Something given to the page's API that cannot be; `reason` is one of REASONS, `values` fill it."""

    def __init__(self, reason: str, **values: str | int) -> None:
        super().__init__(REASONS[reason].format(**values))
        self.reason = reason
        self.values = values

    def as_json(self) -> JSON:
        return {"error": str(self), "reason": self.reason, "values": self.values}
