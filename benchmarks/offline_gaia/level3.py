"""Templates of level 3: several skills one after the other, over files and pages."""

from __future__ import annotations

from random import Random

from benchmarks.offline_gaia import documents
from benchmarks.offline_gaia.template import (
    READ_QR,
    READ_TONES,
    Made,
    Template,
    calculate,
    fetch,
    link,
    python,
    read_file,
    search,
)
from benchmarks.offline_gaia.words import GOODS, PLACES, SURNAMES, TOPICS, people, person


def customs(rng: Random, path: str, slug: str) -> Made:
    """The duty on a load: a picture in an archive leads to a page of rates, the archive's table has the "
    "values.
    """
    goods = rng.sample(GOODS, 8)
    values = [rng.randint(20, 900) for _ in goods]
    rate, free = rng.randint(4, 19), rng.randint(100, 300)
    host = f"customs.test/{slug}"
    codes = rng.sample(range(1000, 9999), 3)
    pages = {}
    for n, code in enumerate(codes):
        percent, limit = (rate, free) if n == 0 else (rng.randint(4, 19), rng.randint(100, 300))
        pages[f"{host}/rates/{code}.html"] = documents.page(
            f"Rate {code}",
            f"The duty is {percent} percent of the value of each item.",
            f"Items with a value below {limit} euros are free of duty.",
        )
    cents = sum(value * rate for value in values if value >= free)
    members = {
        "label.png": documents.qr(f"http://{host}/rates/{codes[0]}.html"),
        "load.csv": documents.csv([("item", "value"), *zip(goods, values, strict=True)]),
        "old/load.csv": documents.csv([("item", "value"), *((item, rng.randint(20, 900)) for item in goods)]),
    }
    unpack = f'    import zipfile\n    zipfile.ZipFile("{path}").extract("label.png")\n'
    code = f"""
        # skill archive: a table in a zip archive
        import csv, io, zipfile
        with zipfile.ZipFile("{path}") as archive:
            rows = list(csv.DictReader(io.StringIO(archive.read("load.csv").decode())))
        cents = sum(int(r["value"]) * <<rate>> for r in rows if int(r["value"]) >= <<free>>)
        print(f"duty {{cents / 100:.2f}}")
    """
    return Made(
        question=f"{person(rng)} brings a load to {rng.choice(PLACES)}. The attached archive holds its list "
        "and the picture of a QR code, which leads to the rate of duty that applies. How much duty is due for "
        "the load as it is now, in euros with two decimals?",
        answer=f"{cents / 100:.2f}",
        calls=(
            read_file(path, {"listed": r"(label\.png)"}),
            python("\n" + unpack + READ_QR.lstrip("\n").replace("{path}", "label.png"), page=r"(http\S+)"),
            fetch("<<page>>", rate=r"duty is (\d+) percent", free=r"below (\d+) euros"),
            python(code, duty=r"duty ([\d.]+)"),
        ),
        final="<<duty>>",
        file=("zip", documents.archive(members)),
        pages=pages,
    )


def hotline(rng: Random, path: str, slug: str) -> Made:
    """Who is on duty: tones give an extension, the directory its office, the office's roster in PDF the names."""
    offices, numbers = rng.sample(TOPICS, 5), rng.sample(range(1111, 9999), 5)
    digits = [str(number).replace("0", "7") for number in numbers]
    place, day = rng.randint(0, 4), rng.choice(("Monday", "Tuesday", "Wednesday", "Thursday", "Friday"))
    host = f"office.test/{slug}"
    rows: list[tuple[str, str]] = [("Extension", "Office"), *zip(digits, offices, strict=True)]
    address = {f"Office of {office}": f"http://{host}/{office}.html" for office in offices}
    pages: dict[str, str | bytes] = {
        f"{host}/index.html": documents.page("Directory", documents.table(rows), documents.links(address))
    }
    answer = ""
    for n, office in enumerate(offices):
        roster = [["Roster of the office", f"Office of {office}"]]
        for weekday in ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday"):
            two = sorted(rng.sample(SURNAMES, 2))
            answer = ", ".join(two) if (n, weekday) == (place, day) else answer
            roster.append([weekday, f"On duty: {two[0]} and {two[1]}"])
        pages[f"{host}/{office}-roster.pdf"] = documents.pdf(roster)
        pages[f"{host}/{office}.html"] = documents.page(
            f"Office of {office}", documents.links({"roster": f"http://{host}/{office}-roster.pdf"})
        )
    return Made(
        question=f"In the attached recording {person(rng)} dials an extension from {rng.choice(PLACES)}. The "
        f"directory of extensions is at http://{host}/index.html. Which two persons of that office are on duty "
        f"on {day}? Give their surnames in alphabetical order, separated by a comma.",
        answer=answer,
        calls=(
            python(READ_TONES.replace("{path}", path), digits=r"^(\d+)\s*$"),
            fetch(f"http://{host}/index.html", office=r"\| <<digits>> \| (\w+) \|"),
            fetch(f"http://{host}/<<office>>.html", roster=link("roster")),
            fetch("<<roster>>", one=rf"{day}\s+On duty: (\w+) and", two=rf"{day}\s+On duty: \w+ and (\w+)"),
        ),
        final="<<one>>, <<two>>",
        file=("wav", documents.tones(digits[place])),
        pages=pages,
    )


