"""The pages of people: roles, and all that is kept of one."""

from math import ceil
from typing import Literal

from fastapi import Request, Response

from app.console.site import Site, back
from app.store import people

PEOPLE_ON_A_PAGE = 100


def add_people(site: Site) -> None:
    """Add the pages of people."""
    router, assistant = site.router, site.assistant
    realm = assistant.realm
    rules = assistant.access.access_rules(realm)

    @router.get("/console/people")
    async def everybody(request: Request, words: str = "", page: int = 1) -> Response:
        """Show people with their roles, those whom a search finds in a name, number or user id."""
        words = " ".join(words.split())[:100]
        lines = [
            line
            for line in await site.store.read(people.listing)
            if line.realm == realm and words.lower() in " ".join((line.name, *line.names)).lower()
        ]
        page = min(max(page, 1), max(ceil(len(lines) / PEOPLE_ON_A_PAGE), 1))
        is_last = len(lines) <= page * PEOPLE_ON_A_PAGE
        lines = lines[(page - 1) * PEOPLE_ON_A_PAGE : page * PEOPLE_ON_A_PAGE]
        roles = [
            people.role_of(rules, line.role, line.access, line.names) if line.id else "turned away"
            for line in lines
        ]
        shown = list(zip(lines, roles, strict=True))
        return site.render(request, "people.html", lines=shown, words=words, page=page, is_last=is_last)

    @router.post("/console/people/{action}")
    async def change(request: Request, action: Literal["allow", "block", "owner"]) -> Response:
        """Let a person in, shut them out, or make them an owner."""
        await assistant.change_access(action, request.state.form.get("who", ""))
        return back("/console/people")
