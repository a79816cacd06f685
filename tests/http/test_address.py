"""What is read out of an address that somebody else wrote, and which machines are on the internet."""

import shutil
import subprocess
import sys
from ipaddress import ip_address
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.http.address import Address, FetchError, is_public

PUBLIC = """
1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 93.184.216.34 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0
168.63.129.15 168.63.129.17 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.0 192.0.3.0
192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 203.0.112.255 203.0.114.0 223.255.255.255
2001:200:: 2001:4860:4860::8888 2606:4700:4700::1111 2620:fe::fe 2a00:1450:4001:81b::200e
2001:db7:ffff:: 2001:db9:: 2003:: 3ffe:ffff:: ::ffff:8.8.8.8 64:ff9b::8.8.8.8
"""

SPECIAL = """
0.0.0.0 0.1.2.3 0.255.255.255 10.0.0.0 10.255.255.255 100.64.0.0 100.100.100.200 100.127.255.255 127.0.0.1
127.0.0.53 127.255.255.255 168.63.129.16 169.254.0.0 169.254.169.254 169.254.255.255 172.16.0.0 172.17.0.1
172.31.255.255 192.0.0.0 192.0.0.8 192.0.0.192 192.0.0.255 192.0.2.1 192.88.99.1 192.168.0.1
192.168.255.255 198.18.0.0 198.19.255.255 198.51.100.1 203.0.113.255 224.0.0.1 239.255.255.250 240.0.0.1
255.255.255.254 255.255.255.255
:: ::1 ::2 ::127.0.0.1 ::8.8.8.8 ::ffff:0.0.0.0 ::ffff:127.0.0.1 ::ffff:10.1.2.3 ::ffff:169.254.169.254
::ffff:192.168.1.1 ::ffff:100.64.0.1 ::ffff:0:127.0.0.1 64:ff9b::127.0.0.1 64:ff9b::10.0.0.1
64:ff9b::169.254.169.254 64:ff9b:1::1 64:ff9b:1::8.8.8.8 64:ff9b:0:1::1 100::1 100:0:0:1::1 2001::1
2001:0:7f00:1:: 2001:1::1 2001:2::1 2001:10::1 2001:20::1 2001:30::1 2001:1ff:ffff:: 2001:db8::1
2002::1 2002:7f00:1:: 2002:808:808::1 2002:c0a8:101::1 3fff::1 3fff:fff:: 4000::1 5f00::1 fc00::1 fd00::1
fd00:ec2::254 fe80::1 fe80::1%eth0 febf::1 fec0::1 feff::1 ff01::1 ff02::1 ff05::2 ff0e::1
"""


def test_machines_on_the_internet_may_be_asked() -> None:
    for ip in PUBLIC.split():
        assert is_public(ip_address(ip))


def test_local_private_and_special_ranges_may_not() -> None:
    for ip in SPECIAL.split():
        assert not is_public(ip_address(ip))


def test_a_public_address_of_this_machine_may_not_be_asked() -> None:
    """In a network of its own, where an interface may have any address."""
    setup = "ip link set lo up && ip addr add 8.8.4.4/32 dev lo"
    alone = ["unshare", "--net", "--map-root-user", "sh", "-c"]
    if shutil.which("unshare") is None or subprocess.run([*alone, setup], capture_output=True).returncode:
        pytest.skip("this machine gives no network of its own to a test")
    code = (
        "from ipaddress import ip_address as ip; from app.http.address import is_public;"
        "print(is_public(ip('8.8.4.4')), is_public(ip('8.8.8.8')))"
    )
    run = subprocess.run(
        [*alone, f'{setup} && exec "$0" -c "$1"', sys.executable, code], capture_output=True, text=True
    )
    assert run.stdout == "False True\n", run.stderr


def test_an_address_has_one_spelling() -> None:
    for text, url in [
        ("https://example.com", "https://example.com/"),
        ("HTTPS://EXAMPLE.com:443/A?b=c#d", "https://example.com/A?b=c"),
        ("http://example.com:80", "http://example.com/"),
        ("http://example.com:/x", "http://example.com/x"),
        ("https://example.com:8443/", "https://example.com:8443/"),
        ("https://example.com./", "https://example.com/"),
        ("https://example.com?q=1", "https://example.com/?q=1"),
        (
            "https://example.com/a%2Fb/../ñ?q=á&r=[1]",
            "https://example.com/a%2Fb/../%C3%B1?q=%C3%A1&r=%5B1%5D",
        ),
        ("https://example.com/a;b=c@d:e", "https://example.com/a;b=c@d:e"),
        ("https://r3---sn_a.example.com/", "https://r3---sn_a.example.com/"),
        ("https://Ñandú.example/", "https://xn--and-6ma2c.example/"),
        ("https://straße.example/", "https://xn--strae-oqa.example/"),
        ("https://例え。テスト/", "https://xn--r8jz45g.xn--zckzah/"),
        ("http://8.8.8.8/", "http://8.8.8.8/"),
        ("http://134744072/", "http://8.8.8.8/"),
        ("http://0x08.010.2056/", "http://8.8.8.8/"),
        ("http://[2606:4700:4700:0::1111]/", "http://[2606:4700:4700::1111]/"),
        ("http://[::ffff:8.8.8.8]:8080/", "http://8.8.8.8:8080/"),
    ]:
        address = Address.parse(text)
        assert address.url == url
        assert Address.parse(url) == address


