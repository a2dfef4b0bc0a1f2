"""Templates of level 1: one attachment, one or two tools."""

from __future__ import annotations

from random import Random

from benchmarks.offline_gaia import documents
from benchmarks.offline_gaia.template import READ_QR, READ_TONES, Made, Template, calculate, python, read_file
from benchmarks.offline_gaia.words import GOODS, MONTHS, PLACES, TOPICS, people, person


def ledger(rng: Random, path: str, slug: str) -> Made:
    """Sum what was paid to one person in one month; near names, other months and cancelled rows distract."""
    who, *others = (name.split()[1] for name in people(rng, 4))
    month = rng.randint(1, 12)
    called = MONTHS[month - 1]
    payees = [who, who, *others, f"{who}s"]
    rows = [
        (
            f"2031-{_near(rng, month):02}-{rng.randint(1, 28):02}",
            payee,
            f"{rng.randint(5, 400)}.{rng.randint(0, 99):02}",
        )
        for payee in rng.choices(payees, k=46)
    ]
    rows += [(f"2031-{month:02}-{day:02}", who, f"{10 * day}.{day:02}") for day in rng.sample(range(3, 28), 2)]
    rng.shuffle(rows)
    lines = [("date", "payee", "amount", "status")]
    lines += [(*row, "cancelled" if rng.random() < 0.2 else "paid") for row in rows]
    cents = sum(
        round(100 * float(amount))
        for day, payee, amount, status in lines[1:]
        if (payee, status) == (who, "paid") and day[5:7] == f"{month:02}"
    )
    code = f"""
        # skill table: add up the rows of a table that count
        import csv
        with open("{path}") as file:
            rows = list(csv.DictReader(file))
        kept = [r for r in rows if r["payee"] == "{who}" and r["date"][5:7] == "{month:02}" and r["status"] == "paid"]
        print(f"total {{sum(round(100 * float(r['amount'])) for r in kept) / 100:.2f}}")
    """
    return Made(
        question=f"The attached ledger lists payments in euros. How much was paid to {who} in {called} 2031 in "
        "all? Cancelled payments do not count. Give the number with two decimals.",
        answer=f"{cents / 100:.2f}",
        calls=(read_file(path, {"head": r"(date,payee,amount,status)"}), python(code, total=r"total ([\d.]+)")),
        final="<<total>>",
        file=("csv", documents.csv(lines)),
    )


def letter(rng: Random, path: str, slug: str) -> Made:
    """Whole goods that arrived, from the numbers of a letter; those of an earlier order distract."""
    goods = rng.choice(GOODS)
    crates, each, broken = rng.randint(11, 39), rng.randint(12, 48), rng.randint(3, 11)
    writer, reader = people(rng, 2)
    paragraphs = [
        f"Dear {reader},",
        f"Last year you sent us {rng.randint(40, 60)} crates of {goods}, and all went well.",
        f"This time {crates} crates arrived in {rng.choice(PLACES)}, with {each} {goods} in each of them.",
        f"When we opened them, {broken} {goods} were broken. Please send a credit note for these.",
        f"Yours, {writer}",
    ]
    return Made(
        question=f"According to the attached letter from {writer} to {reader}, how many {goods} of this year's "
        "delivery arrived whole?",
        answer=str(crates * each - broken),
        calls=(
            read_file(
                path,
                {
                    "crates": r"This time (\d+) crates",
                    "each": r"with (\d+) \w+ in each",
                    "broken": r"(\d+) \w+ were broken",
                },
            ),
            calculate("<<crates>> * <<each>> - <<broken>>"),
        ),
        final="<<result>>",
        file=("docx", documents.docx(paragraphs)),
    )


