"""Templates of level 2: an attachment with several parts, or a way through several pages."""

from __future__ import annotations

import json
from random import Random

from benchmarks.offline_gaia import documents
from benchmarks.offline_gaia.template import Made, Template, calculate, fetch, link, python, read_file
from benchmarks.offline_gaia.words import GOODS, PLACES, SHIPS, SURNAMES, TOPICS, people, person


def stock(rng: Random, path: str, slug: str) -> Made:
    """The three goods of which least is left, from two sheets; a sheet of last year distracts."""
    goods = rng.sample(GOODS, 12)
    left = rng.sample(range(2, 90), 12)
    sold = [rng.randint(5, 300) for _ in goods]
    rows = list(zip(goods, [a + b for a, b in zip(left, sold, strict=True)], strict=True))
    sales = list(zip(goods, sold, strict=True))
    rng.shuffle(sales)
    old = [(item, rng.randint(5, 300)) for item in goods]
    sheets = {
        "Stock": [("item", "in January"), *rows],
        "Sales last year": [("item", "sold"), *old],
        "Sales": [("item", "sold"), *sales],
    }
    least = [item for _, item in sorted(zip(left, goods, strict=True))[:3]]
    code = f"""
        # skill table: join two sheets and sort
        import openpyxl
        book = openpyxl.load_workbook("{path}")
        stock, sales = (dict(book[name].iter_rows(min_row=2, values_only=True)) for name in ("Stock", "Sales"))
        left = sorted((stock[item] - sales[item], item) for item in stock)
        print("least:", ", ".join(item for _, item in left[:3]))
    """
    return Made(
        question=f"The attached workbook says what the shop of {person(rng)} in {rng.choice(PLACES)} had in "
        "January and what it sold this year. Of which three items are the fewest left? Give them separated by "
        "commas, the fewest first.",
        answer=", ".join(least),
        calls=(
            read_file(path, {"head": r"(in January)"}, part="Stock!A1:B3"),
            read_file(path, {"first": r"\| 2 \| (\w+) \|"}, part="Sales!A1:B3"),
            python(code, least=r"least: (.+)"),
        ),
        final="<<least>>",
        file=("xlsx", documents.xlsx(sheets)),
    )


def talk(rng: Random, path: str, slug: str) -> Made:
    """A speaker's age at the doctorate: the slides name the speaker, the web has the years."""
    speakers, topics = people(rng, 4), rng.sample(TOPICS, 4)
    host, place = f"staff.test/{slug}", rng.randint(0, 3)
    born = [rng.randint(1950, 1985) for _ in speakers]
    doctor = [year + rng.randint(24, 39) for year in born]
    slides = [[f"A day of talks in {rng.choice(PLACES)}", "Programme"]]
    slides += [[f"On {topic}", f"Speaker: {who}"] for who, topic in zip(speakers, topics, strict=True)]
    address = {who: f"http://{host}/{who.split()[1].lower()}.html" for who in speakers}
    pages = {f"{host}/index.html": documents.page("Staff", documents.links(address))}
    for who, year, later in zip(speakers, born, doctor, strict=True):
        told = f"{who} was born in {year}, took up studies in {year + 19} and became a doctor in {later}."
        pages[address[who].removeprefix("http://")] = documents.page(who, told, f"Since {later + 6} on the staff.")
    return Made(
        question=f"The attached slides announce talks. How old did the speaker on {topics[place]} become in "
        f"the year of the doctorate, according to the staff pages at http://{host}/index.html?",
        answer=str(doctor[place] - born[place]),
        calls=(
            read_file(path, {"who": rf"On {topics[place]}\s+Speaker: (\w+ \w+)"}),
            fetch(f"http://{host}/index.html", page=link("<<who>>")),
            fetch("<<page>>", born=r"born in (\d+)", doctor=r"doctor in (\d+)"),
            calculate("<<doctor>> - <<born>>"),
        ),
        final="<<result>>",
        file=("pptx", documents.pptx(slides)),
        pages=pages,
    )


