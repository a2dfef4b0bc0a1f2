"""Names of people, places and things, all invented or common; nothing in the tasks is about the real world."""

from __future__ import annotations

from random import Random


def person(rng: Random) -> str:
    """First name and surname."""
    return f"{rng.choice(FIRST)} {rng.choice(SURNAMES)}"


def people(rng: Random, n: int) -> list[str]:
    """Persons with distinct surnames."""
    return [f"{rng.choice(FIRST)} {surname}" for surname in rng.sample(SURNAMES, n)]


def _words(*lines: str) -> list[str]:
    return " ".join(lines).split()


SURNAMES = _words(
    "Abernon Bellwater Calder Dunmore Eastlake Farrow Greaves Holloway Ingram Jessop Kestrel Lockhart",
    "Marlow Norwood Okafor Pembury Quillan Ravenel Sorley Thackray Underhay Vantongeren Whitlock Yardley",
    "Zelenka Ashdown Birkett Corrigan Drummond Elphick Fennimore Garrick Hawtrey Ivimey Jardine Kilbride",
    "Larkspur Merriman Nethersole Oxley",
)
FIRST = _words(
    "Ada Bruno Clara Dario Edith Felix Greta Hugo Irene Jonas Klara Leon Mira Nils Olga Pavel Rosa",
    "Stellan Tessa Ugo Vera Wanda Xaver Yara Zeno",
)
PLACES = _words(
    "Aldermoor Brackwater Cindersea Dovefield Eskmouth Fallowmere Grimsholt Harrowby Ilmstead Junipers",
    "Kettleness Larchfold Mossbridge Netherby Oakenholt Pellwick Quarrendon Rushmere Saltney Thornwick",
    "Ullscarth Vexford Wrenbury Yarrowdale Zennorby Ashcombe Birchover Coldharbour Dunkeswick Elmsett",
)
GOODS = _words(
    "lamps ropes kettles mirrors saddles barrels ladders candles hinges shovels baskets clocks buckets",
    "anchors tiles pulleys lanterns brushes trowels chisels",
)
MONTHS = _words(
    "January February March April May June July August September October November December",
)
SHIPS = _words(
    "Aurora Bonaventure Corsair Dauntless Endeavour Fulmar Guillemot Halcyon Intrepid Jupiter Kittiwake",
    "Lodestar Meridian Nautilus Osprey Petrel Quicksilver Resolute Sandpiper Tempest",
)
TOPICS = _words(
    "tides orchards glaciers lichens bridges comets harbours bees canals volcanoes mosses windmills",
)
