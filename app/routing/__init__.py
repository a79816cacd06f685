"""Choosing the few tools a message needs."""

from app.routing.classifier import Classified, Intent, IntentRequest, classify_intent
from app.routing.selector import select_tools

__all__ = ["Classified", "Intent", "IntentRequest", "classify_intent", "select_tools"]
