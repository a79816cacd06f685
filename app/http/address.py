"""Addresses that somebody else wrote, the machines that they may lead to, and why a fetch failed."""

import re
import socket
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Literal
from urllib.parse import quote, urljoin, urlsplit

from app.errors import RecadoError
from app.i18n import lazy

ADDRESS_CHARACTERS = 4096
NAME_CHARACTERS = 253
PORTS = {"http": 80, "https": 443}
_KEPT = "/%:@!$&'()*+,;=~?"
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_ENDS_IN_NUMBER = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)")

IPAddress = IPv4Address | IPv6Address
Origin = tuple[str, str, int]
"""Scheme, host and port."""

_GLOBAL_IPV6 = IPv6Network("2000::/3")
# https://www.iana.org/assignments/iana-ipv4-special-registry; the rest of it is not global to any Python
_SPECIAL = tuple(
    ip_network(network)
    for network in (
        "168.63.129.16/32",  # Azure's host, as its guests see it
        "192.0.0.0/24",
        "192.88.99.0/24",
        "224.0.0.0/4",
        "2001::/23",  # Teredo, benchmarking, ORCHID and other assignments of the IETF
        "2001:db8::/32",
        "2002::/16",  # 6to4: an IPv4 address inside, which may be a private one
        "3fff::/20",
    )
)
_NAT64 = IPv6Network("64:ff9b::/96")

Code = Literal[
    "BAD_ADDRESS",
    "NOT_PUBLIC",
    "NO_SUCH_HOST",
    "NO_CONNECTION",
    "BAD_CERTIFICATE",
    "BAD_REDIRECT",
    "BAD_STATUS",
    "BAD_ANSWER",
    "TOO_LARGE",
    "TIMED_OUT",
]
"""BAD_ADDRESS: not an http(s) address that we use. NOT_PUBLIC: this machine, its network, a special range.
BAD_REDIRECT: too many of them, or from https to http. BAD_STATUS: a download that is not 200. BAD_ANSWER:
broken off, not HTTP, headers without end, an encoding that nobody asked for."""


class FetchError(RecadoError):
    """Nothing usable came; `code` says why, the text says it in English without an address of ours."""

    def __init__(self, code: Code, text: str) -> None:
        super().__init__(text)
        self.code: Code = code


def _bad(text: str) -> FetchError:
    return FetchError("BAD_ADDRESS", text)


def too_large(limit: int) -> FetchError:
    return FetchError("TOO_LARGE", lazy("the answer has more than {limit} bytes", limit=limit))


@dataclass(frozen=True, slots=True)
class Address:
    """An http(s) address in one spelling: host in lower case ASCII or a plain IP, no user, no fragment."""

    scheme: str
    host: str
    port: int
    target: str

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Raises FetchError BAD_ADDRESS where it is none that we would ask."""
        if len(text) > ADDRESS_CHARACTERS:
            raise _bad(lazy("an address has at most {n} characters", n=ADDRESS_CHARACTERS))
        if not text.isprintable() or " " in text or "\\" in text:
            raise _bad(lazy("the address holds spaces, backslashes or hidden characters"))
        if text.partition(":")[0].lower() not in PORTS:
            raise _bad(lazy("only http and https addresses are fetched"))
        try:
            parts = urlsplit(text)
            port, host = parts.port, _host(parts.hostname or "", bracketed="[" in parts.netloc)
        except (ValueError, OSError) as error:
            raise _bad(lazy("the address cannot be read")) from error
        if "@" in parts.netloc:
            raise _bad(lazy("an address with a user's name or password is not fetched"))
        query = f"?{quote(parts.query, safe=_KEPT)}" if parts.query else ""
        path = quote(parts.path or "/", safe=_KEPT.replace("?", ""))
        return cls(parts.scheme, host, PORTS[parts.scheme] if port is None else port, path + query)

    def follow(self, location: str) -> "Address":
        """Return the target of a redirect. Raise FetchError for a refused one, such as from https to http."""
        try:
            onward = Address.parse(urljoin(self.url, location.strip().replace(" ", "%20")))
        except ValueError as error:
            raise _bad(lazy("the address of a redirect cannot be read")) from error
        if self.scheme == "https" and onward.scheme == "http":
            raise FetchError("BAD_REDIRECT", lazy("the site leads from https to http"))
        return onward

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.target}"

    @property
    def origin(self) -> Origin:
        return self.scheme, self.host, self.port

    @property
    def ip(self) -> IPAddress | None:
        """The IP address that stands for the host, None for a name."""
        try:
            return ip_address(self.host)
        except ValueError:
            return None


def origins(texts: Iterable[str]) -> frozenset[Origin]:
    """The origins of those texts that are addresses."""
    found: set[Origin] = set()
    for text in texts:
        with suppress(FetchError):
            found.add(Address.parse(text.strip()).origin)
    return frozenset(found)


def is_public(ip: IPAddress) -> bool:
    """Return True for a machine on the internet other than this one."""
    ip = unmapped(ip)
    if isinstance(ip, IPv6Address) and ip in _NAT64:
        return is_public(IPv4Address(ip.packed[-4:]))
    is_global = ip.is_global if isinstance(ip, IPv4Address) else ip in _GLOBAL_IPV6
    return is_global and not any(ip in network for network in _SPECIAL) and not is_ours(ip)


def is_ours(ip: IPAddress) -> bool:
    """Return True if an interface of this machine has the address."""
    family = socket.AF_INET if ip.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((str(ip), 9))  # of a datagram socket: it finds the route and sends nothing
            return ip_address(probe.getsockname()[0]) == ip
    except OSError:  # no route there
        return False


def unmapped(ip: IPAddress) -> IPAddress:
    """The IPv4 address inside ::ffff:0:0/96, any other as it is."""
    return (ip.ipv4_mapped or ip) if isinstance(ip, IPv6Address) else ip


def _host(text: str, bracketed: bool) -> str:
    """A host in the one spelling that is checked, connected to and named to TLS. May raise OSError."""
    if bracketed:
        if "%" in text:
            raise ValueError("an address with a zone")
        return str(unmapped(IPv6Address(text)))
    if len(text) > NAME_CHARACTERS:
        raise ValueError("too long for a name")
    if not text.isascii():
        import idna

        text = idna.encode(text, uts46=True).decode()
    name = text.lower().removesuffix(".")
    if not _NAME.fullmatch(name) or len(name) > NAME_CHARACTERS:
        raise ValueError("neither a name nor an IP address")
    if _ENDS_IN_NUMBER.fullmatch(name):  # 2130706433, 0x7f.1, 0177.0.0.1: what the system takes for an IP
        return str(IPv4Address(socket.inet_aton(name)))
    return name
