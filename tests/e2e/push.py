# SPDX-License-Identifier: GPL-2.0-or-later
"""proftop --push against servers of all kinds; see push.sh."""
import base64
import gzip
import http.server
import json
import os
import re
import socket
import ssl
import struct
import subprocess
import sys
import threading
import urllib.parse

PROFTOP, PROGRAMS, TMP = os.path.join(os.environ["B"], "proftop"), os.environ["PROGRAMS"], os.environ["TMP"]
bad = []


def wrong(condition, message):
    if condition:
        bad.append(message)


def fields(data):
    """Yield (number, value) of the fields of a protobuf message."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 1:
            at += 8
            continue
        value = varint()
        if key & 7 == 2:
            at += value
            value = data[at - value:at]
        yield key >> 3, value


def samples_of(pprof):
    """Return the number of samples in a profile, and its strings."""
    total, strings = 0, []
    for number, value in fields(gzip.decompress(pprof)):
        if number == 2:
            packed = next(v for n, v in fields(value) if n == 2)
            # The first value: as a message of one varint field.
            total += next(v for _, v in fields(b"\x08" + packed))
        elif number == 6:
            strings.append(value.decode())
    return total, strings


class Handler(http.server.BaseHTTPRequestHandler):
    """Answer as the next word of the server's plan says, 200 when it is used up."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        plan = self.server.plan.pop(0) if self.server.plan else "200"
        self.server.seen.append((plan, self.path, dict(self.headers), body))
        if plan == "hang":
            self.server.hung.wait(20)
        elif plan == "cut":
            self.send_response(200)
            self.send_header("Content-Length", "10")
            self.end_headers()
            self.close_connection = True
        elif plan == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True
        else:
            self.send_response(int(plan))
            if plan == "302":
                self.send_header("Location", "file:///etc/passwd")
            if plan == "307":
                self.send_header("Location", f"http://127.0.0.1:{self.server.server_port}/ingest")
            answer = self.server.answer if plan != "200" else b""
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

    def log_message(self, *args):
        pass


def serve(plan, certificate=None):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *args: None
    server.plan, server.seen, server.hung = plan, [], threading.Event()
    server.answer = b"no \x1b[31mway\n" + b"x" * 100000
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def push(url, *options, ticks=1):
    """Return exit code, ticks, and delivered and dropped profiles and samples as the last line says. A tick without
    samples has no profile: on a loaded machine it is taken again."""
    for _ in range(9):
        done = subprocess.run([PROFTOP, "-b", "-n", str(ticks), "-d", "0.15", "--format=ndjson", "--rows=0", "--push",
                               url, *options], capture_output=True, text=True, timeout=200, check=False)
        said = re.search(r"pushed (\d+) profiles, (\d+) samples(?:; dropped (\d+) profiles, (\d+) samples)?",
                         done.stderr)
        if not said:
            sys.exit(f"wrong: {url}: {done}")
        if any(int(n or 0) for n in said.groups()):
            break
    wrong("\x1b" in done.stderr or done.stderr.count("\n") > 2, f"messages: {done.stderr}")
    return done, [json.loads(line) for line in done.stdout.splitlines()], [int(n or 0) for n in said.groups()]


def check_answers():
    """All kinds of failures: refused ones are dropped, others repeated; the account is complete."""
    plan = ["500", "200", "429", "cut", "reset", "302", "413", "400", "503", "307", "408"]
    server = serve(list(plan))
    headers = os.path.join(TMP, "headers")
    with open(headers, "w", encoding="ascii") as f:
        f.write("# a comment\n\nX-Scope-OrgID: team\r\n")
    done, ticks, said = push(f"http://127.0.0.1:{server.server_port}/prefix/ingest", "--push-headers", headers,
                             "--push-label", "region=eu 1", "--push-label", "service_name=shop", ticks=8)
    # The status decides, also if the rest of the answer does not come.
    got = [entry for entry in server.seen if entry[0] in ("200", "cut")]
    counts = [samples_of(body)[0] for _, _, _, body in got]
    taken = sum(round(row["self"]) for tick in ticks for row in tick["rows"])
    wrong([entry[0] for entry in server.seen][:len(plan)] != plan, f"order of answers: {[e[0] for e in server.seen]}")
    wrong(said[:2] != [len(got), sum(counts)], f"delivered: {said}, got {len(got)} with {sum(counts)}")
    wrong(said[2] != 4 or done.returncode != 1, f"dropped: {said}, exit {done.returncode}")
    wrong(said[0] + said[2] != 8 or said[1] + said[3] != taken, f"the account: {said} of 8 with {taken}")
    again = {"500", "429", "reset", "503", "408"}
    ends = [body for plan, _, _, body in server.seen if plan not in again]
    wrong({body for plan, _, _, body in server.seen if plan in again} - set(ends), "a failed profile was not repeated")
    wrong(len(set(ends)) != len(ends), "a profile was delivered or refused twice")
    path, got_headers, body = got[0][1:]
    query = urllib.parse.parse_qs(urllib.parse.urlsplit(path).query)
    host = re.sub(r"[^ -~]|[{}=,\"]", "_", socket.gethostname())
    wrong(query["name"] != [f"shop{{region=eu 1,host={host}}}"] or query["format"] != ["pprof"]
          or int(query["from"][0]) >= int(query["until"][0]), f"query: {query}")
    wrong(got_headers.get("X-Scope-OrgID") != "team" or "Expect" in got_headers, f"headers: {got_headers}")
    wrong(not any("burn" in samples_of(body)[1] for _, _, _, body in got), "no burn() in the profiles")
    wrong(any("passwd" in path or not path.startswith("/prefix/ingest?") for _, path, _, _ in server.seen), "a redirect")
    last = ticks[-1]["push"]
    wrong(last["taken"]["profiles"] != 8 or not last["retries"], f"push in NDJSON: {last}")
    notice = [n for tick in ticks for n in tick["notices"] if n["key"] == "push"]
    wrong(not any("status" in n["text"] for n in notice), f"notices: {notice}")


