"""The tools that there are: found by words, listed by category."""

from app.tools.authoring import Sentences, read_said

MOST_FOUND = 10
MOST_WORDS = 500
CATEGORIES_NAMED = 40

SAID = read_said(__file__)


async def search_tools(query: str, limit: int = 5, context=None) -> dict:
    """Finds tools for a task, also those not offered now. What it finds can be called in the next step.

    Args:
        query: The task in a few words, such as "convert currency".
        limit: At most 10.

    Example: which tools do you have for music
    Ejemplo: qué herramientas tienes para traducir
    """
    say = Sentences(SAID, context)
    words = " ".join(query.split())[:MOST_WORDS]
    if not words:
        return say.failed("EMPTY_QUERY")
    found = context.services.search.search(words, context.person, max(1, min(limit, MOST_FOUND)))
    summary = say("found" if found else "found_none", count=len(found), query=words)
    return _listed({"tools": found, "summary": summary}, {one["category"] for one in found}, context)


async def list_categories(context=None) -> dict:
    """Lists the categories of tools that there are, with the tools of each.

    Example: which tools do you have
    Ejemplo: qué herramientas tienes
    """
    categories = context.services.search.categories(context.person)
    shown = categories[:CATEGORIES_NAMED]
    summary = Sentences(SAID, context)("categories" if shown else "categories_none")
    data = {"count": len(categories), "categories": shown, "summary": summary}
    return _listed(data, {one["name"] for one in shown}, context)


def _listed(data, skills, context):
    """Return the data, marked where it holds what the author of a skill from elsewhere wrote."""
    by_others = context.services.search.names_others(skills)
    return {"ok": True, "data": data, "meta": {"outside": True}} if by_others else data
