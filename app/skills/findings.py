"""Findings in a skill that is to be installed: hidden text, orders to the model, risky commands and calls.

Findings inform and never block: a quarter of honest skills have some. Every file is searched as text; nothing
of it runs.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from app.skills.file_tree import Files
from app.text import visible

Kind = Literal["hidden-text", "instruction", "shell", "credentials", "runs-code", "unreadable"]

# Of one kind, each with other words than those before.
MOST_PER_FILE = 20
LONGEST_EXCERPT = 120
# Characters of a file: the searches of all files must end within the time limit of an examination.
LOOKED_AT = 256 * 1024

# Kind, place in the text, excerpt.
_Found = tuple[Kind, int, str]


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding at one place; `line` counts from 1, `excerpt` is on one line with nothing invisible."""

    kind: Kind
    file: str
    line: int
    excerpt: str


def find(files: Files) -> tuple[Finding, ...]:
    """Return all findings, by file and line. Takes up to seconds: not for the event loop."""
    return tuple(finding for path in sorted(files) for finding in _in_file(path, files[path]))


def hosts(files: Files) -> tuple[str, ...]:
    """Return the hosts of all addresses in text and code, sorted; "example" ones left out."""
    found: set[str] = set()
    for content in files.values():
        found.update(match[1].lower() for match in _ADDRESS.finditer(text_of(content) or ""))
    return tuple(sorted(host for host in found if not _EXAMPLE.search(host)))


def text_of(content: bytes) -> str | None:
    """Return the beginning of a file as text; None for other files."""
    if b"\0" in content:
        return None
    try:
        return content.decode("utf-8-sig")[:LOOKED_AT]
    except UnicodeDecodeError:
        return content.decode("latin-1")[:LOOKED_AT]


def _in_file(path: str, content: bytes) -> Iterator[Finding]:
    text = text_of(content)
    if text is None:
        if not path.lower().endswith(_PICTURES):
            yield Finding("unreadable", path, 1, "neither text nor a picture")
        return
    if len(content) > 4 * LOOKED_AT or len(text) == LOOKED_AT:
        yield Finding(
            "unreadable", path, 1, f"{len(content)} bytes, of which only the beginning was looked at"
        )
    for look in (_hidden, _matches):
        seen: dict[Kind, set[str]] = {}
        for kind, place, excerpt in look(text):
            excerpts = seen.setdefault(kind, set())
            if len(excerpts) < MOST_PER_FILE and excerpt not in excerpts:
                excerpts.add(excerpt)
                yield Finding(kind, path, text.count("\n", 0, place) + 1, _excerpt(excerpt))


def _excerpt(text: str) -> str:
    shown = visible(" ".join(text.split()))
    return shown if len(shown) <= LONGEST_EXCERPT else f"{shown[:LONGEST_EXCERPT]}…"


def _hidden(text: str) -> Iterator[_Found]:
    for match in _HIDDEN.finditer(_FLAG.sub(lambda flag: "x" * len(flag[0]), text)):
        tags = "".join(chr(ord(c) - 0xE0000) for c in match[0] if 0xE0020 <= ord(c) <= 0xE007E)
        before, after = text[max(0, match.start() - 30) : match.start()], text[match.end() : match.end() + 30]
        codes = match[0][:6].encode("unicode_escape").decode()
        shown = f"{before}<{codes}, {len(match[0])} in all>{after}"
        yield "hidden-text", match.start(), f"in tag characters: {tags}" if tags else shown


def _matches(text: str) -> Iterator[_Found]:
    for kind, pattern in _PATTERNS:
        for match in pattern.finditer(text):
            yield kind, match.start(), match[0]


_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".ico", ".pdf", ".ttf", ".otf", ".woff", ".woff2")

# The flags of England, Scotland, Wales: tag characters that mean a picture.
_FLAG = re.compile("\U0001f3f4[\U000e0030-\U000e007a]{3,6}\U000e007f")
_HIDDEN = re.compile(
    "[\U000e0000-\U000e007f]+"
    "|[\U000e0100-\U000e01ef\ufe00-\ufe0f]{2,}|[\U000e0100-\U000e01ef]"  # bytes smuggled as variations
    "|[\u202a-\u202e\u2066-\u2069]+"
    "|[\u200b\u2060-\u2064\u206a-\u206f\u180e\u115f\u1160\u3164\uffa0]+"
    r"|(?<!^)(?<!\n)\ufeff"
    # joiners belong between letters and pictures beyond ASCII; bidirectional marks beside such letters
    r"|(?<=[\x00-\x7f])[\u200c-\u200f]+(?=[\x00-\x7f]|$)"
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]+"
)

