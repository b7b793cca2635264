# SPDX-License-Identifier: GPL-2.0-or-later
"""Compare exports with the rows of a tick: the shares of the 50 hottest functions, self and total.

export.py STEM NDJSON [ROWS [EVENT]]    STEM.pb.gz, STEM.speedscope.json, ...; each with a small private reader.
At least ROWS functions are compared. Formats without a file are left out. EVENT is the exported one, default the first;
"cpu-clock + waits" are both, whose shares are computed from the rows of each.
"""
import collections
import gzip
import html.parser
import json
import os
import re
import sys
import xml.etree.ElementTree

NARROWEST = 0.2 / 1180  # of the width of the SVG: boxes below are left out
bad = []
narrow = collections.Counter()  # by function, percent of all in such boxes; the page has them


def fold(stacks):
    """Return {function: (self, total)} in percent of [(frames from the root, weight)]."""
    own, total, whole = collections.Counter(), collections.Counter(), 0
    for frames, weight in stacks:
        whole += weight
        if frames:
            own[frames[-1]] += weight
        for frame in set(frames):
            total[frame] += weight
    return {f: (100 * own[f] / whole, 100 * total[f] / whole) for f in total}


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def fields(data):
    """Yield (number, value) of a protobuf message."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 1:
            yield tag >> 3, int.from_bytes(data[at:at + 8], "little")
            at += 8
            continue
        value, at = varint(data, at)
        if tag & 7 == 2:
            value, at = data[at:at + value], at + value
        yield tag >> 3, value


def numbers(data):
    at = 0
    while at < len(data):
        value, at = varint(data, at)
        yield value


def pprof(path):
    with gzip.open(path) as f:
        message = list(fields(f.read()))
    strings = [v.decode() for n, v in message if n == 6]
    functions, locations = {}, {}
    for n, value in message:
        one = dict(fields(value)) if n == 5 else {}
        if n == 5:
            functions[one[1]] = strings[one[2]]
        if n == 4:
            parts = list(fields(value))
            locations[dict(parts)[1]] = [dict(fields(v))[1] for k, v in parts if k == 4]
    for n, value in message:
        if n != 2:
            continue
        parts = dict(fields(value))
        frames = [functions[f] for at in numbers(parts.get(1, b"")) for f in locations[at]]
        yield frames[::-1], list(numbers(parts[2]))[1]


def otlp(path):
    """The second profile has the weights."""
    with open(path, "rb") as f:
        message = dict(fields(f.read()))
    tables = collections.defaultdict(list)
    for n, value in fields(message[2]):
        tables[n].append(value)
    names = [tables[5][dict(fields(f)).get(1, 0)].decode() for f in tables[3]]
    locations = [[names[dict(fields(v))[1]] for n, v in fields(place) if n == 3] for place in tables[2]]
    stacks = [[f for at in numbers(dict(fields(s)).get(1, b"")) for f in locations[at]] for s in tables[7]]
    profiles = [v for n, v in fields(dict(fields(message[1]))[2]) if n == 2]
    for sample in (dict(fields(v)) for n, v in fields(profiles[1]) if n == 2):
        yield stacks[sample[1]][::-1], next(numbers(sample[4]))


def speedscope(path):
    with open(path, encoding="utf-8") as f:
        root = json.load(f)
    names = [f["name"] for f in root["shared"]["frames"]]
    profile = root["profiles"][root["activeProfileIndex"]]
    if sum(profile["weights"]) != profile["endValue"] or len(root["profiles"]) < 2:
        bad.append(f"{path}: weights or profiles")
    return [([names[i] for i in stack[1:]], w)
            for stack, w in zip(profile["samples"], profile["weights"], strict=True)]


def firefox(path):
    with open(path, encoding="utf-8") as f:
        root = json.load(f)
    shared = root["shared"]
    stack, frame, func = shared["stackTable"], shared["frameTable"], shared["funcTable"]
    for thread in root["threads"]:
        for at, weight in zip(thread["samples"]["stack"], thread["samples"]["weight"], strict=True):
            frames = []
            while at is not None:
                frames.append(shared["stringArray"][func["name"][frame["func"][stack["frame"][at]]]])
                at = stack["prefix"][at]
            yield frames[::-1], weight


def folded(path):
    with open(path, encoding="utf-8") as f:
        for line in f:
            frames, weight = re.fullmatch(r"(.*) (\d+)\n", line).groups()
            yield [re.sub(r"_\[[kji]\]$", "", f) for f in frames.split(";")[1:]], int(weight)


class Page(html.parser.HTMLParser):
    """The data of the page, and the addresses it would fetch."""

    def __init__(self):
        super().__init__()
        self.data, self.inside, self.scripts = "", False, 0

    def handle_starttag(self, tag, attrs):
        self.scripts += tag == "script"
        self.inside = dict(attrs).get("id") == "data"
        for name, value in attrs:
            if name in ("src", "href") and not value.startswith("data:"):
                bad.append(f"the page has a reference to {value}")

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.data += data


def page(path):
    reader = Page()
    with open(path, encoding="utf-8") as f:
        reader.feed(f.read())
    data = json.loads(reader.data)
    if reader.scripts != 2 or data["all"] <= 0:
        bad.append(f"{path}: {reader.scripts} scripts")
    rows = {}
    for i, own, total in data["rows"]:
        name = data["names"][i]
        a, b = rows.get(name, (0, 0))
        rows[name] = (a + 100 * own / data["all"], b + 100 * total / data["all"])
    # The tree has the same self weights as the rows.
    tree, path_, own = data["tree"], [], []
    for depth, key, total in zip(tree["depth"], tree["key"], tree["total"], strict=True):
        del path_[depth:]
        own.append(total)
        if depth:
            own[path_[-1]] -= total
        path_.append(len(own) - 1)
    sums = collections.Counter()
    for key, total, weight in zip(tree["key"], tree["total"], own):
        if 0 <= key < len(data["names"]):
            sums[data["names"][key]] += 100 * weight / data["all"]
            if total / tree["total"][0] < NARROWEST:
                narrow[data["names"][key]] += 100 * weight / data["all"]
    for name, (self_, _) in rows.items():
        if abs(sums[name] - self_) > 0.01:
            bad.append(f"{path}: {name}: {sums[name]} in the tree, {self_} in the table")
    return rows


def svg(path):
    """Only self weights of boxes: the totals of a recursive function are not in a picture.

    Return {name: (share, boxes)}; the share of each box is rounded to 0.01.
    """
    rows, boxes = collections.Counter(), collections.Counter()
    for title in xml.etree.ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}title"):
        found = re.fullmatch(r"(.*) \(.*\) [\d.]+%, self ([\d.]+)%", title.text)
        if found:
            rows[found[1]] += float(found[2])
            boxes[found[1]] += 1
    return {name: (share, boxes[name]) for name, share in rows.items()}


def text(path):
    rows, table = {}, ""
    with open(path, encoding="utf-8") as f:
        for line in f:
            # Several tables have titles.
            table = line.strip() if line[0] not in " !" else table
            if table in TITLES and table != EVENT:
                continue
            found = re.match(r" +([\d.]+) +([\d.]+) +\d+ (\S) (.*?)  +\S", line)
            if found:
                rows[found[4]] = (float(found[1]), float(found[2]))
    return rows


def by_name(rows):
    """The same name in two modules would need the stacks: it is left out."""
    names = collections.Counter(row["symbol"] for row in rows)
    return {r["symbol"]: (r["self_pct"], r["total_pct"]) for r in rows if names[r["symbol"]] == 1}


def ndjson(path):
    """Return the rows of EVENT by name: of a file with both events, or of the sum of two."""
    with open(path, encoding="utf-8") as f:
        tick = json.loads(f.readline())
    events = EVENT.split(" + ") if EVENT else [tick["events"][0]["name"]]
    summed = [row for row in tick["rows"] if row.get("with_waits")]
    if len(events) == 1 or summed:
        return by_name(summed or [row for row in tick["rows"] if row["event"] == events[0]])
    rows, whole = collections.defaultdict(lambda: (0, 0)), sum(e["count"] for e in tick["events"])
    for event in tick["events"]:
        for name, (own, total) in by_name([r for r in tick["rows"] if r["event"] == event["name"]]).items():
            share = event["count"] / whole
            rows[name] = rows[name][0] + own * share, rows[name][1] + total * share
    return dict(sorted(rows.items(), key=lambda row: -row[1][0]))


EVENT = sys.argv[4] if len(sys.argv) > 4 else ""
TITLES = ["cpu-clock", "waits", "cpu-clock + waits"]
READERS = {
    "pb.gz": lambda path: fold(pprof(path)),
    "otlp.pb": lambda path: fold(otlp(path)),
    "speedscope.json": lambda path: fold(speedscope(path)),
    "firefox.json": lambda path: fold(firefox(path)),
    "folded": lambda path: fold(folded(path)),
    "html": page,
    "txt": text,
    "json": ndjson,
}


def main():
    stem, ticks = sys.argv[1:3]
    wanted = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    rows = list(ndjson(ticks).items())[:50]
    got = {name: read(f"{stem}.{name}") for name, read in READERS.items() if os.path.exists(f"{stem}.{name}")}
    boxes = svg(f"{stem}.svg") if os.path.exists(f"{stem}.svg") else {}
    if boxes:
        got["svg"] = {name: (boxes.get(name, (0,))[0] + narrow[name], None) for name in {*boxes, *narrow}}
    if len(rows) < wanted or not got:
        bad.append(f"{len(rows)} rows only, {len(got)} formats")
    for name, shares in got.items():
        for symbol, (self_pct, total_pct) in rows:
            own, total = shares.get(symbol.replace(";", ":"), (0, 0))
            rounded = 1 + boxes.get(symbol.replace(";", ":"), (0, 0))[1] / 2 if name == "svg" else 1
            if abs(own - self_pct) > 0.01 * rounded + 0.001 or \
                    (total is not None and abs(total - total_pct) > 0.011):
                bad.append(f"{stem}.{name}: {symbol}: {own}, {total}; the screen has {self_pct}, {total_pct}")
    print(f"{len(rows)} functions in {len(got)} formats")
    for line in bad:
        print("wrong:", line)
    sys.exit(bool(bad))


main()
