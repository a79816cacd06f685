"""Channels: where messages come from and go to."""

from dataclasses import dataclass

from app.channels.access import AccessPolicy
from app.channels.sender import Sender
from app.channels.terminal import TerminalChannel
from app.channels.whatsapp.channel import WhatsAppChannel
from app.channels.whatsapp.credentials import Credentials, credentials_of
from app.messages import Channel
from app.settings import Settings
from app.store import Store
from app.store.limits import RateTable
from app.turns.limits import Limits


@dataclass(frozen=True, slots=True)
class Channels:
    """The parts of this room. The intake is made later, because it wakes rooms beside this one."""

    access: AccessPolicy
    credentials: Credentials
    whatsapp: WhatsAppChannel
    terminal: TerminalChannel
    by_name: dict[str, Channel]
    sender: Sender
    limits: Limits


def build_channels(settings: Settings, store: Store, rates: RateTable) -> Channels:
    """Return the channels as the settings say: WhatsApp or its simulator, and the terminal."""
    access = AccessPolicy(settings, store.database)
    credentials = credentials_of(settings)
    whatsapp = WhatsAppChannel(
        settings.whatsapp_api_url,
        credentials.phone_number_id,
        credentials.access_token,
        store.media,
        store.database,
    )
    terminal = TerminalChannel(store.media)
    by_name: dict[str, Channel] = {access.realm: whatsapp}
    if settings.role == "all":  # the terminal is read from the process that answers it
        by_name["terminal"] = terminal
    limits = Limits(settings, access, rates, access.realm)
    wait = settings.send_reconcile_seconds
    sender = Sender(store.database, by_name, limits, reconcile_seconds=wait)
    return Channels(access, credentials, whatsapp, terminal, by_name, sender, limits)
