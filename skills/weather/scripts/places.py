"""Which place a person means: by its name, what stands behind it, and the country of their number."""

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

MOST_OPTIONS = 4
# So many times the people of any other: nobody means the other without saying so.
CLEARLY_LARGER = 10
# A place in the person's own country is meant, unless another has so many times its people.
NEARBY = 20

_OTHER_NAMES = {"eeuu": "US", "eua": "US", "usa": "US", "uk": "GB", "inglaterra": "GB", "england": "GB"}
_SMALL_WORDS = re.compile(r"^(?:(?:de|del|do|da|in|en|em|la|el|los|las|o|a|the|of) )+|[\s,]+$")
MOST_WORDS, LONGEST_NAME = 8, 60
_COORDINATES = re.compile(r"\(?(-?\d{1,2}(?:\.\d+)?)\s*,\s*(-?\d{1,3}(?:\.\d+)?)\)?")  # of a location sent
_PARTS = re.compile(r"^(?P<name>[^,(]+)[,(]\s*(?P<where>[^)]+)\)?$")


@dataclass(frozen=True)
class Place:
    """A place as it is kept for a person."""

    name: str
    region: str
    country: str
    latitude: float
    longitude: float
    code: str = ""
    people: int = 0

    @property
    def label(self) -> str:
        return ", ".join(dict.fromkeys(part for part in (self.name, self.country) if part))


@dataclass(frozen=True)
class Found:
    """`places`: none, the one that is meant, or those to choose from; `country`: where only one was named."""

    places: tuple[Place, ...] = ()
    country: str = ""


# Places of a name as open-meteo lists them.
Search = Callable[[str], Sequence[dict[str, Any]]]


def find(asked: str, country: str, search: Search) -> Found:
    """Return the places that the words mean to a person whose number is of that country."""
    if at := _COORDINATES.fullmatch(asked.strip()):
        return Found((Place(f"{at[1]}, {at[2]}", "", "", float(at[1]), float(at[2])),))
    parted = _PARTS.match(asked.strip())
    if parted:
        return _within(parted["name"], parted["where"], country, search)
    listed = [one for one in search(asked.strip()) if _is_place(one)]
    named = [one for one in listed if folded(one["name"]) == folded(asked)]
    name, where, code = _country_at_end(asked)
    if not named and code and not (listed and listed[0].get("country_code") == code):
        found = _within(name, where, country, search)
        if found.places:
            return found
    return _meant(named or listed, country)


def options(places: Sequence[Place]) -> list[str]:
    """Tell the places apart by country, by region where the country is one, or by both."""
    countries = {one.country for one in places}
    if len(countries) == len(places):
        return [one.country for one in places]
    if len(countries) == 1:
        return [one.region or one.country for one in places]
    return [", ".join(filter(None, (one.region, one.country))) for one in places]


def folded(text: str) -> str:
    """Return lower case, without accents, punctuation and doubled spaces."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    kept = "".join(c if c.isalnum() else " " for c in plain if not unicodedata.combining(c))
    return " ".join(kept.split())


def _within(name: str, where: str, country: str, search: Search) -> Found:
    """Return those in a region or country; all of that name where the words behind it fit none."""
    listed = [one for one in search(name.strip()) if _is_place(one)]
    named = [one for one in listed if folded(one["name"]) == folded(name)] or listed
    wanted = _SMALL_WORDS.sub("", folded(where.split(",")[-1]))
    code = _codes().get(wanted, "")
    fitting = [one for one in named if code and one.get("country_code") == code] or [
        one
        for one in named
        if wanted
        in {folded(str(one.get(key) or "")) for key in ("admin1", "admin2", "country", "country_code")}
    ]
    return _meant(fitting or named, country)


def _country_at_end(asked: str) -> tuple[str, str, str]:
    """Name, country and code of "cordoba argentina" or "Santiago de Chile"; no code where none is named."""
    words = asked.split()
    for start in range(1, len(words)):
        where = " ".join(words[start:])
        code = _codes().get(folded(where))
        if code:
            name = re.sub(r"\s+(?:de|del|do|da|in|en|em)$", "", " ".join(words[:start]))
            return name, where, code
    return asked, "", ""


def _is_place(one: Any) -> bool:
    if not isinstance(one, dict) or not isinstance(one.get("name"), str):
        return False
    numbers = (one.get("latitude"), one.get("longitude"), one.get("population") or 0)
    return all(isinstance(number, int | float) for number in numbers)


def _meant(listed: Sequence[dict[str, Any]], country: str) -> Found:
    inhabited = [one for one in listed if str(one.get("feature_code", "PPL")).startswith("PPL")]
    if not inhabited and listed and str(listed[0].get("feature_code")).startswith("PCL"):
        return Found(country=_name(listed[0]["name"]))
    places = sorted(map(_place, inhabited or listed), key=lambda one: -one.people)
    if not places:
        return Found()
    largest = places[0].people
    near = [one for one in places if one.code == country and one.people * NEARBY >= largest]
    among = near or places
    distinct: dict[tuple[str, str], Place] = {}
    for one in among:
        if one.people * CLEARLY_LARGER >= among[0].people:
            distinct.setdefault((one.region, one.country), one)
    return Found(tuple(distinct.values())[:MOST_OPTIONS])


def _name(listed: Any) -> str:
    """Return a name of the directory, which anybody may edit: a few words of letters, and no more."""
    letters = re.sub(r"[^\w\s.'’()-]|[\d_]", "", str(listed or ""))
    return " ".join(letters.split()[:MOST_WORDS])[:LONGEST_NAME]


def _place(one: dict[str, Any]) -> Place:
    return Place(
        name=_name(one["name"]),
        region=_name(one.get("admin1")),
        country=_name(one.get("country")),
        latitude=float(one["latitude"]),
        longitude=float(one["longitude"]),
        code=str(one.get("country_code") or ""),
        people=int(one.get("population") or 0),
    )


@lru_cache(maxsize=1)
def _codes() -> dict[str, str]:
    """Return countries by their names in three languages."""
    from babel import Locale

    codes = dict(_OTHER_NAMES)
    for language in ("es", "pt", "en"):
        for code, name in Locale.parse(language).territories.items():
            if len(code) == 2:
                codes[folded(name)] = code
    return codes
