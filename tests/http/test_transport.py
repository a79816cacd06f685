"""What fetching from outside comes to, whatever the other side, its name server and the environment do."""

from pathlib import Path

import pytest

from app.http.transport import Fetched, Transport
from tests.http.reaching import LIMIT, NOWHERE, Names, get, reaching, refusal
from tests.standins.site import answer, redirect, site

# What comes


async def test_an_answer_comes_with_status_headers_and_body() -> None:
    page = answer("ñandú".encode(), "404 Not Found", content_type="text/html; charset=UTF-8", x_a="1")
    async with site({"/a?b=c": page}) as here, reaching(here) as transport:
        fetched = await get(transport, here.url + "/a?b=c#part")
    assert (fetched.url, fetched.status, fetched.ok) == (here.url + "/a?b=c", 404, False)
    assert (fetched.content_type, fetched.text) == ("text/html", "ñandú")
    assert fetched.headers["x-a"] == "1"
    head = here.heads[0].lower()
    assert head.startswith("get /a?b=c http/1.1\r\n")
    assert f"host: 127.0.0.1:{here.port}\r\n" in head
    assert "accept-encoding: gzip\r\n" in head
    assert "user-agent: recado/" in head


def test_text_is_read_as_its_header_says_and_never_fails() -> None:
    for content_type, body, text in [
        ("text/plain", "é".encode(), "é"),
        ("text/plain; charset=iso-8859-1", b"\xe9", "é"),
        ("text/plain; charset=utf-8", b"\xe9", "�"),
        ("text/plain", b"\xe9", "é"),
        ("text/plain; charset=zip", b"a", "a"),
        ("text/plain; charset=punycode", "é".encode(), "é"),
        ("text/plain; charset=iso-8859-1", b"\x93a\x94", "“a”"),
        ("text/plain; charset=iso-8859-1", "\ufeffñ".encode(), "ñ"),
        ("text/plain; charset=utf-16", "\ufeffñ".encode("utf-16-le"), "ñ"),
        ("text/html", "ñ".encode(), "ñ"),
        ("text/html", b"a\xf1o", "año"),
        ("text/html; charset=windows-1251", b"\xd0", "Р"),
    ]:
        assert Fetched("", 200, {"content-type": content_type}, body).text == text


async def test_a_body_is_posted_and_a_redirect_of_it_is_not_followed() -> None:
    async with site({"/": redirect("/b", "307 Temporary Redirect")}) as here, reaching(here) as transport:
        fetched = await transport.fetch(
            here.url, body=b"{}", headers={"content-type": "application/json"}, limit_bytes=LIMIT, seconds=10
        )
    assert fetched.status == 307
    assert len(here.heads) == 1
    assert here.heads[0].startswith("POST / ")
    assert here.heads[0].endswith("\r\n\r\n{}")


# What an address may lead to


async def test_an_address_that_is_not_public_is_never_asked() -> None:
    for host in [
        *("127.0.0.1", "127.1", "2130706433", "0x7f000001", "017700000001", "0.0.0.0", "10.0.0.1"),
        *("169.254.169.254", "192.168.1.1", "100.64.0.1", "[::1]", "[::]", "[::ffff:127.0.0.1]"),
        *("[fd00::1]", "[fe80::1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]"),
    ]:
        async with site({"": answer()}) as here, reaching() as transport:
            assert await refusal(transport, f"http://{host}:{here.port}/") == "NOT_PUBLIC"
        assert here.heads == []


async def test_a_name_of_which_one_address_is_not_public_is_never_asked() -> None:
    for found in [
        ["127.0.0.1"],
        ["::ffff:127.0.0.1"],
        ["fe80::1%lo"],
        [NOWHERE, "127.0.0.1"],
        ["127.0.0.1", NOWHERE],
    ]:
        names = Names(site_test=[found])
        async with site({"": answer()}) as here, reaching(names=names) as transport:
            assert await refusal(transport, f"http://site.test:{here.port}/") == "NOT_PUBLIC"
        assert here.heads == []


async def test_the_machines_own_name_is_refused_as_the_system_resolves_it() -> None:
    transport = Transport()
    async with site({"": answer()}) as here:
        assert await refusal(transport, f"http://localhost:{here.port}/") == "NOT_PUBLIC"
        assert await refusal(transport, f"http://name.invalid:{here.port}/") == "NO_SUCH_HOST"
    await transport.close()
    assert here.heads == []


async def test_a_name_is_resolved_once_for_a_connection_and_that_answer_is_used() -> None:
    names = Names(site_test=[["127.0.0.1"], ["127.0.0.9"]])
    async with site({"": answer(b"pinned")}) as here, reaching(names=names, site_test=here) as transport:
        assert (await get(transport, f"http://site.test:{here.port}/")).body == b"pinned"
    assert names.asked == ["site.test"]


