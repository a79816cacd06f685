"""The parts of a message of which each may be about something else."""

from app.llm.offline.clauses import lines, sentences, splits

_MOST_FRAGMENTS = 12
_MOST_FRAGMENT_WORDS = 16


def fragments_of(said: str) -> list[str]:
    """The message, its sentences, and the halves that an "and" joins: each may be about something else."""
    found: dict[str, None] = {}
    for line in lines(said):
        for sentence in sentences(line):
            parts = [part for pair in splits(sentence) for part in pair]
            found |= dict.fromkeys([sentence, *parts])
        if len(found) > _MOST_FRAGMENTS:
            break
    return [_clipped(fragment) for fragment in list(found)[:_MOST_FRAGMENTS]]


def _clipped(fragment: str) -> str:
    """Its first words, which tell what it is about."""
    pieces = fragment.split(maxsplit=_MOST_FRAGMENT_WORDS)
    return fragment if len(pieces) <= _MOST_FRAGMENT_WORDS else " ".join(pieces[:_MOST_FRAGMENT_WORDS])