def audit(rng: Random, path: str, slug: str) -> Made:
    """The sum of invoices in two currencies at the rates of a day; rates of other days distract."""
    day = f"2031-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
    crowns, talers = (rng.randint(11, 99) for _ in range(2))
    host = f"bank.test/{slug}"
    rows = [(f"I{n:02}", rng.choice(("crown", "taler", "euro")), rng.randint(10, 990)) for n in range(1, 25)]
    dispute = {row[0] for row in rng.sample(rows, 4)}
    pages = {
        f"{host}/index.html": documents.page(
            "Rates",
            documents.links({name: f"http://{host}/{name}.html" for name in ("crown", "taler")}),
        )
    }
    for name, rate in (("crown", crowns), ("taler", talers)):
        others = [
            (f"2030-{day[5:]}", rng.randint(11, 99)),
            (f"2031-{int(day[5:7]) % 12 + 1:02}-11", rng.randint(11, 99)),
        ]
        told = [("Day", "Euro cents"), others[0], (day, rate), others[1]]
        pages[f"{host}/{name}.html"] = documents.page(f"Rate of the {name}", documents.table(told))
    worth = {"crown": crowns, "taler": talers, "euro": 100}
    cents = sum(amount * worth[currency] for id, currency, amount in rows if id not in dispute)
    sheets = {
        "Invoices": [("invoice", "currency", "amount"), *rows],
        "Disputed": [("invoice",), *((id,) for id in sorted(dispute))],
    }
    code = f"""
        # skill table: two sheets, and rates from elsewhere
        import openpyxl
        book = openpyxl.load_workbook("{path}")
        rates = {{"crown": <<crown>>, "taler": <<taler>>, "euro": 100}}
        disputed = {{row[0] for row in book["Disputed"].iter_rows(min_row=2, values_only=True)}}
        rows = [r for r in book["Invoices"].iter_rows(min_row=2, values_only=True) if r[0] not in disputed]
        print("cents", sum(amount * rates[currency] for _, currency, amount in rows))
    """
    return Made(
        question=f"What are the invoices of {person(rng)} in the attached workbook worth in euros, at the "
        f"rates of {day} that the pages at http://{host}/index.html give? Leave out those that are disputed. "
        "Give the number with two decimals.",
        answer=f"{cents / 100:.2f}",
        calls=(
            read_file(path, {"sheet": r'Sheet "(Disputed)"'}),
            fetch(f"http://{host}/index.html", crowns=link("crown"), talers=link("taler")),
            fetch("<<crowns>>", crown=rf"\| {day} \| (\d+) \|"),
            fetch("<<talers>>", taler=rf"\| {day} \| (\d+) \|"),
            python(code, cents=r"cents (\d+)"),
            calculate("<<cents>> / 100"),
        ),
        final="<<result>>",
        file=("xlsx", documents.xlsx(sheets)),
        pages=pages,
    )


def relay(rng: Random, path: str, slug: str) -> Made:
    """Towns above a number of inhabitants in a district that must be found first by searching."""
    district = f"{rng.choice(SURNAMES)}shire"
    towns, host = rng.sample(PLACES, 5), f"almanac.test/{slug}"
    sizes = rng.sample(range(800, 9900), 5)
    least = sorted(sizes)[rng.randint(1, 2)]
    mayors = people(rng, 5)
    address = {town: f"http://{host}/{town.lower()}.html" for town in towns}
    pages = {
        f"{host}/district.html": documents.page(
            f"The district of {district} ({slug})", f"Its {len(towns)} towns are:", documents.links(address)
        )
    }
    for town, size, mayor in zip(towns, sizes, mayors, strict=True):
        former = f"A hundred years ago it had {rng.randint(300, 9900)} inhabitants."
        now = f"Today {town} has {size} inhabitants."
        pages[f"{host}/{town.lower()}.html"] = documents.page(town, former, now, f"Mayor: {mayor}.")
    order = sorted((size, town) for size, town in zip(sizes, towns, strict=True) if size >= least)
    found = {f"page{n}": link(town) for n, town in enumerate(towns)}
    visits = tuple(fetch(f"<<page{n}>>", **{f"size{n}": r"has (\d+) inhabitants"}) for n in range(len(towns)))
    pairs = ", ".join(f'(<<size{n}>>, "{town}")' for n, town in enumerate(towns))
    code = f"""
        # skill numbers: sort what was read
        towns = sorted(pair for pair in [{pairs}] if pair[0] >= {least})
        print("towns:", ", ".join(name for _, name in towns))
    """
    return Made(
        question=f"The almanac has a page about the district of {district} ({slug}). Which towns of the "
        f"district have at least {least} inhabitants today? Give their names separated by commas, the smallest "
        "first.",
        answer=", ".join(town for _, town in order),
        calls=(
            search(f"district of {district} {slug}", place=rf"(http://almanac\.test/{slug}/district\.html)"),
            fetch("<<place>>", **found),
            *visits,
            python(code, towns=r"towns: (.+)"),
        ),
        final="<<towns>>",
        pages=pages,
    )


TEMPLATES = (
    Template("customs", 3, ("archive", "qr", "links", "table"), customs),
    Template("hotline", 3, ("tones", "links", "pages"), hotline),
    Template("audit", 3, ("table", "sheets", "links"), audit),
    Template("relay", 3, ("search", "links", "numbers"), relay, held_out=True),
)