def harbour(rng: Random, path: str, slug: str) -> Made:
    """From a ship to its captain to the captain's home town; an old list distracts."""
    ships, captains, homes = rng.sample(SHIPS, 4), people(rng, 4), rng.sample(PLACES, 4)
    host, place = f"harbour.test/{slug}", rng.randint(0, 3)
    address = {ship: f"http://{host}/ships/{ship.lower()}.html" for ship in ships}
    homepages = {who: f"http://{host}/people/{who.split()[1].lower()}.html" for who in captains}
    former = dict(zip(ships, captains[1:] + captains[:1], strict=True))
    pages = {f"{host}/index.html": documents.page("The harbour", "Ships at anchor:", documents.links(address))}
    for ship, who, home in zip(ships, captains, homes, strict=True):
        told = f"The {ship} is commanded by"
        last = former[ship]
        pages[address[ship].removeprefix("http://")] = documents.page(
            ship,
            f"Until last year the captain of the {ship} was {last}.",
            f'{told} <a href="{homepages[who]}">{who}</a>.',
        )
        pages[homepages[who].removeprefix("http://")] = documents.page(
            who, f"{who} went to school in {rng.choice(PLACES)}.", f"Home town: {home}."
        )
    return Made(
        question=f"The pages of the harbour of {rng.choice(PLACES)} begin at http://{host}/index.html. What is "
        f"the home town of the present captain of the {ships[place]}?",
        answer=homes[place],
        calls=(
            fetch(f"http://{host}/index.html", ship=link(ships[place])),
            fetch("<<ship>>", captain=rf"is commanded by\s+{link('[^]]+')}"),
            fetch("<<captain>>", home=r"Home town: (\w+)"),
        ),
        final="<<home>>",
        pages=pages,
    )


def parcels(rng: Random, path: str, slug: str) -> Made:
    """The weight of all parcels: an archive's note says which table holds, another file in which unit."""
    factor = rng.choice((0.5, 0.25, 1.5, 2.5, 4))
    tables = {name: [(f"P{n:03}", rng.randint(2, 90)) for n in range(30)] for name in ("north", "south", "west")}
    right, wrong = rng.sample(sorted(tables), 2)
    units = sum(weight for _, weight in tables[right])
    members = {f"data/{name}.csv": documents.csv([("parcel", "units"), *rows]) for name, rows in tables.items()}
    note = f"The table {wrong}.csv was withdrawn. The one that holds is {right}.csv; the third is of last year.\n"
    scale = json.dumps({"unit": {"name": "stone weight", "kilograms": factor}, "checked": True}, indent=1)
    members = {"README.txt": note, "scale.json": scale, **members}
    code = f"""
        # skill archive: a table in a zip archive
        import csv, io, zipfile
        with zipfile.ZipFile("{path}") as archive:
            rows = list(csv.DictReader(io.StringIO(archive.read("data/<<table>>").decode())))
        print(f"weight {{sum(int(r['units']) for r in rows) * <<factor>>:g}}")
    """
    return Made(
        question=f"The attached archive holds tables of parcels that {person(rng)} put together in "
        f"{rng.choice(PLACES)}. What do all parcels of the table that holds weigh, in kilograms?",
        answer=f"{units * factor:g}",
        calls=(
            read_file(path, {"listed": r"(README\.txt)"}),
            read_file(f"{path}/<<listed>>", {"table": r"that holds is (\w+\.csv)"}),
            read_file(f"{path}/scale.json", {"factor": r'"kilograms": ([\d.]+)'}),
            python(code, weight=r"weight ([\d.]+)"),
        ),
        final="<<weight>>",
        file=("zip", documents.archive(members)),
    )


