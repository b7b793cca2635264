# SPDX-License-Identifier: GPL-2.0-or-later
"""proftop --listen against many clients; see serve.sh."""
import concurrent.futures
import gzip
import http.client
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import time

from screen import Terminal

PROFTOP, PROGRAMS = os.path.join(os.environ["B"], "proftop"), os.environ["PROGRAMS"]
bad = []


def wrong(condition, message):
    if condition:
        bad.append(message)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


PORT = free_port()


def get(path, method="GET", headers=None, body=None, timeout=30):
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=timeout)
    connection.request(method, path, body=body, headers=headers or {})
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    return answer.status, dict(answer.getheaders()), data


def wait_until_ready():
    for _ in range(200):
        try:
            if get("/metrics")[0] == 200:
                return
        except OSError:
            pass
        time.sleep(0.05)
    sys.exit("wrong: no answer")


def check_prometheus(text, openmetrics):
    """Prometheus' parsers of python3-prometheus-client, which only the system's Python has."""
    for module, metrics in (("prometheus_client.parser", text), ("prometheus_client.openmetrics.parser", openmetrics)):
        done = subprocess.run(["/usr/bin/python3", "-c", f"import sys\ntry: from {module} import "
                               "text_string_to_metric_families as parse\nexcept ImportError: sys.exit(77)\n"
                               "print(len([m for m in parse(sys.stdin.read()) if m.samples]))"],
                              input=metrics, capture_output=True, text=True, check=False)
        wrong(done.returncode not in (0, 77) or (done.returncode == 0 and int(done.stdout) < 10), f"{module}: {done}")


def wait_until_named():
    """On a busy machine the program may get no sample, and no name, in a second."""
    for _ in range(200):
        if b"burn" in get("/flame")[2]:
            return
        time.sleep(0.1)
    wrong(True, "/flame: no burn() of spin")


def check_answers(spin):
    wait_until_named()
    message = b""
    for _ in range(20):
        status, headers, data = get(f"/debug/pprof/profile?seconds=1&pid={spin.pid}")
        if status == 404:
            continue
        message = gzip.decompress(data) if status == 200 else b""
        if b"burn" in message:
            break
    wrong(status != 200 or headers.get("Content-Type") != "application/octet-stream", f"profile: {status} {headers}")
    wrong(b"burn" not in message or b"spin" not in message, "profile: no burn() of spin")
    # Of this process alone: one label pid.
    wrong(b"\x03pid" not in message or b"[kernel.kallsyms]_text" in message, "profile: labels")
    wrong(get("/debug/pprof/profile?seconds=1&pid=1999999999")[0] != 404, "pid without samples")
    status, headers, data = get("/flame")
    wrong(status != 200 or b"burn" not in data or b"</html>" not in data, f"flame: {status}")
    status, headers, data = get("/metrics")
    wrong(not re.search(rb'^proftop_samples_total\{outcome="complete"\} [1-9]', data, re.M), f"metrics: {data}")
    requests = [int(re.search(rb"^proftop_http_requests_total (\d+)", data, re.M).group(1))]
    for path in ["/flame"] * 3 + ["/metrics"]:
        data = get(path)[2]
    requests.append(int(re.search(rb"^proftop_http_requests_total (\d+)", data, re.M).group(1)))
    wrong(requests[1] - requests[0] != 4, f"requests: {requests}")  # the first of /metrics is one of them
    status, headers, data = get("/metrics", headers={"Accept": "application/openmetrics-text"})
    wrong(not data.endswith(b"# EOF\n") or "openmetrics" not in headers["Content-Type"], "openmetrics")
    if shutil.which("promtool"):
        done = subprocess.run(["promtool", "check", "metrics"], input=get("/metrics")[2], capture_output=True, check=False)
        wrong(done.returncode or done.stdout or done.stderr, f"promtool: {done}")
    check_prometheus(get("/metrics")[2].decode(), data.decode())
    for path, method, headers, body, want in (
            ("/debug/pprof/profile?seconds=0", "GET", {}, None, 400),
            ("/debug/pprof/profile?seconds=" + "9" * 4000, "GET", {}, None, 400),
            ("/debug/pprof/allocs", "GET", {}, None, 404), ("/" + "a" * 40000, "GET", {}, None, None),
            ("/healthz", "POST", {}, "x" * 100, 405), ("/healthz", "GET", {}, "x" * 100000, 413),
            ("/healthz", "DELETE", {}, None, 405), ("/flame", "GET", {"Host": "evil.example"}, None, 403),
            ("/healthz", "GET", {"X": "y" * 60000}, None, None), ("/%ff%0d%0a", "GET", {}, None, 404),
            # libmicrohttpd 1.0 has a look at it first.
            ("/x%00", "GET", {}, None, None)):
        try:
            status = get(path, method, headers, body)[0]
        except (OSError, http.client.HTTPException):
            status = None
        wrong(status != want and (want or (status and status < 400)), f"{method} {path[:60]}: {status}, not {want}")


