"""How lists are written in a chat."""

from app.tools.authoring import cut

MOST_TOLD = 10
MOST_SHOWN = 50


def named(texts, most=MOST_TOLD):
    """Return things on one line, a few of them by name."""
    shown = ", ".join(cut(text, 80) for text in texts[:most])
    return f"{shown} …" if len(texts) > most else shown


def texts(entries):
    return [entry.text for entry in entries]


def numbered(entries):
    return "\n".join(f"{entry.number}. {cut(entry.text)}" for entry in entries)


def told(say, shelf, key, what, things):
    """Return lines on what was done with some things of a list; none for no things."""
    return [say(what, name=quoted(shelf.lists[key]), things=named(things, MOST_SHOWN))] if things else []


def quoted(name):
    """Return a list's name as it can be said in a sentence: one of several words in quotes."""
    return f'"{name}"' if " " in name else name


def put_back(say, shelf, key, entries):
    """Return the words that put entries back on a list; "" for none, and for more than a sentence holds."""
    if not 0 < len(entries) <= MOST_TOLD:
        return ""
    return say("put_back", name=shelf.lists[key], things=named(texts(entries)))


def left(say, shelf, key):
    """Say what is still to be got, once something was."""
    still = texts(shelf.open(key))
    if not still:
        return say("all_done")
    return say("left_count", count=len(still)) if len(still) > MOST_TOLD else say("left", things=named(still))


def shown(say, shelf, key):
    """Return a list: what is open with its numbers, then what is checked off."""
    name, still = shelf.lists[key], shelf.open(key)
    done = [one for one in shelf.entries(key) if one.fields.get("done")]
    if not still and not done:
        return say("empty", name=name)
    lines = [numbered(still[:MOST_SHOWN])] if still else []
    if len(still) > MOST_SHOWN:
        lines.append(say("more", count=len(still) - MOST_SHOWN))
    title = "shown_done" if not still else "shown_one" if len(still) == 1 else "shown"
    lines.insert(0, say(title, name=name, count=len(still)))
    if done:
        lines += ["", say("done_line", things=named(texts(done)))]
    return "\n".join(lines)


def overview(say, shelf):
    """Return the names of all lists, with how much is open on each."""
    lines = []
    for key, name in shelf.lists.items():
        still = len(shelf.open(key))
        what = "list_line" if still else "list_line_done" if shelf.entries(key) else "list_line_empty"
        lines.append(say(what, name=name, count=still))
    return say("lists", lines="\n".join(lines))
