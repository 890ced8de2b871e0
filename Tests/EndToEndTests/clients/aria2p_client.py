"""Drives all of aria2p 0.12.3 that is not BitTorrent against a server that speaks aria2's protocol.

aria2p_client.py [--aria2c] [--keep-going] PORT TOKEN FOLDER

FOLDER is the folder of the server's downloads. Prints a line `ok NAME` for each step, and ends with status 1 and a
message at the first one that fails. With `--aria2c` the steps are left out in which the daemon differs from it on
purpose: what this script asserts is checked against aria2c in the same way. With `--keep-going` later steps follow one
that fails. The last step ends the server.
"""

import base64
import hashlib
import json
import re
import sys
import threading
import time
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import aria2p
import requests
import websocket
from aria2p import Client, ClientException
from loguru import logger

LIMIT = 60
SIZE = 600_000
HEAD = 200_000


def content(name, size=SIZE):
    """The bytes of a file: they differ for each name."""
    digest = hashlib.sha256(name.encode()).digest()
    return (digest * (size // len(digest) + 1))[:size]


class Web(BaseHTTPRequestHandler):
    """`/ok/NAME` is a file, `/held/NAME` stops in the middle of it until it is released, the rest is missing."""

    protocol_version = "HTTP/1.1"
    released = threading.Event()
    requests = []

    def do_GET(self):
        Web.requests.append((self.path, dict(self.headers)))
        kind, _, name = self.path.lstrip("/").partition("/")
        if kind not in ("ok", "held"):
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body = content(name)
        # All clients ask for the rest of the file, with and without its last byte.
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        start = int(asked[1]) if asked else 0
        self.send_response(206 if asked else 200)
        self.send_header("Content-Length", str(len(body) - start))
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", '"%s"' % hashlib.sha1(body).hexdigest())
        if asked:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        self.end_headers()
        try:
            if kind == "held" and not Web.released.is_set():
                self.wfile.write(body[start : max(start, HEAD)])
                self.wfile.flush()
                Web.released.wait()
                self.wfile.write(body[max(start, HEAD) :])
            else:
                self.wfile.write(body[start:])
        except OSError:
            self.close_connection = True

    do_HEAD = do_GET

    def log_message(self, *arguments):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 256
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass


def until(what, condition):
    """Waits until a condition holds, and returns what it returned."""
    end = time.monotonic() + LIMIT
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"{what} has not come in {LIMIT} seconds")
        time.sleep(0.02)


def same(actual, expected, what=""):
    assert actual == expected, f"{what}: {actual!r} instead of {expected!r}"


def fails(call, message, code=1):
    """A call that the server refuses."""
    try:
        result = call()
    except ClientException as error:
        same((error.code, error.message), (code, message), "error")
        return
    raise AssertionError(f"the result {result!r} instead of the error “{message}”")


class Run:
    def __init__(self, port, token, folder, is_aria2c):
        self.client = Client("http://127.0.0.1", port, token)
        self.api = aria2p.API(self.client)
        self.port, self.token, self.folder, self.is_aria2c = port, token, Path(folder), is_aria2c
        self.web = Server(("127.0.0.1", 0), Web)
        threading.Thread(target=self.web.serve_forever, daemon=True).start()
        self.count = 0

    def url(self, path):
        return f"http://127.0.0.1:{self.web.server_port}/{path}"

    def name(self, prefix="f"):
        self.count += 1
        return f"{prefix}{self.count}"

    def add(self, kind="ok", options=None, position=None):
        """Adds a download; returns its GID and the name of its file."""
        name = self.name()
        return self.client.add_uri([self.url(f"{kind}/{name}")], options, position), name

    def paused(self, **options):
        return self.add("ok", {"pause": "true", **options})

    def status(self, gid):
        return self.client.tell_status(gid)["status"]

    def wait(self, gid, *states):
        return until(
            f"{gid} in {states}, which is {self.client.tell_status(gid)}", lambda: self.status(gid) in states
        )

    def received(self, gid):
        """Waits until an active download has the first bytes of a held file."""
        until(f"the bytes of {gid}", lambda: int(self.client.tell_status(gid)["completedLength"]) > 0)

    def waiting(self):
        return [download["gid"] for download in self.client.tell_waiting(0, 1000, ["gid"])]

    def clear(self):
        """Removes all downloads."""
        client = self.client
        for download in client.tell_active() + client.tell_waiting(0, 1000):
            try:
                client.force_remove(download["gid"])
            except ClientException as error:
                # It has ended in the meantime.
                assert error.message.startswith("Active Download not found"), error
        until("the end of all", lambda: not client.tell_active() and not client.tell_waiting(0, 10))
        client.purge_download_result()
        # An aria2c keeps a removed download for a moment.
        until("an empty list", lambda: client.purge_download_result() and not client.tell_stopped(0, 10))


STEPS = []


def step(function=None, *, ours=False, theirs=False):
    """A step; `ours` are those that aria2c does not pass, `theirs` those that the daemon does not."""
    if function is None:
        return lambda function: step(function, ours=ours, theirs=theirs)
    STEPS.append((function.__name__, function, ours, theirs))
    return function


# MARK: The client


@step
def get_version(run):
    version = run.client.get_version()
    same(version["version"].split(".")[0], "1")
    assert "HTTPS" in version["enabledFeatures"] and "Metalink" in version["enabledFeatures"], version
    assert run.is_aria2c or "BitTorrent" not in version["enabledFeatures"], version


@step
def get_session_info(run):
    session = run.client.get_session_info()
    assert len(session["sessionId"]) == 40, session
    same(run.client.get_session_info(), session)


@step
def list_methods(run):
    methods = run.client.list_methods()
    torrent = {"aria2.addTorrent", "aria2.getPeers"}
    same(set(Client.METHODS) - torrent - set(methods), set(), "methods that are missing")
    assert run.is_aria2c or not torrent & set(methods), methods


@step
def list_notifications(run):
    wanted = {f"aria2.onDownload{name}" for name in ("Start", "Pause", "Stop", "Complete", "Error")}
    same(wanted - set(run.client.list_notifications()), set())


@step
def wrong_tokens(run):
    fails(Client("http://127.0.0.1", run.port, "wrong").get_version, "Unauthorized")
    fails(Client("http://127.0.0.1", run.port).get_version, "Unauthorized")
    fails(lambda: Client("http://127.0.0.1", run.port, "wrong").add_uri([run.url("ok/x")]), "Unauthorized")


@step
def methods_of_system_need_no_token(run):
    assert Client("http://127.0.0.1", run.port).list_methods() == run.client.list_methods()
    # The calls in it do.
    calls = [{"methodName": "aria2.getVersion", "params": []}]
    results = Client("http://127.0.0.1", run.port, "wrong").multicall(calls)
    same(results, [{"code": 1, "message": "Unauthorized"}])


@step
def add_uri(run):
    gid, name = run.add()
    assert len(gid) == 16, gid
    run.wait(gid, "complete")
    same((run.folder / name).read_bytes(), content(name), "the file")
    status = run.client.tell_status(gid)
    same(status["totalLength"], str(SIZE))
    same(status["completedLength"], str(SIZE))
    same(status["errorCode"], "0")
    same(status["dir"], str(run.folder))
    same(status["files"][0]["path"], str(run.folder / name))


@step
def add_uri_with_options(run):
    folder = run.folder / "sub"
    gid = run.client.add_uri(
        [run.url("ok/x")],
        {
            "dir": str(folder),
            "out": "another name.bin",
            "header": ["X-One: 1", "X-Two: 2"],
            "user-agent": "Agent/1",
            "referer": "http://referer.example/",
            "gid": "00000000deadbeef",
        },
    )
    same(gid, "00000000deadbeef")
    run.wait(gid, "complete")
    same((folder / "another name.bin").read_bytes(), content("x"), "the file")
    fields = [fields for path, fields in Web.requests if path == "/ok/x"][-1]
    same(fields.get("X-One"), "1")
    same(fields.get("X-Two"), "2")
    same(fields.get("User-Agent"), "Agent/1")
    same(fields.get("Referer"), "http://referer.example/")


@step
def add_uri_refusals(run):
    fails(lambda: run.client.add_uri([]), "URI is not provided.")
    fails(lambda: run.client.add_uri([run.url("ok/x")], {}, -1), "Position must be greater than or equal to 0.")
    fails(
        lambda: run.client.call("aria2.addUri", ["text"]), "The parameter at 0 has wrong type."
    )
    fails(lambda: run.client.call("aria2.addUri", []), "The parameter at 0 is required but missing.")


@step
def add_uri_with_mirrors(run):
    gid = run.client.add_uri([run.url("missing/m"), run.url("ok/m")], {"out": "mirrored"})
    run.wait(gid, "complete")
    same((run.folder / "mirrored").read_bytes(), content("m"), "the file")


@step
def add_uri_at_a_position(run):
    run.clear()
    first, _ = run.paused()
    second, _ = run.paused()
    third, _ = run.add("ok", {"pause": "true"}, 0)
    fourth, _ = run.add("ok", {"pause": "true"}, 1)
    fifth, _ = run.add("ok", {"pause": "true"}, 99)
    same(run.waiting(), [third, fourth, first, second, fifth])


METALINK = """<?xml version="1.0" encoding="UTF-8"?>
<metalink xmlns="urn:ietf:params:xml:ns:metalink">
  <file name="{name}-a"><size>{size}</size><hash type="sha-256">{a}</hash><url>{url}/{name}-a</url></file>
  <file name="{name}-b"><size>{size}</size><hash type="sha-256">{b}</hash><url>{url}/{name}-b</url></file>
</metalink>
"""


def metalink(run, name):
    a, b = (hashlib.sha256(content(f"{name}-{suffix}")).hexdigest() for suffix in "ab")
    return METALINK.format(name=name, size=SIZE, a=a, b=b, url=run.url("ok"))


@step
def add_metalink(run):
    text = base64.b64encode(metalink(run, "metalink").encode()).decode()
    gids = run.client.add_metalink(text, {"dir": str(run.folder / "metalink")})
    same(len(gids), 2)
    for gid, suffix in zip(gids, "ab"):
        run.wait(gid, "complete")
        name = f"metalink-{suffix}"
        same((run.folder / "metalink" / name).read_bytes(), content(name), "the file")


@step
def remove(run):
    gid, _ = run.add("held")
    run.wait(gid, "active")
    run.received(gid)
    same(run.client.remove(gid), gid)
    run.wait(gid, "removed")
    status = run.client.tell_status(gid)
    same(status["errorCode"], "31")
    fails(lambda: run.client.remove(gid), f"Active Download not found for GID#{gid}")
    fails(lambda: run.client.remove("0123456789abcdef"), "GID 0123456789abcdef is not found")
    fails(lambda: run.client.remove("xyz"), "Invalid GID xyz")


@step
def force_remove(run):
    gid, _ = run.paused()
    same(run.client.force_remove(gid), gid)
    if run.is_aria2c:
        # It forgets a download that has not begun, against its manual.
        return fails(lambda: run.client.tell_status(gid), f"GID {gid} is not found")
    run.wait(gid, "removed")
    fails(lambda: run.client.force_remove(gid), f"Active Download not found for GID#{gid}")


@step
def pause(run):
    gid, name = run.add("held")
    run.received(gid)
    same(run.client.pause(gid), gid)
    run.wait(gid, "paused")
    fails(lambda: run.client.pause(gid), f"GID#{gid} cannot be paused now")
    same(run.client.unpause(gid), gid)
    run.wait(gid, "active")
    run.client.force_remove(gid)
    run.wait(gid, "removed")
    fails(lambda: run.client.pause(gid), f"GID#{gid} cannot be paused now")
    fails(lambda: run.client.unpause(gid), f"GID#{gid} cannot be unpaused now")


@step
def force_pause(run):
    gid, _ = run.add("held")
    run.received(gid)
    same(run.client.force_pause(gid), gid)
    run.wait(gid, "paused")
    fails(lambda: run.client.force_pause(gid), f"GID#{gid} cannot be paused now")
    run.client.force_remove(gid)


@step
def pause_all(run):
    run.clear()
    held = [run.add("held")[0] for _ in range(3)]
    for gid in held:
        run.received(gid)
    same(run.client.pause_all(), "OK")
    for gid in held:
        run.wait(gid, "paused")
    same(run.client.pause_all(), "OK", "there is none to pause")


@step
def unpause(run):
    gid = run.waiting()[0]
    same(run.client.unpause(gid), gid)
    run.wait(gid, "active")
    fails(lambda: run.client.unpause(gid), f"GID#{gid} cannot be unpaused now")


@step
def unpause_all(run):
    same(run.client.unpause_all(), "OK")
    until("three active ones", lambda: len(run.client.tell_active()) == 3)
    same(run.waiting(), [])


@step
def force_pause_all(run):
    same(run.client.force_pause_all(), "OK")
    until("three paused ones", lambda: [one["status"] for one in run.client.tell_waiting(0, 9)] == ["paused"] * 3)


@step
def tell_status(run):
    gid, name = run.paused()
    status = run.client.tell_status(gid)
    same(status["gid"], gid)
    same(status["status"], "paused")
    for key in ("totalLength", "completedLength", "uploadLength", "downloadSpeed", "uploadSpeed", "connections"):
        same(status[key], "0", key)
    for key in ("numPieces", "pieceLength"):
        assert status[key].isdigit(), status
    same(status["files"][0]["uris"][0]["uri"], run.url(f"ok/{name}"))
    same(run.client.tell_status(gid, ["gid", "status"]), {"gid": gid, "status": "paused"})
    same(run.client.tell_status(gid, ["none"]), {})
    same(run.client.tell_status(gid[:12], ["gid"]), {"gid": gid}, "the beginning of a GID")
    fails(lambda: run.client.tell_status("0123456789abcdef"), "GID 0123456789abcdef is not found")
    fails(lambda: run.client.tell_status("no GID"), "Invalid GID no GID")
    fails(lambda: run.client.call("aria2.tellStatus", []), "The parameter at 0 is required but missing.")
    fails(lambda: run.client.call("aria2.tellStatus", [1]), "The parameter at 0 has wrong type.")


@step
def get_uris(run):
    urls = [run.url("ok/uri"), run.url("ok/uri2")]
    gid = run.client.add_uri(urls, {"pause": "true"})
    same([one["uri"] for one in run.client.get_uris(gid)], urls)
    same([one["status"] for one in run.client.get_uris(gid)], ["waiting", "waiting"])


@step
def get_files(run):
    gid, name = run.add()
    run.wait(gid, "complete")
    files = run.client.get_files(gid)
    same(len(files), 1)
    file = files[0]
    same((file["index"], file["selected"]), ("1", "true"))
    same((file["length"], file["completedLength"]), (str(SIZE), str(SIZE)))
    same(file["path"], str(run.folder / name))
    assert run.url(f"ok/{name}") in [one["uri"] for one in file["uris"]], file


@step
def get_servers(run):
    gid, _ = run.paused()
    fails(lambda: run.client.get_servers(gid), f"No active download for GID#{gid}")
    active, name = run.add("held")
    run.received(active)
    servers = run.client.get_servers(active)
    same(servers[0]["index"], "1")
    server = servers[0]["servers"][0]
    same(server["uri"], run.url(f"held/{name}"))
    same(server["currentUri"], run.url(f"held/{name}"))
    assert server["downloadSpeed"].isdigit(), server
    run.client.force_remove(active)


@step
def tell_active(run):
    run.clear()
    same(run.client.tell_active(), [])
    gid, name = run.add("held")
    run.received(gid)
    active = run.client.tell_active()
    same([one["gid"] for one in active], [gid])
    same(active[0]["status"], "active")
    same(active[0]["totalLength"], str(SIZE))
    assert int(active[0]["connections"]) >= 1, active
    same(run.client.tell_active(["status"]), [{"status": "active"}])
    same(active[0]["files"][0]["path"], str(run.folder / name), "the path of an active download")
    run.client.force_remove(gid)


@step
def tell_waiting(run):
    run.clear()
    gids = [run.paused()[0] for _ in range(5)]

    def told(offset, count):
        return [gids.index(one["gid"]) for one in run.client.tell_waiting(offset, count, ["gid"])]

    same(told(0, 5), [0, 1, 2, 3, 4])
    same(told(1, 2), [1, 2])
    same(told(4, 10), [4])
    same(told(5, 1), [])
    same(told(0, 0), [])
    same(told(-1, 2), [4, 3], "from the end, backwards")
    same(told(-5, 5), [0])
    same(told(-6, 5), [])
    fails(lambda: run.client.call("aria2.tellWaiting", [0]), "The parameter at 1 is required but missing.")


@step
def tell_stopped(run):
    run.clear()
    gids = []
    for _ in range(4):
        gid, _ = run.add()
        run.wait(gid, "complete")
        gids.append(gid)

    def told(offset, count):
        return [gids.index(one["gid"]) for one in run.client.tell_stopped(offset, count, ["gid"])]

    same(told(0, 10), [0, 1, 2, 3])
    same(told(1, 2), [1, 2])
    same(told(-1, 10), [3, 2, 1, 0])
    same(told(-2, 1), [2])
    same(told(9, 1), [])


@step
def failed_downloads(run):
    gid, _ = run.add("missing")
    run.wait(gid, "error")
    status = run.client.tell_status(gid)
    same(status["errorCode"], "3", status)
    assert status["errorMessage"], status


@step
def change_position(run):
    run.clear()
    a, b, c, d = (run.paused()[0] for _ in range(4))
    move = run.client.change_position
    same(move(d, 0, "POS_SET"), 0)
    same(run.waiting(), [d, a, b, c])
    same(move(d, 99, "POS_SET"), 3)
    same(run.waiting(), [a, b, c, d])
    same(move(c, -1, "POS_CUR"), 1)
    same(run.waiting(), [a, c, b, d])
    same(move(c, -9, "POS_CUR"), 0)
    same(move(c, 2, "POS_CUR"), 2)
    same(run.waiting(), [a, b, c, d])
    same(move(a, 0, "POS_END"), 3)
    same(run.waiting(), [b, c, d, a])
    same(move(b, -1, "POS_END"), 2)
    same(run.waiting(), [c, d, b, a])
    same(move(c, 0, "POS_SET"), 0, "where it is")
    fails(lambda: move(a, 0, "POS_NONE"), "Illegal argument.")
    gone = "0123456789abcdef"
    fails(lambda: move(gone, 0, "POS_SET"), f"GID {gone} is not found")
    active, _ = run.add("held")
    run.received(active)
    fails(lambda: move(active, 0, "POS_SET"), f"GID#{active} not found in the waiting queue.")
    run.client.force_remove(active)


@step
def change_uri(run):
    first, second, third = (run.url(f"ok/uri-{name}") for name in "abc")
    gid = run.client.add_uri([first], {"pause": "true"})
    uris = lambda: [one["uri"] for one in run.client.get_uris(gid)]
    same(run.client.change_uri(gid, 1, [], [second, third]), [0, 2])
    same(uris(), [first, second, third])
    same(run.client.change_uri(gid, 1, [second, run.url("none")], []), [1, 0])
    same(uris(), [first, third])
    same(run.client.change_uri(gid, 1, [first], [second], 0), [1, 1])
    same(uris(), [second, third])
    fails(lambda: run.client.change_uri(gid, 2, [], []), "fileIndex is out of range")
    run.client.unpause(gid)
    run.wait(gid, "complete")


@step
def get_option(run):
    given = {"pause": "true", "header": ["A: 1", "B: 2"], "max-tries": "7", "split": "2", "out": "o.bin"}
    gid, _ = run.add("ok", given)
    options = run.client.get_option(gid)
    same(options["dir"], str(run.folder))
    same(options["header"], "A: 1\nB: 2\n")
    same(options["max-tries"], "7")
    same(options["split"], "2")
    same(options["out"], "o.bin")
    same(options["max-download-limit"], "0")
    assert all(isinstance(value, str) for value in options.values()), options
    fails(lambda: run.client.get_option("0123456789abcdef"), "GID 0123456789abcdef is not found")


@step
def change_option(run):
    gid, name = run.paused()
    folder = run.folder / "changed"
    same(
        run.client.change_option(gid, {"dir": str(folder), "out": "changed.bin", "header": "X-Changed: 1"}), "OK"
    )
    same(run.client.change_option(gid, {"max-download-limit": "1M"}), "OK")
    options = run.client.get_option(gid)
    same(options["out"], "changed.bin")
    same(options["max-download-limit"], str(1 << 20))
    same(options["header"], "X-Changed: 1\n")
    fails(
        lambda: run.client.change_option(gid, {"max-download-limit": "x"}),
        "We encountered a problem while processing the option '--max-download-limit'.",
    )
    run.client.unpause(gid)
    run.wait(gid, "complete")
    same((folder / "changed.bin").read_bytes(), content(name), "the file")
    same([fields for path, fields in Web.requests if path == f"/ok/{name}"][-1].get("X-Changed"), "1")
    fails(lambda: run.client.change_option(gid, {"split": "2"}), f"Cannot change option for GID#{gid}")


@step
def get_global_option(run):
    options = run.client.get_global_option()
    same(options["dir"], str(run.folder))
    same(options["max-concurrent-downloads"], "5")
    assert all(isinstance(value, str) for value in options.values()), options


@step
def change_global_option(run):
    run.clear()
    folder = run.folder / "global"
    changes = {"max-concurrent-downloads": "2", "dir": str(folder), "max-overall-download-limit": "100M"}
    same(run.client.change_global_option(changes), "OK")
    options = run.client.get_global_option()
    same(options["max-concurrent-downloads"], "2")
    same(options["max-overall-download-limit"], str(100 << 20))
    same(options["dir"], str(folder))
    gids = [run.add("held")[0] for _ in range(4)]
    until("two active ones", lambda: len(run.client.tell_active()) == 2)
    same(run.waiting(), gids[2:])
    fails(
        lambda: run.client.change_global_option({"max-concurrent-downloads": "x"}),
        "We encountered a problem while processing the option '--max-concurrent-downloads'.",
    )
    same(run.client.change_global_option({"max-concurrent-downloads": "5"}), "OK")
    until("four active ones", lambda: len(run.client.tell_active()) == 4)
    run.clear()
    gid, name = run.add()
    run.wait(gid, "complete")
    same((folder / name).read_bytes(), content(name), "the file")
    run.client.change_global_option({"dir": str(run.folder), "max-overall-download-limit": "0"})


@step
def get_global_stat(run):
    run.clear()
    held, _ = run.add("held")
    run.received(held)
    for _ in range(2):
        run.paused()
    done, _ = run.add()
    run.wait(done, "complete")
    stat = run.client.get_global_stat()
    same((stat["numActive"], stat["numWaiting"], stat["numStopped"]), ("1", "2", "1"))
    assert stat["downloadSpeed"].isdigit() and stat["uploadSpeed"] == "0", stat
    assert int(stat["numStoppedTotal"]) >= 1, stat


@step
def purge_download_result(run):
    same(run.client.purge_download_result(), "OK")
    same(run.client.tell_stopped(0, 10), [])
    same(len(run.waiting()), 2, "the others stay")


@step
def remove_download_result(run):
    gid, name = run.add()
    run.wait(gid, "complete")
    same(run.client.remove_download_result(gid), "OK")
    fails(lambda: run.client.tell_status(gid), f"GID {gid} is not found")
    assert (run.folder / name).exists(), "the file stays"
    paused = run.waiting()[0]
    fails(lambda: run.client.remove_download_result(paused), f"Could not remove download result of GID#{paused}")
    fails(lambda: run.client.remove_download_result(gid), f"GID {gid} is not found")


@step
def multicall(run):
    results = run.client.multicall(
        [
            {"methodName": "aria2.getVersion", "params": []},
            {"methodName": "aria2.tellStatus", "params": ["0123456789abcdef"]},
            {"methodName": "system.listMethods", "params": []},
            {"methodName": "aria2.none", "params": []},
            {"methodName": "system.multicall", "params": [[]]},
        ]
    )
    same(len(results), 5)
    same(results[0], [run.client.get_version()])
    same(results[1], {"code": 1, "message": "GID 0123456789abcdef is not found"})
    same(results[2], [run.client.list_methods()])
    same(results[3], {"code": 1, "message": "No such method: aria2.none"})
    same(results[4], {"code": 1, "message": "Recursive system.multicall forbidden."})


@step
def multicall2(run):
    stat, version = run.client.multicall2([("aria2.getGlobalStat", []), ("aria2.getVersion", [])])
    assert "numActive" in stat[0] and "version" in version[0], (stat, version)


@step
def batch_call(run):
    results = run.client.batch_call(
        [("aria2.getVersion", [], 1), ("aria2.tellWaiting", [0, 10], "two"), ("system.listMethods", [], 3)]
    )
    same(results[0], run.client.get_version())
    same([one["gid"] for one in results[1]], run.waiting())
    same(results[2], run.client.list_methods())


@step
def unknown_methods(run):
    fails(lambda: run.client.call("aria2.none"), "No such method: aria2.none")
    # It comes without a token.
    fails(lambda: run.client.call("none.at.all"), "Unauthorized")


@step(ours=True)
def add_torrent(run):
    fails(lambda: run.client.add_torrent("", []), "No such method: aria2.addTorrent")


@step(ours=True)
def get_peers(run):
    fails(lambda: run.client.get_peers(run.paused()[0]), "No such method: aria2.getPeers")


@step
def save_session(run):
    if run.is_aria2c:
        fails(run.client.save_session, "Filename is not given.")
    else:
        same(run.client.save_session(), "OK")


# The listener sends no token, and the daemon notifies sockets only after a right one. For ours see
# `notifications_after_the_token`.
@step(theirs=True)
def listen_to_notifications(run):
    run.clear()
    heard = []
    note = lambda kind: lambda gid: heard.append((kind, gid))
    listener = Client("http://127.0.0.1", run.port, run.token)
    thread = threading.Thread(
        target=listener.listen_to_notifications,
        kwargs={
            "on_download_start": note("start"),
            "on_download_pause": note("pause"),
            "on_download_stop": note("stop"),
            "on_download_complete": note("complete"),
            "on_download_error": note("error"),
            "timeout": 1,
            "handle_signals": False,
        },
        daemon=True,
    )
    thread.start()

    # The listener may connect after the first downloads.
    def first():
        gid, _ = run.add()
        run.wait(gid, "complete")
        return ("complete", gid) in heard

    end = time.monotonic() + 20
    while not first():
        assert time.monotonic() < end, f"no notification came: {heard}"
    complete, _ = run.add()
    run.wait(complete, "complete")
    failed, _ = run.add("missing")
    held, _ = run.add("held")
    run.received(held)
    run.client.pause(held)
    run.wait(held, "paused")
    run.client.unpause(held)
    run.wait(held, "active")
    run.client.remove(held)
    run.wait(held, "removed")
    wanted = [
        (held, ["start", "pause", "start", "stop"]),
        (complete, ["start", "complete"]),
        (failed, ["start", "error"]),
    ]
    notes = lambda gid: [kind for kind, of in heard if of == gid]
    for gid, kinds in wanted:
        deadline = time.monotonic() + 20
        while notes(gid) != kinds:
            assert time.monotonic() < deadline, f"the notifications {notes(gid)} instead of {kinds}"
            time.sleep(0.02)
    listener.stop_listening()
    thread.join(LIMIT)


@step
def notifications_after_the_token(run):
    """A socket over which a call with the token came, as AriaNg's."""
    run.clear()
    socket = websocket.create_connection(run.client.ws_server, timeout=5)
    token = f"token:{run.token}"
    call = {"jsonrpc": "2.0", "id": "first", "method": "aria2.getVersion", "params": [token]}
    socket.send(json.dumps(call))
    same(json.loads(socket.recv())["id"], "first")
    complete, _ = run.add()
    failed, _ = run.add("missing")
    held, _ = run.add("held")
    run.received(held)
    run.client.pause(held)
    run.wait(held, "paused")
    run.client.unpause(held)
    run.wait(held, "active")
    run.client.remove(held)
    wanted = {
        complete: ["Start", "Complete"],
        failed: ["Start", "Error"],
        held: ["Start", "Pause", "Start", "Stop"],
    }
    heard = {gid: [] for gid in wanted}
    while sum(map(len, heard.values())) < sum(map(len, wanted.values())):
        try:
            # A ping of the server comes long after this limit.
            message = json.loads(socket.recv())
        except websocket.WebSocketTimeoutException:
            break
        same((message["jsonrpc"], list(message["params"][0])), ("2.0", ["gid"]), message)
        heard[message["params"][0]["gid"]].append(message["method"].removeprefix("aria2.onDownload"))
    same(heard, wanted)
    socket.close()


# MARK: The API


@step
def api_add_uris(run):
    run.clear()
    name = run.name()
    download = run.api.add_uris([run.url(f"ok/{name}")], {"out": "api.bin"})
    until("the end", lambda: download.live.is_complete)
    same(download.name, "api.bin")
    same(download.total_length, SIZE)
    same(download.progress, 100.0)
    same(download.root_files_paths, [run.folder / "api.bin"])
    same((download.root_files_paths[0]).read_bytes(), content(name))
    same(download.error_code, "0")
    same((download.is_torrent, download.is_metadata), (False, False))
    same((download.followed_by, download.following), ([], None))
    same((download.belongs_to, download.verified_length, download.bittorrent), (None, 0, None))


@step
def api_add(run):
    name = run.name()
    (download,) = run.api.add(run.url(f"ok/{name}"))
    until("the end", lambda: download.live.is_complete)
    names = [run.name() for _ in range(2)]
    file = run.folder.parent / "input.txt"
    file.write_text("\n".join(f"{run.url(f'ok/{name}')}\n out=input-{name}" for name in names) + "\n")
    downloads = run.api.add(str(file))
    same(len(downloads), 2)
    for download, name in zip(downloads, names):
        until("the end", lambda: download.live.is_complete)
        same((run.folder / f"input-{name}").read_bytes(), content(name))


@step
def api_add_metalink(run):
    file = run.folder.parent / "two.metalink"
    file.write_text(metalink(run, "api"))
    downloads = run.api.add_metalink(file)
    same(len(downloads), 2)
    for download in downloads:
        until("the end", lambda: download.live.is_complete)
    same(sorted(download.name for download in downloads), ["api-a", "api-b"])


@step
def api_get_downloads(run):
    run.clear()
    held, _ = run.add("held")
    run.received(held)
    paused, _ = run.paused()
    done, _ = run.add()
    run.wait(done, "complete")
    same([one.gid for one in run.api.get_downloads()], [held, paused, done])
    same([one.gid for one in run.api.get_downloads([done, held])], [done, held])
    same(run.api.get_download(paused).is_paused, True)
    same([one.is_active for one in run.api.get_downloads()], [True, False, False])


@step
def api_names_of_waiting_downloads(run):
    gid, name = run.paused()
    download = run.api.get_download(gid)
    same(download.name, name)
    assert download.control_file_path.name.endswith(".aria2"), download.control_file_path


@step
def api_pause_and_resume(run):
    held, _ = run.add("held")
    run.received(held)
    download = run.api.get_download(held)
    same(download.pause(), True)
    until("the pause", lambda: download.live.is_paused)
    error = run.api.pause([download])[0]
    assert isinstance(error, ClientException) and error.message == f"GID#{held} cannot be paused now", error
    same(download.resume(), True)
    until("the transfer", lambda: download.live.is_active)
    same(run.api.pause([download], force=True), [True])
    until("the pause", lambda: download.live.is_paused)
    same(run.api.resume([download]), [True])
    same(run.api.pause_all(), True)
    same(run.api.pause_all(force=True), True)
    until("no active one", lambda: not run.client.tell_active())
    same(run.api.resume_all(), True)
    until("the transfer", lambda: download.live.is_active)
    run.clear()


@step
def api_moves(run):
    run.clear()
    a, b, c = (run.api.get_download(run.paused()[0]) for _ in range(3))
    order = lambda: [one.gid for one in run.api.get_downloads()]
    same(c.move_to_top(), 0)
    same(order(), [c.gid, a.gid, b.gid])
    same(c.move_to_bottom(), 2)
    same(c.move_up(), 1)
    same(c.move_down(1), 2)
    same(a.move(1), 1)
    same(order(), [b.gid, a.gid, c.gid])
    same(a.move_to(0), 0)
    # aria2p counts from the end with a positive number, which is behind the last one.
    same(a.move_to(-1), 2)
    same(order(), [b.gid, c.gid, a.gid])


@step
def api_remove(run):
    run.clear()
    held, name = run.add("held")
    run.received(held)
    download = run.api.get_download(held)
    same(run.api.remove([download]), [True])
    # What an aria2c removes is removed a moment later.
    until("the end", lambda: held not in [one["gid"] for one in run.client.tell_active()])
    done, name = run.add()
    run.wait(done, "complete")
    download = run.api.get_download(done)
    same(run.api.remove([download], force=True, files=True, clean=True), [True])
    assert not (run.folder / name).exists(), "the file is removed"
    fails(lambda: run.client.tell_status(done), f"GID {done} is not found")
    paused, _ = run.paused()
    same(run.api.get_download(paused).remove(force=True), True)
    until("the end", lambda: paused not in run.waiting())
    for _ in range(3):
        run.paused()
    same(run.api.remove_all(force=True), True)
    until("the end of all", lambda: not run.waiting())


@step(ours=True)
def api_remove_is_done_with_the_reply(run):
    held, name = run.add("held")
    run.received(held)
    same(run.api.remove([run.api.get_download(held)], clean=True), [True])
    fails(lambda: run.client.tell_status(held), f"GID {held} is not found")


@step
def api_retry_downloads(run):
    run.clear()
    gid, name = run.add("missing", {"out": "retried.bin", "header": ["X-Retry: 1"], "max-tries": "2"})
    run.wait(gid, "error")
    download = run.api.get_download(gid)
    given = download.options.get_struct()
    # A client gives back all options that it was told.
    given.pop("gid", None)
    results = run.api.retry_downloads([download])
    same(results, [True], [getattr(one, "message", one) for one in results])
    again = until("the second one", lambda: [one for one in run.api.get_downloads() if one.gid != gid])[0]
    until("its end", lambda: again.live.has_failed)
    options = again.options.get_struct()
    options.pop("gid", None)
    # Each time another line break comes after the last field, also in an aria2c.
    for one in (options, given):
        one["header"] = one["header"].strip()
    same(options, given, "the options of the retry")
    sent = [fields for path, fields in Web.requests if path == f"/missing/{name}"]
    same(sent[-1].get("X-Retry"), "1")


@step
def api_purge(run):
    same(run.api.purge(), True)
    same(run.api.get_downloads(), [])
    gid, _ = run.add()
    run.wait(gid, "complete")
    same(run.api.get_download(gid).purge(), True)
    fails(lambda: run.client.tell_status(gid), f"GID {gid} is not found")


@step
def api_get_stats(run):
    stats = run.api.get_stats()
    same((stats.num_active, stats.num_waiting, stats.num_stopped), (0, 0, 0))
    assert stats.num_stopped_total >= 0 and stats.download_speed >= 0 and stats.upload_speed == 0


@step
def api_set_options(run):
    gid, _ = run.paused()
    download = run.api.get_download(gid)
    same(run.api.set_options({"out": "set.bin"}, [download]), [True])
    same(run.api.get_options([download])[0].out, "set.bin")
    options = download.options
    options.max_download_limit = 4096
    same(download.live.options.max_download_limit, 4096)
    options = run.api.get_global_options()
    same(options.max_concurrent_downloads, 5)
    options.max_concurrent_downloads = 3
    same(run.api.get_global_options().max_concurrent_downloads, 3)
    same(run.api.set_global_options({"max-concurrent-downloads": "5"}), True)


@step
def api_global_options_are_taken_back(run):
    before = run.client.get_global_option()
    same(run.api.set_global_options(run.api.get_global_options()), True)
    same(run.client.get_global_option(), before)


@step
def api_copy_and_move_files(run):
    gid, name = run.add()
    run.wait(gid, "complete")
    download = run.api.get_download(gid)
    same(download.copy_files(run.folder.parent / "copied"), True)
    same((run.folder.parent / "copied" / name).read_bytes(), content(name))
    same(download.move_files(run.folder.parent / "moved"), True)
    same((run.folder.parent / "moved" / name).read_bytes(), content(name))
    assert not (run.folder / name).exists(), "the file has moved"
    paused, _ = run.paused()
    same(run.api.copy_files([run.api.get_download(paused)], run.folder.parent / "copied"), [False])


@step
def released_downloads_complete(run):
    run.clear()
    gids = [run.add("held") for _ in range(3)]
    for gid, _ in gids:
        run.received(gid)
    Web.released.set()
    for gid, name in gids:
        run.wait(gid, "complete")
        same((run.folder / name).read_bytes(), content(name), "the file")


@step
def shutdown(run):
    same(run.client.shutdown(), "OK")

    def is_over():
        try:
            run.client.get_version()
        except requests.ConnectionError:
            return True
        return False

    until("the end of the server", is_over)


def main():
    arguments = sys.argv[1:]
    is_aria2c = "--aria2c" in arguments
    keeps_going = "--keep-going" in arguments
    port, token, folder = (one for one in arguments if not one.startswith("--"))
    logger.disable("aria2p")
    run = Run(int(port), token, folder, is_aria2c)
    failures = 0
    for name, function, ours, theirs in STEPS:
        if ours and is_aria2c or theirs and not is_aria2c:
            continue
        try:
            function(run)
        except Exception as error:
            text = error.message if isinstance(error, ClientException) else f"{type(error).__name__}: {error}"
            line = traceback.extract_tb(error.__traceback__)[1].lineno
            print(f"FAILED {name}, line {line}: {text}", flush=True)
            failures += 1
            if not keeps_going:
                break
        else:
            print(f"ok {name}", flush=True)
    sys.exit(1 if failures else 0)


main()