def minutes(rng: Random, path: str, slug: str) -> Made:
    """Who seconded a motion: the first page says where it is; the other motions distract."""
    topics = rng.sample(TOPICS, 4)
    names = people(rng, 8)
    place, town = rng.randint(0, 3), rng.choice(PLACES)
    first = [f"Minutes of the council of {town}", "Contents:"]
    first += [f"Motion on the {topic}: page {n + 2}" for n, topic in enumerate(topics)]
    pages = [first]
    for n, topic in enumerate(topics):
        mover, seconder = names[2 * n], names[2 * n + 1]
        votes = f"It was carried with {rng.randint(9, 20)} votes to {rng.randint(1, 8)}."
        pages.append([f"Motion on the {topic}", f"Moved by: {mover}", f"Seconded by: {seconder}", votes])
    return Made(
        question=f"In the attached minutes of the council of {town}, who seconded the motion on the "
        f"{topics[place]}? Give first name and surname.",
        answer=names[2 * place + 1],
        calls=(
            read_file(path, {"page": rf"Motion on the {topics[place]}: page (\d+)"}, part="1"),
            read_file(path, {"name": r"Seconded by: (\w+ \w+)"}, part="<<page>>"),
        ),
        final="<<name>>",
        file=("pdf", documents.pdf(pages)),
    )


def badge(rng: Random, path: str, slug: str) -> Made:
    """Pieces behind a label: its picture holds a QR code."""
    boxes, each, shelf = rng.randint(13, 64), rng.randint(12, 72), rng.randint(1, 99)
    text = f"SHELF {shelf}; BOXES {boxes}; EACH {each}; GOODS {rng.choice(GOODS).upper()}"
    return Made(
        question=f"{person(rng)} photographed the QR code of a label in the store of {rng.choice(PLACES)}; the "
        "picture is attached. How many pieces does the label stand for in all, that is boxes times pieces in "
        "each?",
        answer=str(boxes * each),
        calls=(
            python(READ_QR.replace("{path}", path), boxes=r"BOXES (\d+)", each=r"EACH (\d+)"),
            calculate("<<boxes>> * <<each>>"),
        ),
        final="<<result>>",
        file=("png", documents.qr(text)),
    )


def dialled(rng: Random, path: str, slug: str) -> Made:
    """The digits of a recorded call, backwards."""
    digits = "".join(rng.choices("123456789", k=8))
    return Made(
        question=f"{person(rng)} of {rng.choice(PLACES)} made a call about {rng.choice(TOPICS)}, and the "
        "attached recording holds the tones of the telephone's keys. Which number was dialled? Give its "
        "digits in reverse order, without spaces.",
        answer=digits[::-1],
        calls=(
            python(READ_TONES.replace("{path}", path), digits=r"^(\d+)\s*$"),
            python('print("reversed", "<<digits>>"[::-1])', reversed=r"reversed (\d+)"),
        ),
        final="<<reversed>>",
        file=("wav", documents.tones(digits)),
    )


def program(rng: Random, path: str, slug: str) -> Made:
    """What a program prints when one of its numbers is another."""
    start, factor, most = rng.randint(3, 19), rng.choice((3, 5, 7, 11)), rng.randint(40, 90)
    other = most + rng.randint(17, 160)
    code = (
        f'"""Counts the steps of a walk."""\n\nSTART = {start}\nLIMIT = {most}\nFACTOR = {factor}\n\n\n'
        "def walk(place: int) -> int:\n    steps = 0\n    while steps < LIMIT:\n        steps += 1\n"
        "        place = place // 2 if place % 2 == 0 else place * FACTOR + 1\n        place %= 100_003\n"
        "    return place\n\n\nprint(walk(START))\n"
    )
    place = start
    for _ in range(other):
        place = (place // 2 if place % 2 == 0 else place * factor + 1) % 100_003
    run = f"""
        # skill program: run it with another number
        source = open("{path}").read().replace("LIMIT = <<limit>>", "LIMIT = {other}")
        exec(compile(source, "program", "exec"), {{"__name__": "__main__"}})
    """
    return Made(
        question=f"{person(rng)} wrote the attached program to count {rng.choice(GOODS)} in "
        f"{rng.choice(PLACES)}. What would it print if its LIMIT were {other}?",
        answer=str(place),
        calls=(read_file(path, {"limit": r"LIMIT = (\d+)"}), python(run, said=r"^(\d+)")),
        final="<<said>>",
        file=("py", code),
    )


def _near(rng: Random, month: int) -> int:
    return rng.choice((month, month, month % 12 + 1, (month - 2) % 12 + 1))


TEMPLATES = (
    Template("ledger", 1, ("table",), ledger),
    Template("letter", 1, ("numbers",), letter),
    Template("minutes", 1, ("pages",), minutes),
    Template("badge", 1, ("qr", "numbers"), badge),
    Template("dialled", 1, ("tones",), dialled),
    Template("program", 1, ("program",), program, held_out=True),
)
