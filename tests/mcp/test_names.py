"""Names under which tools of servers are offered."""

import json
import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from app.mcp.adapter import offered_name, unique_names

FIT = re.compile(r"[A-Za-z0-9_-]{1,64}")
PAIRS = st.lists(st.tuples(st.text("ab_. é", max_size=70), st.text("ab_. é", max_size=70)), max_size=12)


def test_a_name_says_server_and_tool() -> None:
    assert offered_name("git", "git_log") == "mcp_git_git_log"
    assert offered_name("everything", "get-env") == "mcp_everything_get-env"


def test_a_long_name_keeps_its_end_and_stays_the_same() -> None:
    tool = "list_all_of_the_pull_requests_that_wait_for_my_review"
    name = offered_name("github-enterprise", tool)
    assert len(name) == 64
    assert name.endswith(tool[-40:])
    assert name == "mcp_github-ent_3adff8e3_he_pull_requests_that_wait_for_my_review"


def test_long_names_that_differ_only_in_the_middle_differ() -> None:
    first, second = (f"search_{kind}_{'x' * 60}" for kind in ("issues", "commits"))
    assert offered_name("server", first) != offered_name("server", second)


def test_names_that_come_to_the_same_are_told_apart_whatever_else_there_is() -> None:
    spelled, other = ("files", "read_file"), ("files", "read.file")
    both = unique_names([spelled, other])
    assert both[spelled] == "mcp_files_read_file"
    assert re.fullmatch(r"mcp_files_[0-9a-f]{8}_read_file", both[other])
    assert unique_names([other, spelled, ("files", "read file")])[other] == both[other]
    crossed = unique_names([("a", "b_c"), ("a_b", "c")])
    assert len(set(crossed.values())) == 2
    assert "mcp_a_b_c" not in crossed.values()


def test_real_tools_of_real_servers_get_plain_names(samples: Path) -> None:
    servers = json.loads((samples / "mcp_registry" / "real_server_tools.json").read_text())
    pairs = [(server, tool["name"]) for server, tools in servers.items() for tool in tools]
    names = unique_names(pairs)
    assert len(names) == len(set(names.values())) == 58
    assert all(FIT.fullmatch(name) and name.endswith(tool[-40:]) for (_, tool), name in names.items())


@given(PAIRS)
def test_every_pair_gets_a_fit_name_of_its_own(pairs: list[tuple[str, str]]) -> None:
    names = unique_names(pairs)
    assert names.keys() == set(pairs)
    assert len(set(names.values())) == len(names)
    assert all(FIT.fullmatch(name) for name in names.values())
    assert unique_names(reversed(pairs)) == names