def check_crowd():
    """20 clients at the same time; one profile of a second at a time; 200 requests one after another."""
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        paths = ["/debug/pprof/profile?seconds=1"] * 5 + ["/metrics", "/flame", "/healthz"] * 5
        codes = list(pool.map(lambda p: get(p)[0], paths))
    nr = codes[:5].count(200)
    wrong(set(codes[:5]) != {200, 429} or nr > time.monotonic() - began, f"profiles at the same time: {codes[:5]}")
    wrong(set(codes[5:]) != {200}, f"others at the same time: {codes[5:]}")
    wrong(any(get("/healthz")[0] != 200 for _ in range(200)), "200 in a row")


def check_rude_clients():
    rude = []
    for text in (b"GET /flame HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /flame HT", b"", b"\0" * 1000,
                 b"GET /debug/pprof/profile?seconds=1 HTTP/1.1\r\nHost: localhost\r\n\r\n"):
        s = socket.create_connection(("127.0.0.1", PORT))
        s.sendall(text)
        rude.append(s)
    # The last one leaves while its profile is collected; the others neither read nor write.
    time.sleep(0.2)
    rude.pop().close()
    wrong(get("/healthz", timeout=5)[0] != 200, "a stalled client stops the others")
    for _ in range(40):
        status = get("/debug/pprof/profile?seconds=1")[0]
        if status == 200:
            break
        time.sleep(0.1)
    wrong(status != 200, "no profile after a client left")
    for s in rude:
        s.close()


def answered(sockets, seconds):
    """Return the sockets with an answer within that time; a closed one has none."""
    found, end = [], time.monotonic() + seconds
    while len(found) < len(sockets) and time.monotonic() < end:
        ready = select.select([s for s in sockets if s not in found], [], [], max(0, end - time.monotonic()))[0]
        for s in ready:
            try:
                has = s.recv(4096).startswith(b"HTTP/1.1 200")
            except OSError:
                has = False
            if has:
                found.append(s)
            else:
                sockets = [other for other in sockets if other is not s]
    return found


def check_limit():
    """64 connections: of 70 the last ones have no answer until others are closed."""
    time.sleep(0.5)  # those of earlier clients end
    sockets = [socket.create_connection(("127.0.0.1", PORT)) for _ in range(70)]
    for s in sockets:
        s.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    served = answered(sockets, 4)
    wrong(not 60 <= len(served) <= 64, f"{len(served)} of 70 connections are answered")
    waits = [s for s in sockets if s not in served]
    for s in served:
        s.close()
    wrong(get("/healthz", timeout=8)[0] != 200, "no answer after connections were closed")
    for s in waits:
        s.close()


def check_screen():
    """Beside the screen: a profile of the next second, and the screen goes on."""
    global PORT
    PORT = free_port()
    t = Terminal(f"{PROFTOP} --listen {PORT}", 100, 30)
    try:
        t.wait_for("burn", 20)
        for _ in range(20):
            status, _, data = get("/debug/pprof/profile?seconds=1")
            if status != 200 or b"burn" in gzip.decompress(data):
                break
        wrong(status != 200 or b"burn" not in gzip.decompress(data), f"beside the screen: {status}")
        wrong(b"burn" not in get("/flame")[2] or b"proftop_push" in get("/metrics")[2], "beside the screen: /flame, /metrics")
        wrong("burn" not in t.screen() or "Functions" not in t.screen(), f"the screen: {t.screen()}")
    finally:
        t.close()


def check_other_sites():
    """A page of another site may link to a page; what it loads by itself is refused."""
    for headers, want in (("Sec-Fetch-Site: cross-site", 403), ("Sec-Fetch-Site: same-site", 403),
                          ("Sec-Fetch-Site: cross-site\r\nSec-Fetch-Dest: iframe", 403),
                          ("Sec-Fetch-Site: cross-site\r\nSec-Fetch-Dest: document", 200),
                          ("Sec-Fetch-Site: none", 200), ("Sec-Fetch-Site: same-origin", 200)):
        with socket.create_connection(("127.0.0.1", PORT), 20) as s:
            s.sendall(f"GET /healthz HTTP/1.1\r\nHost: localhost\r\n{headers}\r\nConnection: close\r\n\r\n".encode())
            answer = s.recv(4096)
        wrong(not answer.startswith(b"HTTP/1.1 %d" % want), f"{headers}: {answer[:40]}, want {want}")


