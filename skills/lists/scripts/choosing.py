"""Which list a call is about."""

from app.tools.authoring import cut

from .lines import named
from .shelf import MAX_LISTS, SHOPPING, is_shopping


def the_list(say, shelf, name):
    """Return (the key of the list that is meant, None), or ("", why there is none).

    Without a name the list in use; ("", None) where there is none, but others are.
    """
    if not shelf.lists:
        return "", {"summary": say("no_lists"), "lists": []}
    if not name:
        return shelf.in_use(), None
    keys = shelf.named(name)
    if len(keys) == 1:
        return keys[0], None
    names = named(list(shelf.lists.values()))
    if keys:
        return "", say.failed("AMBIGUOUS_LIST", names=named([shelf.lists[key] for key in keys]))
    if is_shopping(name):
        return "", {"summary": say("nothing_to_buy", names=names), "lists": list(shelf.lists.values())}
    return "", say.failed("LIST_NOT_FOUND", wanted=cut(name, 80), names=names)


def list_to_fill(say, shelf, name):
    """Return the same for a list that may begin with the call; only too many lists or unclear names fail.

    Without a name, and with none in use, the shopping list is meant.
    """
    keys = shelf.named(name) if name else list(filter(None, [shelf.in_use()]))
    if len(keys) > 1:
        return "", say.failed("AMBIGUOUS_LIST", names=named([shelf.lists[key] for key in keys]))
    if keys:
        return keys[0], None
    if len(shelf.lists) >= MAX_LISTS:
        return "", say.failed("TOO_MANY")
    is_unnamed = not name or name.lower() == SHOPPING
    called = say("shopping") if is_unnamed else f"{name[0].upper()}{name[1:]}"
    return shelf.begin(called), None
