"""Who counts as this machine's own user, and who holds the administrator's token."""

from itertools import product
from pathlib import Path

import pytest
from starlette.requests import Request

from app.security import AdminToken, is_local, write_private


def request(peer: str | None = "127.0.0.1", **headers: str) -> Request:
    pairs = {"host": "127.0.0.1:8000", **headers}
    return Request(
        {"type": "http", "method": "GET", "path": "/", "query_string": b"token=secret"}
        | {"client": None if peer is None else (peer, 5)}
        | {"headers": [(name.encode(), value.encode("latin-1")) for name, value in pairs.items()]}
    )


OWN_HOSTS = (
    *("localhost", "localhost:8000", "LOCALHOST", "127.0.0.1", "127.0.0.1:80", "[::1]", "[::1]:8000"),
    "127.0.0.2",
)
OTHER_HOSTS = (
    *("evil.example", "localhost.evil.example", "127.0.0.1.nip.io", "evil.example:8000", "recado.local", ""),
    *(":8000", "192.168.1.5:8000", "[::2]:8000", "0.0.0.0:8000", "localhost:80:evil", "x@127.0.0.1"),
    *("localhost:80@evil.example", "127.0.0.1:x"),
)
OTHER_PEERS = ("192.168.1.5", "10.0.0.1", "8.8.8.8", "fe80::1", "0.0.0.0", "", "unix", None)
FORWARDED = (
    *("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded", "Via"),
    *("X-Real-IP", "Client-IP", "X-Client-IP", "True-Client-IP", "X-Cluster-Client-IP", "CF-Connecting-IP"),
    *("CF-Ray", "Fly-Client-IP", "Fastly-Client-IP", "X-Original-Forwarded-For", "X-Original-Host"),
    *("X-Envoy-External-Address", "x-forwarded-for"),
)


def test_only_a_peer_and_a_host_of_this_machine_are_local() -> None:
    for peer in ("127.0.0.1", "127.8.9.10", "::1"):
        assert all(is_local(request(peer, host=host)) for host in OWN_HOSTS)
    assert [peer for peer in OTHER_PEERS if is_local(request(peer))] == []
    assert is_local(request("172.17.0.1"), published=True)  # a published port: whoever the peer is
    for published in (True, False):
        assert [host for host in OTHER_HOSTS if is_local(request(host=host), published=published)] == []
    for hosts in ([], ["127.0.0.1", "evil.example"], ["evil.example", "127.0.0.1"]):
        several = request()
        several.scope["headers"] = [(b"host", host.encode()) for host in hosts]
        assert not is_local(several)


def test_what_a_proxy_or_tunnel_forwarded_is_not_local() -> None:
    for value, published in product(("127.0.0.1", ""), (True, False)):
        for header in FORWARDED:
            assert not is_local(request(**{header.lower(): value}), published=published)
    for hidden in (b"x_forwarded_for", b"x_real_ip", b"client_ip"):
        forwarded = request()
        forwarded.scope["headers"] += [(hidden, b"1.2.3.4")]
        assert not is_local(forwarded)
    for header in ("accept", "user-agent", "x-requested-with", "x-my-forwarded-thing", "cfg"):
        assert is_local(request(**{header: "x"}))


async def test_the_token_opens_as_a_bearer_and_not_in_the_address(tmp_path: Path) -> None:
    token = AdminToken(tmp_path, "s3cret")
    for header in ("Bearer s3cret", "bearer s3cret", "Bearer  s3cret "):
        assert await token.opens(request(authorization=header))
    for header in ("Bearer s3cre", "Bearer s3cretx", "Bearer ", "Bearer", "Basic s3cret", "s3cret", ""):
        assert not await token.opens(request(authorization=header))
    assert not await token.opens(request(authorization="Bearer sécret"))
    assert not await AdminToken(tmp_path, "secret").opens(request())  # which has it in its query


async def test_an_empty_token_file_opens_nothing(tmp_path: Path) -> None:
    (tmp_path / "admin_token").write_text("\n")
    assert not await AdminToken(tmp_path).opens(request(authorization="Bearer "))
    assert AdminToken(tmp_path).value()


def test_a_private_file_is_whole_or_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file"
    write_private(path, "one")
    with pytest.raises(UnicodeEncodeError):
        write_private(path, "\ud800")
    assert path.read_text() == "one"
    assert [found.name for found in path.parent.iterdir()] == ["file"]
