import re

from hypothesis import given, settings
from hypothesis import strategies as st

from app.channels.whatsapp import render_whatsapp

from .whatsapp_text import formatted, plain

RENDERED = [
    ("", ""),
    ("  \n\n ", ""),
    ("a\ud800b\ufdd0c", "abc"),
    ("**bold**", "*bold*"),
    ("*italic* and _italic_", "_italic_ and _italic_"),
    ("~~gone~~", "~gone~"),
    ("***both***", "_*both*_"),
    ("`code` and ``a`b``", "`code` and ```a`b```"),
    ("# Title", "*Title*"),
    ("### A **bold** title\ntext", "*A bold title*\n\ntext"),
    ("[Meta](https://meta.com/x)", "Meta (https://meta.com/x)"),
    ("[meta.com](https://meta.com/)", "https://meta.com/"),
    ("<https://a.example/_x_/y>", "https://a.example/_x_/y"),
    ("[ana@b.example](mailto:ana@b.example)", "ana@b.example"),
    ("**[x](https://a.example/*b*)**", "*x (https://a.example/*b*)*"),
    ("![a cat](https://a.example/cat.png)", "a cat (https://a.example/cat.png)"),
    ("- one\n- two", "- one\n- two"),
    ("- one\n  - inner\n    1. deep\n- two", "- one\n  - inner\n    1. deep\n- two"),
    ("1. milk\n3. bread\n12. tea", "1. milk\n3. bread\n12. tea"),
    ("- [ ] open\n- [x] done", "- [ ] open\n- [x] done"),
    ("> said\n> so", "> said\n> so"),
    ("> outer\n>> inner", "> outer\n\n> inner"),
    ("```python\nx = 1\n\ny = 2\n```", "```\nx = 1\n\ny = 2\n```"),
    ("    indented", "```\nindented\n```"),
    ("```\n```", ""),
    ("- step\n  ```\n  a\n    b\n  ```", "- step\n  ```\n  a\n    b\n  ```"),
    ("a\n\n---\n\nb", "a\n\n———\n\nb"),
    ("soft\nbreak and hard  \nbreak", "soft\nbreak and hard\nbreak"),
    ("one<br>two", "one\ntwo"),
    ("<b>shown</b> &amp; read", "<b>shown</b> & read"),
    ("|Day|High|\n|--|--|\n|Mon|**30**|\n|Tue||", "*Day*: Mon\n*High*: *30*\n\n*Day*: Tue"),
    ("|Only|Heads|\n|--|--|", "*Only* · *Heads*"),
    ("2*3*4", "2*3*4"),
    ("[2*3*4](https://a.example)", "2*3*4 (https://a.example)"),
    ("* item *two*", "- item _two_"),
    ("snake_case_name", "snake_case_name"),
    ("foo**bar**baz", "foo**bar**baz"),
    ("**Nota**: sí", "*Nota*: sí"),
    ("**two\nlines**", "*two*\n*lines*"),
]


def test_markdown_in_whatsapps_own_form() -> None:
    for markdown, expected in RENDERED:
        assert render_whatsapp(markdown) == expected


LITERAL = [
    *(r"\*not bold\*", r"\_\_init\_\_", r"(\*aside\*)", r"\~gone\~", r"\`tick\`", r"\`\`\`fence\`\`\`"),
    *(r"\*a **b** c\*", r"**a \*b\* c**", r"**\*x\***", r"\> no quote"),
]


def test_marks_that_are_text_do_not_become_formatting() -> None:
    for markdown in LITERAL:
        shown = render_whatsapp(markdown)
        assert all("\\" not in content and mark not in content for mark, content in formatted(shown))
        wanted = re.sub(r"\\(.)", r"\1", markdown.replace("**", ""))
        assert plain(shown).replace("*b*", "b") == wanted.replace("*b*", "b")
        assert not any(line.startswith(">") for line in shown.split("\n"))


WORDS = st.text(st.sampled_from("ab1 .,(*_~`>é"), max_size=30)


@given(WORDS)
@settings(max_examples=100, deadline=None)
def test_escaped_text_is_never_formatted_and_never_changed(text: str) -> None:
    text = " ".join(text.split())
    escaped = re.sub(r"([*_~`>().])", r"\\\1", text)
    shown = render_whatsapp(escaped)
    assert formatted(shown) == []
    assert plain(shown) == text


@given(st.text(st.sampled_from("ab1 .*_~`>#-|[]()\\\n<&;!x"), max_size=80) | st.text(max_size=60))
@settings(max_examples=150, deadline=None)
def test_any_markdown_is_rendered(markdown: str) -> None:
    shown = render_whatsapp(markdown)
    assert not any("\ufdd0" <= character <= "\ufdef" for character in shown)
    assert all(content.strip() for mark, content in formatted(shown) if mark in "*_~")


def test_pathological_markdown_keeps_its_words() -> None:
    for markdown in [">" * 500 + " deep", "- " * 200 + "deep", "[" * 5000, "*a " * 20_000]:
        shown = render_whatsapp(markdown)
        assert re.findall(r"\w+", shown) == re.findall(r"\w+", markdown)