def check_client_left():
    """A client that leaves does not keep others from their profiles."""
    with socket.create_connection(("127.0.0.1", PORT), 20) as s:
        s.sendall(b"GET /debug/pprof/profile?seconds=300 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        time.sleep(0.3)
        wrong(get("/debug/pprof/profile?seconds=1")[0] != 429, "two profiles at a time")
    end = time.monotonic() + 20
    while (status := get("/debug/pprof/profile?seconds=1")[0]) == 429 and time.monotonic() < end:
        time.sleep(0.2)
    wrong(status != 200, f"after a client that left: {status}")


def check_rate():
    """Requests do not lower the rate, however much CPU time their answers take."""
    global PORT
    PORT = free_port()
    served = subprocess.Popen([PROFTOP, "-b", "-d", "0.5", "--rows=1", "--format=ndjson", "-F", "99", "--max-overhead=15", "--listen",
                               str(PORT)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        wait_until_ready()
        pid = subprocess.Popen([os.path.join(PROGRAMS, "spin")])
        end = time.monotonic() + 6
        while time.monotonic() < end:
            get(f"/flame?pid={pid.pid}")
        pid.kill()
        served.send_signal(signal.SIGINT)
        ticks = [json.loads(line) for line in served.communicate(timeout=20)[0].splitlines()]
        # The start may lower it.
        costs, factors = zip(*[(tick["self"]["cpu_pct"], tick["rate_factor"]) for tick in ticks[3:]])
        print(f"requests: {max(costs):.0f} % of a CPU, rate {factors[0]} to {factors[-1]} of the requested one")
        # More than the limit, or it is no test.
        wrong(max(costs) > 20 and factors[-1] < factors[0] / 4, f"requests lower the rate: {factors}")
    finally:
        served.kill()
        served.communicate()


def check_time():
    """The pages and profiles have the samples of --time, as files of --export have."""
    global PORT
    for kind, want, unit in ("wait", b", waits,", b"wait"), ("all", b", cpu-clock + waits,", b"wall"):
        PORT = free_port()
        served = subprocess.Popen([PROFTOP, "-b", "-d", "0.5", "--rows=1", f"--time={kind}", "--listen", str(PORT)],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            wait_until_ready()
            page = get("/flame")[2]
            wrong(want not in page, f"--time={kind}: {re.findall(rb'<title>[^<]*', page)}")
            status, _, data = get("/debug/pprof/profile?seconds=1")
            wrong(status != 200 or unit not in gzip.decompress(data), f"--time={kind}: profile {status}")
        finally:
            served.kill()
            served.communicate()


def main():
    spin = subprocess.Popen([os.path.join(PROGRAMS, "spin")])
    served = subprocess.Popen([PROFTOP, "-b", "-d", "0.5", "--rows=1", "--listen", str(PORT)],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        wait_until_ready()
        check_answers(spin)
        check_crowd()
        check_rude_clients()
        check_other_sites()
        check_client_left()
        check_limit()
        busy = subprocess.run([PROFTOP, "-b", "-n", "1", "--listen", f"127.0.0.1:{PORT}"], capture_output=True,
                              text=True, check=False, timeout=30)
        wrong(busy.returncode != 1 or "in use" not in busy.stderr, f"a port in use: {busy}")
        # It ends while a client waits for its profile.
        waits = socket.create_connection(("127.0.0.1", PORT))
        waits.sendall(b"GET /debug/pprof/profile?seconds=60 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        time.sleep(0.3)
        served.send_signal(signal.SIGINT)
        out, err = served.communicate(timeout=20)
        wrong(served.returncode != 130 or err, f"the end: {served.returncode} {err}")
        # Requests cause no ticks of their own: in the mean each is as long as requested.
        ticks = [float(t) for t in re.findall(r"^proftop .* tick ([\d.]+) s", out, re.M)][1:-1]
        wrong(len(ticks) < 3 or sum(ticks) < 0.45 * len(ticks), f"ticks: {ticks}")
        check_screen()
        check_time()
        check_rate()
    finally:
        spin.kill()
        served.kill()
    for line in bad:
        print("wrong:", line)
    sys.exit(bool(bad))


main()
