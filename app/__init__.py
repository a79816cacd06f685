"""Recado: a self-hosted assistant that lives in WhatsApp."""

__version__ = "0.1.0"