async def test_a_name_that_changes_its_address_after_the_check_gains_nothing() -> None:
    names = Names(site_test=[[NOWHERE], ["127.0.0.1"]])
    async with site({"": answer()}) as here, reaching(names=names) as transport:
        url = f"http://site.test:{here.port}/"
        assert await refusal(transport, url, seconds=0.5) in ("NO_CONNECTION", "TIMED_OUT")
        assert names.asked == ["site.test"]
        assert await refusal(transport, url) == "NOT_PUBLIC"
    assert here.heads == []


async def test_low_ports_other_than_those_of_the_web_are_refused() -> None:
    for port in [0, 25, 1023]:
        async with reaching() as transport:
            assert await refusal(transport, f"http://8.8.8.8:{port}/") == "BAD_ADDRESS"


# Redirects


async def test_each_redirect_is_checked_anew() -> None:
    for location, code in [
        ("http://127.0.0.1:{other}/", "NOT_PUBLIC"),
        ("//127.0.0.1:{other}/", "NOT_PUBLIC"),
        ("http://[::ffff:127.0.0.1]:{other}/", "NOT_PUBLIC"),
        ("http://inside.test:{other}/", "NOT_PUBLIC"),
        ("http://169.254.169.254/latest/meta-data/", "NOT_PUBLIC"),
        ("http://missing.test/", "NO_SUCH_HOST"),
        ("file:///etc/passwd", "BAD_ADDRESS"),
        ("http://user:word@127.0.0.1:{here}/", "BAD_ADDRESS"),
        ("http://127.0.0.1:{here}\\@8.8.8.8/", "BAD_ADDRESS"),
        ("http://[::1/", "BAD_ADDRESS"),
        ("/again", "BAD_REDIRECT"),
    ]:
        names = Names(inside_test=[["127.0.0.1"]])
        pages: dict[str, bytes] = {}
        async with (
            site({"": answer()}) as other,
            site(pages) as here,
            reaching(here, names=names) as transport,
        ):
            pages[""] = redirect(location.format(other=other.port, here=here.port))
            assert await refusal(transport, here.url) == code
        assert other.heads == []
        assert len(here.heads) == (6 if code == "BAD_REDIRECT" else 1)


async def test_headers_stay_with_the_host_that_they_are_for() -> None:
    pages: dict[str, bytes] = {}
    async with site({"": answer()}) as other, site(pages) as here, reaching(here, other) as transport:
        pages |= {"/": redirect("/own"), "/own": redirect(other.url)}
        headers = {"authorization": "Bearer secret", "x-api-key": "secret", "accept-language": "es"}
        headers["accept"] = "text/html"
        await transport.fetch(here.url, headers=headers, limit_bytes=LIMIT, seconds=10)
    assert all("Bearer secret" in head and "Accept-Language: es" in head for head in here.heads)
    assert len(here.heads) == 2
    assert "secret" not in other.heads[0]
    assert "Accept: text/html" in other.heads[0]


async def test_headers_that_would_change_the_request_itself_are_refused() -> None:
    for headers in [{"host": "other"}, {"Proxy-Authorization": "x"}, {"X-A": "a\r\nX-B: b"}, {"X A": "b"}]:
        async with site({"": answer()}) as here, reaching(here) as transport:
            with pytest.raises(ValueError, match="header"):
                await transport.fetch(here.url, headers=headers, limit_bytes=LIMIT, seconds=10)
        assert here.heads == []


# TLS


async def test_the_certificate_is_checked_against_the_name_though_the_connection_is_pinned() -> None:
    names = Names(site_test=[["127.0.0.1"]], other_test=[["127.0.0.1"]])
    async with (
        site({"": answer(b"yes")}, tls=True) as here,
        reaching(here, names=names, site_test=here, other_test=here) as transport,
    ):
        assert (await get(transport, f"https://site.test:{here.port}/")).body == b"yes"
        assert (await get(transport, here.url)).body == b"yes"
        assert await refusal(transport, f"https://other.test:{here.port}/") == "BAD_CERTIFICATE"
    assert len(here.heads) == 2


async def test_https_never_leads_down_to_http() -> None:
    pages: dict[str, bytes] = {}
    async with (
        site({"": answer()}) as plain,
        site(pages, tls=True) as here,
        reaching(here, plain) as transport,
    ):
        pages[""] = redirect(plain.url)
        assert await refusal(transport, here.url) == "BAD_REDIRECT"
    assert plain.heads == []


# The environment


async def test_proxies_and_passwords_of_the_environment_are_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    async with site({"": answer(b"proxy")}) as proxy, site({"": answer(b"site")}) as here:
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        async with reaching(here) as transport:
            assert (await get(transport, here.url)).body == b"site"
    assert proxy.heads == []
    assert "authorization" not in here.heads[0].lower()