def storms(rng: Random, path: str, slug: str) -> Made:
    """Stations with enough stormy days, in order of the alphabet; readings that were marked as bad distract."""
    stations = rng.sample(PLACES, 9)
    least, days = rng.randint(70, 80), rng.randint(4, 6)
    lines, counts = [], dict.fromkeys(stations, 0)
    for station in stations:
        stormy = rng.randint(days - 2, days + 2)
        for n in range(16):
            gust = least + rng.randint(1, 30) if n < stormy else least - rng.randint(1, 40)
            good = n < days - 2 or rng.random() < 0.8
            counts[station] += gust > least and good
            lines.append({"station": station, "day": n + 1, "gust": gust, "quality": "good" if good else "bad"})
    counts[stations[0]], counts[stations[1]] = (_made_sure(lines, s, least, days) for s in stations[:2])
    rng.shuffle(lines)
    stormy_ones = sorted(station for station, count in counts.items() if count >= days)
    code = f"""
        # skill records: count what meets two conditions
        import collections, json
        counts = collections.Counter()
        for line in open("{path}"):
            record = json.loads(line)
            counts[record["station"]] += record["gust"] > {least} and record["quality"] == "good"
        print("stations:", ", ".join(sorted(s for s, n in counts.items() if n >= {days})))
    """
    return Made(
        question=f"The attached records of {person(rng)} hold the strongest gust of each day along the coast "
        f"of {rng.choice(SURNAMES)}shire, in km/h. Which stations had gusts above {least} on at least {days} "
        "days? Readings of bad quality do not count. Give the names in alphabetical order, separated by "
        "commas.",
        answer=", ".join(stormy_ones),
        calls=(read_file(path, {"head": r'("quality")'}), python(code, stations=r"stations: (.+)")),
        final="<<stations>>",
        file=("jsonl", "".join(json.dumps(line) + "\n" for line in lines)),
    )


def catalogue(rng: Random, path: str, slug: str) -> Made:
    """Author and year of the longest book on a topic."""
    topics = rng.sample(TOPICS, 4)
    lengths = rng.sample(range(90, 900), 24)
    books = [(rng.choice(topics), rng.choice(SURNAMES), rng.randint(1900, 2029), length) for length in lengths]
    topic = books[0][0]
    longest = max((book for book in books if book[0] == topic), key=lambda book: book[3])
    inside = "".join(
        f'  <book id="b{n}">\n    <topic>{t}</topic>\n    <author>{a}</author>\n    <year>{y}</year>\n'
        f"    <pages>{p}</pages>\n    <copies>{rng.randint(1, 999)}</copies>\n  </book>\n"
        for n, (t, a, y, p) in enumerate(books)
    )
    code = f"""
        # skill records: the largest of those that meet a condition
        import xml.etree.ElementTree as tree
        books = [b for b in tree.parse("{path}").getroot() if b.findtext("topic") == "{topic}"]
        best = max(books, key=lambda b: int(b.findtext("pages")))
        print(f"book: {{best.findtext('author')}}, {{best.findtext('year')}}")
    """
    return Made(
        question=f"Which book on {topic} in the attached catalogue of the library of {rng.choice(PLACES)} has "
        "the most pages? Give its author and its year, separated by a comma.",
        answer=f"{longest[1]}, {longest[2]}",
        calls=(read_file(path, {"head": r"(<catalogue>)"}), python(code, book=r"book: (.+)")),
        final="<<book>>",
        file=("xml", f'<?xml version="1.0" encoding="UTF-8"?>\n<catalogue>\n{inside}</catalogue>\n'),
    )