def test_every_spelling_of_an_ip_address_is_read_as_what_it_is() -> None:
    for host, ip in [
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.1.", "127.0.0.1"),
        ("127.1", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("017700000001", "127.0.0.1"),
        ("0x7f000001", "127.0.0.1"),
        ("0X7F.0.0x0.1", "127.0.0.1"),
        ("0177.0.0.01", "127.0.0.1"),
        ("0", "0.0.0.0"),
        ("169.16689662", "169.254.169.254"),
        ("１２７.０.０.１", "127.0.0.1"),
        ("①②⑦.0.0.1", "127.0.0.1"),
        ("127。0。0。1", "127.0.0.1"),
        ("[::1]", "::1"),
        ("[0:0:0:0:0:0:0:1]", "::1"),
        ("[::ffff:127.0.0.1]", "127.0.0.1"),
        ("[::ffff:7f00:1]", "127.0.0.1"),
    ]:
        assert Address.parse(f"http://{host}/").ip == ip_address(ip)


def test_what_is_no_plain_address_is_refused() -> None:
    for text in [
        *("", "//example.com/", "https:/example.com", "https://", "https://:443/", "ftp://example.com/"),
        *("file:///etc/passwd", "data:text/plain,x", "https://user@example.com/"),
        *("https://user:password@example.com/", "https://example.com@127.0.0.1/"),
        *("https://example.com:65536/", "https://example.com\\@127.0.0.1/"),
        *("https://example.com/\r\nHost: other", "https://exa\tmple.com/", " https://example.com/"),
        *("https://example.com/a b", "https://exam\u202eple.com/", "https://exa\u00admple.com/"),
        *("https://example.com/\ud800", "https://[::1%25eth0]/", "https://[::1/", "https://[127.0.0.1]/"),
        *("https://256.256.256.256/", "https://example.123/", "https://127.0.0.1%2f.example.com/"),
        *("https://%31%32%37.0.0.1/", "https://a..example.com/", "https://example.com℀.org/"),
        *("https://" + "a" * 64 + ".com/", "https://" + "ñ" * 300 + ".com/"),
        "https://example.com/" + "a" * 4096,
    ]:
        with pytest.raises(FetchError) as refused:
            Address.parse(text)
        assert refused.value.code == "BAD_ADDRESS"


_PIECES = """127.0.0.1 localhost 0x7f 0177 8.8.8.8 ::1 ffff a.example xn-- 80 %31 [ ] @ : / ? # & . - \\
。 ① １ ％ ： ／ ñ ß"""


@given(st.lists(st.one_of(st.sampled_from(_PIECES.split()), st.characters()), min_size=1, max_size=8))
def test_what_was_checked_is_what_the_client_is_told(pieces: list[str]) -> None:
    try:
        address = Address.parse("http://" + "".join(pieces))
    except FetchError:
        return
    told = urlsplit(address.url)
    assert (told.scheme, told.hostname, told.username) == ("http", address.host, None)
    assert (80 if told.port is None else told.port) == address.port
    assert Address.parse(address.url) == address


def test_a_redirect_is_read_from_where_it_stands() -> None:
    here = Address.parse("https://example.com/a/b?c")
    for location, url in (
        ("d", "https://example.com/a/d"),
        ("/d e", "https://example.com/d%20e"),
        ("?f", "https://example.com/a/b?f"),
        ("//other.example/", "https://other.example/"),
        ("https://other.example:8443", "https://other.example:8443/"),
    ):
        assert here.follow(location).url == url


def test_a_redirect_does_not_leave_https() -> None:
    with pytest.raises(FetchError) as refused:
        Address.parse("https://example.com/").follow("http://example.com/")
    assert refused.value.code == "BAD_REDIRECT"
    assert Address.parse("http://example.com/").follow("https://example.com/").scheme == "https"
