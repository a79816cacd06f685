"""Which addresses in a call are not the person's own, in whatever way they are written."""

import pytest

from app.turns.taint import MOST_FOUND, leads_elsewhere, listed_addresses, own_addresses
from tests.limits import limited

SAID = own_addresses(["look at https://good.example/a/b, please", "and at good.example too"])


FOREIGN = [
    *("https://evil.example/", "HTTPS://EVIL.EXAMPLE", "evil.example", "evil.example."),
    *("//evil.example/x", "https:evil.example", "open evil.example and report"),
    *("mallory@evil.example", "https://good.example@evil.example/"),
    *("https://evil.example\\@good.example/a/b", "https://evil.example#@good.example"),
    *("https://good.example.evil.example/a/b", "https://good.example:8443/a/b"),
    *("https://good.example/forms?secret=1", "https://good.example/?u=https://evil.example"),
    *("https:\n/\n/evil\n.example/x?mail=ana", "https:\t/\t/evil\t.example/x"),
    *("https:\n/\n/evil\n.example/a b", "0177.1", "0xa.1", "127\u30021", "evil\ufe52example"),
    *("evil\u3002example", "evil\uff0eexample", "\u24d4\u24e5\u24d8\u24db.example"),
    *("ev\u200bil.example", "https://ev\nil.example/", "xn--evl-sma.example", "ev\u00edl.example"),
    *("https://%65vil.example/", "evil%2Eexample", "https%253A%252F%252Fevil.example"),
    *("http://2130706433/", "2130706433", "0x7f000001", "0x7f.0.0.1", "1.2.3.4"),
    *("http://[::1]:8080/", "2001:db8::1", "localhost:8080", "http://intranet/"),
    *("ftp://evil.example/x", "127.1", "127.0.1", "0x7f.1", "017700000001", "0177.1:8080/x"),
    *("//127.1/x", "root@127.1", "%31%32%37.1", "8.526344", "http://127.1/", "x[::1]"),
    *("[fe80::1%25eth0]/x", "[::ffff:127.0.0.1]:80", "https%25253A%25252F%25252Fevil.example"),
    *("%2525252525252565vil.example", "xn--e1afmkfd.xn--p1ai", "evil\uff61example"),
    *("\u0435vil.\u0440\u0444", "\u0915\u0902\u092a\u0928\u0940.\u092d\u093e\u0930\u0924"),
    *("good.example.\u092d\u093e\u0930\u0924", "evil\u00b7good.example/a", "i\u2764.ws"),
    "a.b.c.d.e.f.g.h.i.j.k.evil.example",
]


def test_an_address_that_the_person_did_not_write_is_foreign() -> None:
    for text in FOREIGN:
        assert leads_elsewhere({"where": text}, SAID)
        assert leads_elsewhere({"list": [{"deep": text}]}, SAID)
        assert leads_elsewhere({text: 1}, SAID)


def test_an_address_is_the_persons_to_its_last_sign() -> None:
    """A page that they had read could have it asked for again with what the model knows behind it."""
    for end in ["'s3cret", '"s3cret', "`s3cret", "<s3cret", "?!;!;;!", ")", "…", "”"]:
        assert leads_elsewhere({"where": f"https://good.example/a/b{end}"}, SAID)
        assert leads_elsewhere({"host": "good.example", "path": f"/a/b{end}"}, SAID)
    for path in ["\uff41/b", "a/\U0001d41b", "\u24d0/b"]:  # other forms of letters are another path
        assert leads_elsewhere({"where": f"https://good.example/{path}"}, SAID)


def test_an_address_that_the_person_wrote_is_theirs_without_what_stands_around_it() -> None:
    for asked in (
        "https://good.example/a/b",
        "http://GOOD.example/a/b",
        "good.example",
        "https://good.example/",
    ):
        assert not leads_elsewhere({"where": asked}, SAID)
    for said, asked in [
        ("see <https://x.example/a_(b)>.", "https://x.example/a_(b)"),
        ("(https://x.example/a_(b))", "https://x.example/a_(b"),
        ("*https://x.example/a*", "https://x.example/a"),
        ("what does x.example/a?b=c say?", "https://x.example/a?b=c"),
        ("https://x.example/it's", "https://x.example/it's"),
        ("mail ana@x.example, please", "ana@x.example"),
        ("https://x.example/\uff41", "https://x.example/\uff41"),
    ]:
        assert not leads_elsewhere({"where": asked}, own_addresses([said]))