def gallery(rng: Random, path: str, slug: str) -> Made:
    """Who painted a picture: a saved page has the list, the page of corrections has the last word."""
    pictures = [f"View of {place}" for place in rng.sample(PLACES, 6)]
    painters = people(rng, 7)
    host, place = f"gallery.test/{slug}", rng.randint(0, 5)
    rooms = rng.sample(range(10, 99), 6)
    listed = [("Room", "Picture", "Painter"), *zip(rooms, pictures, painters[:6], strict=True)]
    where = f"http://{host}/corrections.html"
    saved = documents.page("Catalogue", documents.table(listed), f'See the <a href="{where}">corrections</a>.')
    other = rng.choice([room for n, room in enumerate(rooms) if n != place])
    told = [
        f"Room {rooms[place]}: the picture is by {painters[6]}.",
        f"Room {other}: the frame is of {1700 + other}.",
    ]
    rng.shuffle(told)
    return Made(
        question=f"The attached page was saved from the catalogue of the gallery of {rng.choice(PLACES)}. Who "
        f"painted the picture '{pictures[place]}', with the gallery's corrections taken into account? Give "
        "first name and surname.",
        answer=painters[6],
        calls=(
            read_file(path, {"room": rf"\| (\d+) \| {pictures[place]} \|", "page": link("corrections")}),
            fetch("<<page>>", painter=r"Room <<room>>: the picture is by (\w+ \w+)"),
        ),
        final="<<painter>>",
        file=("html", saved),
        pages={f"{host}/corrections.html": documents.page("Corrections", *told)},
    )


def device(rng: Random, path: str, slug: str) -> Made:
    """Which fuse a device needs: the settings name its model, the maker's pages have the fuse."""
    rooms, host = rng.sample(PLACES, 5), f"maker.test/{slug}"
    models = [f"{rng.choice('KLMNPRT')}{number}" for number in rng.sample(range(200, 999), 5)]
    fuses = [
        f"{rng.choice(('slow', 'quick', 'medium'))} {amount} ampere" for amount in rng.sample(range(2, 40), 5)
    ]
    place = rng.randint(0, 4)
    settings = {
        "version": 3,
        "former": {rooms[place]: {"model": models[place - 1]}},
        "rooms": {
            room: {"model": model, "floor": rng.randint(0, 5)} for room, model in zip(rooms, models, strict=True)
        },
    }
    address = {f"Model {model}": f"http://{host}/{model.lower()}.html" for model in models}
    pages = {f"{host}/index.html": documents.page("Manuals", documents.links(address))}
    for model, fuse in zip(models, fuses, strict=True):
        pages[f"{host}/{model.lower()}.html"] = documents.page(
            f"Model {model}", f"Fuse: {fuse}.", f"Made in {rng.choice(PLACES)} by {person(rng)}."
        )
    code = f"""
        # skill records: a value in nested settings
        import json
        print("model", json.load(open("{path}"))["rooms"]["{rooms[place]}"]["model"])
    """
    return Made(
        question=f"Which fuse does the device of {person(rng)} in the room {rooms[place]} need now? The "
        f"attached settings name its model; the maker's manuals are at http://{host}/index.html. Give the "
        "words of the manual.",
        answer=fuses[place],
        calls=(
            python(code, model=r"model (\w+)"),
            fetch(f"http://{host}/index.html", page=link("Model <<model>>")),
            fetch("<<page>>", fuse=r"Fuse: ([\w ]+)\."),
        ),
        final="<<fuse>>",
        file=("json", json.dumps(settings, indent=1)),
        pages=pages,
    )


def _made_sure(lines: list[dict[str, object]], station: str, least: int, days: int) -> int:
    """Give a station enough good stormy days, so that no answer is empty and each names two."""
    own = [line for line in lines if line["station"] == station][:days]
    for line in own:
        line["gust"], line["quality"] = least + 5 + int(str(line["day"])), "good"
    return sum(
        int(str(line["gust"])) > least and line["quality"] == "good"
        for line in lines
        if line["station"] == station
    )


TEMPLATES = (
    Template("stock", 2, ("table", "sheets"), stock),
    Template("talk", 2, ("pages", "links"), talk),
    Template("harbour", 2, ("links",), harbour),
    Template("parcels", 2, ("archive", "table"), parcels),
    Template("storms", 2, ("records",), storms),
    Template("catalogue", 2, ("records",), catalogue, held_out=True),
    Template("gallery", 2, ("pages", "links"), gallery),
    Template("device", 2, ("records", "links"), device),
)