def check_message():
    """Of an answer with control bytes 200 clean bytes are in the messages."""
    server = serve(["400"] * 99)
    server.answer = b"no \x1b[31m\x07way\x9b" + b"x" * 100000
    # On a busy machine the answer comes later.
    for nr in (2, 8, 32):
        done, ticks, _ = push(f"http://127.0.0.1:{server.server_port}/ingest", ticks=nr)
        if ticks[-1]["push"]["error"]:
            break
    texts = [done.stderr.rstrip("\n"), ticks[-1]["push"]["error"]]
    texts += [n["text"] for tick in ticks for n in tick["notices"] if n["key"] == "push"]
    wrong(len(texts) < 3, f"notices: {str(ticks)[:400]}")
    for text in texts:
        kept = re.search("status 400: (no \u00b7\\[31m\u00b7way\u00b7x{100,200}\u2026?)$", text)
        wrong(not kept or len(kept[1].encode()) > 200, f"a message: {text!r}")


def check_hang():
    """At the end there is a last chance; then all are dropped and counted."""
    server = serve(["hang"] * 9)
    done, _, said = push(f"http://127.0.0.1:{server.server_port}/ingest", "--push-timeout", "0.2", ticks=2)
    server.hung.set()
    wrong(said[0] or said[2] != 2 or not said[3] or done.returncode != 1, f"a server that hangs: {said}")
    wrong("imeout" not in done.stderr, f"a server that hangs: {done.stderr}")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        done, _, said = push(f"http://127.0.0.1:{s.getsockname()[1]}/ingest", "--push-timeout", "0.2")
    wrong(said[0] or said[2] != 1, f"no server: {done.stderr}")


def check_parca():
    """Parca by TLS: refused without the certificate, delivered with it. libcurl writes no file of keys."""
    os.environ["SSLKEYLOGFILE"] = keys = os.path.join(TMP, "keys")
    both = os.path.join(TMP, "both.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                    both, "-out", both + ".crt", "-days", "2", "-subj", "/CN=localhost", "-addext",
                    "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    with open(both, "a", encoding="ascii") as f, open(both + ".crt", encoding="ascii") as crt:
        f.write(crt.read())
    server = serve([], both)
    url = f"https://127.0.0.1:{server.server_port}/profiles/writeraw"
    # The last try may be out of time, on a busy machine.
    for timeout in ("1.5", "6", "24"):
        done, _, said = push(url, "--push-timeout", timeout)
        if "imeout" not in done.stderr:
            break
    wrong(said[0] or server.seen or not re.search("certificate|SSL", done.stderr), f"unknown certificate: {done.stderr}")
    done, ticks, said = push(url, "--push-ca", both + ".crt", "--push-label", "job=x")
    wrong(done.returncode or said[0] != 1 or len(server.seen) != 1, f"TLS: {done.stderr}")
    wrong(os.path.exists(keys), "SSLKEYLOGFILE: a file of keys was made")
    message = json.loads(server.seen[0][3])["series"][0]
    labels = {label["name"]: label["value"] for label in message["labels"]["labels"]}
    count, strings = samples_of(base64.b64decode(message["samples"][0]["rawProfile"], validate=True))
    wrong(labels["__name__"] != "process_cpu" or labels["job"] != "x" or labels["service_name"] != "proftop",
          f"labels: {labels}")
    wrong(count != said[1] or "burn" not in strings, f"{count} samples, {said}")


def check_otlp():
    """OpenTelemetry: a compressed request; the profile of the number of samples has all of them."""
    # On a busy machine one tick may end before the program is read.
    for _ in range(4):
        server = serve(["503"])
        done, _, said = push(f"http://127.0.0.1:{server.server_port}/v1development/profiles", "--push-label", "host.name=h")
        _, path, headers, body = server.seen[-1]
        if b"burn" in gzip.decompress(body):
            break
    wrong(done.returncode or said[0] != 1 or len(server.seen) != 2, f"OTLP: {done.stderr}")
    wrong(path != "/v1development/profiles" or headers["Content-Type"] != "application/x-protobuf"
          or headers["Content-Encoding"] != "gzip" or headers["OTLP-Profiles-Development-Version"] != "1", f"OTLP: {path} {headers}")
    profiles, dictionary = (dict(fields(gzip.decompress(body)))[n] for n in (1, 2))
    strings = [v.decode() for n, v in fields(dictionary) if n == 5]
    first = next(v for n, v in fields(dict(fields(profiles))[2]) if n == 2)
    count = sum(next(v for _, v in fields(b"\x08" + dict(fields(s))[4])) for n, s in fields(first) if n == 2)
    wrong(count != said[1] or "burn" not in strings, f"OTLP: {count} samples, {said}")
    labels = [tuple(v for _, v in fields(pair)) for _, pair in fields(dict(fields(profiles))[1])]
    wrong((b"host.name", b"\n\x01h") not in labels or (b"service.name", b"\n\x07proftop") not in labels,
          f"OTLP: {labels}")


def main():
    # Nobody listens there: a server of this machine is asked without a proxy.
    os.environ["http_proxy"] = "http://127.0.0.1:1"
    spin = subprocess.Popen([os.path.join(PROGRAMS, "spin")])
    try:
        for check in (check_answers, check_message, check_hang, check_parca, check_otlp):
            check()
    finally:
        spin.kill()
    for line in bad:
        print("wrong:", line)
    sys.exit(bool(bad))


main()