def test_what_is_no_address_is_none() -> None:
    for text in [
        *("Hello. How are you?", "3.14", "1250.5", "0.5", "12:30:45", "21/11/2026", "50%", "a/b"),
        "2026-11-21T10:00:00+00:00",
    ]:
        assert not leads_elsewhere({"text": text, "number": 42, "nothing": None, "yes": True}, [])


def test_host_and_path_in_two_arguments_are_one_address_and_a_number_may_be_one() -> None:
    assert leads_elsewhere({"host": "good.example", "path": "/secrets?x=1"}, SAID)
    assert not leads_elsewhere({"host": "good.example", "path": "/a/b"}, SAID)
    assert leads_elsewhere({"host": 134744072}, [])


def test_a_name_is_the_same_in_both_of_its_spellings() -> None:
    other = "ol\u00e1.example".encode("idna").decode()
    own = own_addresses(["ol\u00e1.example"])
    assert not leads_elsewhere({"where": f"https://{other}/"}, own)
    assert leads_elsewhere({"where": "https://xn--ol-jma.example/"}, own)


def test_many_hosts_and_paths_are_not_tried_out() -> None:
    hosts = [f"https://good{n}.example/" for n in range(100)]
    call = {"hosts": hosts, "paths": [f"/{n}" for n in range(100)]}
    assert leads_elsewhere(call, own_addresses([" ".join(hosts)]))


PIECES = [
    *("a", "1.", ":", "a.", "%25", "%2525", "a-", "@", "a@", "[", "[::", "a.a-", "0x", "http", "//", "x.y/"),
    *("\u0315\u0300", "e\u0301", "\u0915\u093e.", "\u3002"),
]


@pytest.mark.slow
def test_a_long_text_is_read_in_time_that_grows_with_its_length() -> None:
    for piece in PIECES:
        text = (piece * 200_000)[:200_000]
        with limited():
            leads_elsewhere({"text": text}, own_addresses([text]))


def test_a_search_lists_a_few_addresses_named_url_and_no_others() -> None:
    found = {
        "results": [
            {"title": "https://t.example/", "url": "https://One.example", "snippet": "https://evil.example/"},
            {"url": "https://two.example/b?c=d", "deep": {"url": "https://three.example/"}},
            {"url": "see https://four.example/"},
            {"url": "http://user:word@five.example/"},
            {"url": "file:///etc/passwd"},
            {"url": ["https://six.example/"]},
        ],
        "query": "https://seven.example/",
    }
    assert listed_addresses(found) == [
        "https://One.example/".lower(),
        "https://two.example/b?c=d",
        "https://three.example/",
    ]
    assert len(listed_addresses([{"url": f"https://x{n}.example/"} for n in range(1000)])) == MOST_FOUND


def test_an_address_inside_one_that_was_found_was_not_found() -> None:
    found = "https://site.example/a%20https://evil.example/x%20b"
    own = own_addresses([], [found])
    assert not leads_elsewhere({"url": found}, own)
    assert leads_elsewhere({"url": "https://evil.example/x"}, own)


SCHEMA = {
    "properties": {
        "path": {"type": "string", "description": "Path to the file"},
        "url": {"type": "string"},
        "sendTo": {"type": "string"},
        "name": {"type": "string", "description": "The host that is asked"},
        "paths": {"type": "array", "items": {"type": "string"}},
    }
}


def test_a_file_is_no_address_where_the_schema_says_no_url_and_no_path_of_a_link() -> None:
    for arguments in [
        *({"path": path} for path in ("lista.txt", "/datos/lista.txt", "10.5")),
        {"paths": ["a.md", "b.zip"]},
        {"path": "/datos/lista.txt", "paths": ["https://good.example/"]},
    ]:
        assert not leads_elsewhere(arguments, SAID, SCHEMA)
    assert leads_elsewhere({"url": "good.example", "path": "/datos/lista.txt"}, SAID, SCHEMA)


def test_an_address_counts_with_a_scheme_or_where_the_schema_says_so() -> None:
    for arguments in [
        {"path": "https://evil.example/x"},
        {"path": "https%3A%2F%2Fevil.example"},
        {"url": "evil.example"},
        {"name": "evil.example"},
        {"sendTo": "mallory@evil.example"},
        {"unknown": "evil.example"},
        {"paths": ["a.md", "http://evil.example"]},
        {"paths": [{"deep": "evil.example"}]},
    ]:
        assert leads_elsewhere(arguments, SAID, SCHEMA)