_GAP = r"[^.]{0,40}?"
_PATTERNS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    (
        "instruction",
        re.compile(
            rf"\b(?:ignore|disregard|forget|override)\b{_GAP}\b(?:previous|prior|above|earlier|preceding|system"
            rf"|safety|your|all other)\b{_GAP}\b(?:instruction|prompt|rule|guideline|directive|context)s?\b"
            rf"|\b(?:do not|don't|never|must not)\s{{1,12}}(?:tell|inform|alert|notify|mention{_GAP}\bto"
            rf"|reveal{_GAP}\bto)\s{{1,12}}(?:this\s{{1,12}}to\s{{1,12}})?(?:the\s{{1,12}})?(?:user|human|owner|person)\b"
            r"|\bwithout\s{1,12}(?:telling|asking|informing|notifying|alerting|the\s{1,12}knowledge\s{1,12}of)\s{1,12}"
            r"(?:the\s{1,12})?(?:user|human|owner|person|anyone)\b"
            rf"|\b(?:reveal|print|repeat|show|send|leak)\b{_GAP}\b(?:your|the)\s{{1,12}}(?:system|hidden|initial)\s{{1,12}}prompt"
            r"|<\s{0,12}/?\s{0,12}(?:important|system|system[-_]reminder|admin)\s{0,12}>"
            r"|<\|(?:im_start|im_end|system|endoftext)\|>|\[/?INST\]|<</?SYS>>"
            rf"|\b(?:pass|put|send|include|append)\b{_GAP}\b(?:contents?|conversation|history|secrets?|password)\b"
            rf"{_GAP}\b(?:as|in|into)\b{_GAP}\b(?:parameter|argument|sidenote|field)\b"
            rf"|\bbefore\s{{1,12}}(?:using|calling|running)\s{{1,12}}(?:this|any(?:\s{{1,12}}other)?|other)\s{{1,12}}tools?\b{_GAP}"
            r"\b(?:read|send|call|fetch|run)\b",
            re.IGNORECASE,
        ),
    ),
    (
        "instruction",
        re.compile(
            rf"\b(?:ignor[aeáé]\w*|olvid[aeáé]\w*|descart[aeáé]\w*|haz\s{{1,12}}caso\s{{1,12}}omiso|no\s{{1,12}}sigas)\b{_GAP}"
            r"\b(?:instrucci[oó]n(?:es)?|indicaci[oó]n(?:es)?|reglas|[oó]rdenes|directrices|prompt)\b"
            r"|\bno\s{1,12}(?:le\s{1,12}|se\s{1,12}lo\s{1,12}|lo\s{1,12})?(?:digas|menciones|informes|avises|cuentes|reveles|muestres)\b"
            rf"{_GAP}\b(?:usuari[oa]|persona|dueñ[oa]|propietari[oa])\b"
            r"|\bsin\s{1,12}(?:avisar|decir|preguntar|informar|contar)(?:le|lo)?\s{1,12}(?:nada\s{1,12})?(?:al?|a\s{1,12}la)\s{1,12}"
            r"(?:usuari[oa]|persona|dueñ[oa])\b"
            rf"|\b(?:muestra|revela|envía|repite|imprime)\b{_GAP}\b(?:prompt|instrucciones)\s{{1,12}}del?\s{{1,12}}sistema\b",
            re.IGNORECASE,
        ),
    ),
    (
        "instruction",
        re.compile(
            rf"\b(?:ignor[ae]\w*|esque[çc]\w*|desconsider[ae]\w*|n[ãa]o\s{{1,12}}siga)\b{_GAP}"
            r"\b(?:instru[çc](?:[õo]es|[ãa]o)|regras|orienta[çc][õo]es|ordens|diretrizes|prompt)\b"
            r"|\bn[ãa]o\s{1,12}(?:lhe\s{1,12})?(?:diga|conte|mencione|informe|avise|revele|mostre)\b"
            rf"{_GAP}\b(?:usu[áa]ri[oa]|pessoa|don[oa]|propriet[áa]ri[oa])\b"
            r"|\bsem\s{1,12}(?:avisar|dizer|perguntar|informar|contar)\s{1,12}(?:nada\s{1,12})?(?:ao?|à|para\s{1,12}[oa])\s{1,12}"
            r"(?:usu[áa]ri[oa]|pessoa|don[oa])\b"
            rf"|\b(?:mostre|revele|envie|repita|imprima)\b{_GAP}\b(?:prompt|instru[çc][õo]es)\s{{1,12}}d[oe]\s{{1,12}}sistema\b",
            re.IGNORECASE,
        ),
    ),
    (
        "shell",
        re.compile(
            r"\b(?:curl|wget|fetch|iwr|irm|Invoke-WebRequest|Invoke-RestMethod|base64)\b[^\n|]{0,300}\|\s{0,12}"
            r"(?:sudo\s{1,12})?(?:(?:ba|z|da|k|fi)?sh|python3?|perl|ruby|node|iex|Invoke-Expression)\b"
            r"|\b(?:(?:ba|z)?sh\s{1,12}-c|eval|source|(?:ba|z)?sh)\s{1,12}[\"']?(?:\$\(|<\(|`)\s{0,12}(?:curl|wget)\b[^\n]{0,200}"
            r"|\brm\s{1,12}-(?:rf|fr)\s{1,12}[\"']?(?:/|(?:~|\$HOME|\$\{HOME\})/?)\*?(?=[\"'\s;&|)]|$)|/dev/(?:tcp|udp)/\S{1,60}"
            r"|\bn(?:c|cat)\s[^\n]{0,40}\s-e\b|\bpowershell\b[^\n]{0,60}\s-e(?:nc\w*)?\b|:\(\)\s{0,12}\{\s{0,12}:\|:&\s{0,12}\}"
            r"|\bxattr\s{1,12}-[a-z]*d[a-z]*\s{1,12}com\.apple\.quarantine\b",
            re.IGNORECASE,
        ),
    ),
    (
        "credentials",
        re.compile(
            r"(?:~|\$HOME|\$\{HOME\}|/root|/home/\w+|/Users/\w+|%USERPROFILE%)[/\\]\.(?:ssh|aws|gnupg|azure|kube"
            r"|docker|netrc|npmrc|pypirc|git-credentials|config/gcloud|config/gh|\w*_history|password-store)\b"
            r"|\b(?:id_rsa|id_ed25519|id_ecdsa)\b|(?<![\w./)\]])(?:\./|\.\./)*\.env(?:\.(?:local|production))?(?![\w.])"
            r"|/\.env(?![\w.])|/etc/(?:shadow|passwd|sudoers)\b|/proc/(?:self|\d+|\*|<\w+>|\$\w+)/(?:environ|mem)\b"
            r"|\bsecurity\s{1,12}find-(?:generic|internet)-password\b|\blogin\.keychain\b|\bsecret-tool\s{1,12}lookup\b"
            r"|\bwallet\.dat\b|/(?:Login Data|Cookies)(?=[\"'])|\b169\.254\.169\.254\b|\bcookies\.sqlite\b",
        ),
    ),
    (
        "runs-code",
        re.compile(
            r"\brequire\(\s{0,12}[\"'](?:node:)?child_process[\"']\s{0,12}\)|\bfrom\s{1,12}[\"'](?:node:)?child_process[\"']"
            r"|\bnew\s{1,12}Function\s{0,12}\(|\bDeno\.(?:run|Command)\b|\bBun\.spawn\b|\bosascript\s{1,12}-e\b"
            r"|\b(?:import|from)\s{1,12}(?:subprocess|pty|_?ctypes|cffi|multiprocessing|runpy|socketserver|(?:c?P|p)ickle"
            r"|dill|cloudpickle|marshal|shelve|joblib)\b|\b(?:import|from)\s{1,12}importlib\b"
            r"|\bos\.(?:system|popen|fork|forkpty|kill|killpg|setuid|setgid|exec\w{1,9}|spawn\w{1,9}|posix_spawnp?)\b"
            r"|\bfrom\s{1,12}os\s{1,12}import\b[^\n]{0,80}\b(?:system|popen|fork|kill|exec\w{1,9}|spawn\w{1,9})\b"
            r"|\bcreate_subprocess_(?:exec|shell)\b|\bsocket\.(?:socket|create_connection|create_server)\b"
            r"|(?<![\w.])(?:builtins\.)?(?:eval|exec|compile|__import__)\s{0,12}\("
        ),
    ),
)

_ADDRESS = re.compile(
    r"\b(?:https?|wss?|ftps?|ssh|git)://(?:[^\s/@\"'<>()]{1,100}@)?"
    r"([a-z0-9](?:[a-z0-9.-]{0,250}[a-z0-9])?|\[[0-9a-f:.]{2,45}\])",
    re.IGNORECASE,
)
_EXAMPLE = re.compile(r"(?:^|\.)example\.(?:com|org|net)$|\.(?:example|test|invalid)$|^example$")
