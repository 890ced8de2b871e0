"""Runs the clients: turns what a case asks into their options."""
import json, os, re, subprocess
from cases import IGNORED

LIMIT = 30  # seconds; no case needs as many


class Result:
    """What a client made of a case."""

    def __init__(self, published, failed, status=None, detail="", output=b"", unsupported=None):
        self.published, self.failed, self.status = published, failed, status
        self.detail, self.output, self.unsupported = detail, output, unsupported


def published(folder, known):
    """The files below the folder, without those that were there."""
    found = {}
    for parent, folders, names in os.walk(folder):
        if ".downpipe" in folders:
            folders.remove(".downpipe")
        for name in names:
            path = os.path.join(parent, name)
            with open(path, "rb") as file:
                content = file.read()
            if known.get(os.path.relpath(path, folder)) != content:
                found[os.path.relpath(path, folder)] = content
    return found


def start(arguments, case, home, cwd):
    environment = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
    environment.update(case.environment(), HOME=home)
    return subprocess.run(arguments, env=environment, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=LIMIT)


class Downpipe:
    def __init__(self, program, source):
        self.program, self.source, self.name = program, source, source

    def not_asked(self, case):
        """Why the source cannot be asked; None if it can."""
        if self.source == "async-http-client" and case.ask.get("decode_content_encoding"):
            return "the source decodes no content codings"
        return None

    def options(self, case, port, setup):
        """- setup: the folder with the files of the case."""
        ask = dict(case.ask)
        options = ["--retry", str(ask.pop("retries", 0))]
        if not ask.pop("follow", False):
            options += ["--max-redirects", "0"]
        if not ask.pop("decode_content_encoding", False) and self.source == "curl":
            options += ["--keep-encoded"]
        if "proxy" in ask:
            proxy = case.fill(ask.pop("proxy"), port, setup)
            options += ["--proxy", proxy] if proxy else ["--no-proxy"]
        ask.pop("netrc", None), ask.pop("netrc_optional", None), ask.pop("raw", None)
        for key, option in [("user", "--user"), ("auth", "--auth"), ("proxy_user", "--proxy-user"),
                            ("proxy_auth", "--proxy-auth"), ("netrc_file", "--netrc-file"),
                            ("max_filesize", "--max-size"), ("max_time", "--timeout")]:
            if key in ask:
                options += [option, case.fill(ask.pop(key), port, setup)]
        for value in ask.pop("headers", []):
            options += ["--header", value]
        for value in ask.pop("resolve", []):
            options += ["--resolve", case.fill(value, port, setup)]
        for value in ask.pop("cookies", []):
            if not value.startswith("@DIR@"):
                options += ["--header", "Cookie: " + value]
            elif value != "@DIR@":
                options += ["--cookie-jar", case.fill(value, port, setup)]
        name = case.output_name()
        if ask.pop("output", None):
            options += ["--output", name]
        if ask.pop("no_clobber", False):
            options += ["--on-conflict", "keep-both"]
        ask.pop("name_from_header", None), ask.pop("environment", None)
        unknown = set(ask) - IGNORED
        if unknown:
            raise ValueError(f"{case.id} asks for {sorted(unknown)}: decide in cases.py and clients.py")
        return options

    def run(self, case, port, folder, setup, known):
        out = os.path.join(folder, "out")
        arguments = [self.program, "get", case.url(port), "--directory", out, "--json", "--quiet"]
        arguments += ["--source", self.source] + self.options(case, port, setup)
        try:
            process = start(arguments, case, folder, folder)
        except subprocess.TimeoutExpired as error:
            return Result(published(out, known), True, None, "hangs", (error.stdout or b"") + (error.stderr or b""))
        output, errors = process.stdout, process.stderr.decode(errors="replace").strip()
        files = published(out, known)
        if process.returncode < 0:
            return Result(files, True, None, f"crashes with signal {-process.returncode}", output + process.stderr)
        if process.returncode == 2:
            lacks = errors if "--source" in errors else None
            return Result(files, True, None, f"refuses: {errors}", output + process.stderr, lacks)
        failure = {}
        for line in output.splitlines():
            failure = json.loads(line).get("error") or {}
        detail = f"fails: {failure.get('code')}: {failure.get('message')}" if process.returncode else "finishes"
        return Result(files, process.returncode != 0, failure.get("httpStatus"), detail, output + process.stderr)


class Curl:
    """curl as a downloader: the reference for what can be reached."""
    name = "the curl of this machine"

    def not_asked(self, case):
        return None

    def options(self, case, port, setup):
        ask = case.ask
        options = ["--fail", "--silent", "--show-error", "--remove-on-error"]
        options += ["--location"] if ask.get("follow") else []
        options += ["--compressed"] if ask.get("decode_content_encoding") else []
        options += ["--tr-encoding"] if ask.get("te") else []
        options += [f"--{ {'any': 'anyauth'}.get(ask['auth'], ask['auth']) }"] if "auth" in ask else []
        options += [f"--proxy-{ask['proxy_auth']}"] if "proxy_auth" in ask else []
        options += ["--netrc"] if ask.get("netrc") else []
        options += ["--netrc-optional"] if ask.get("netrc_optional") else []
        options += ["--no-clobber"] if ask.get("no_clobber") else []
        for key, option in [("user", "--user"), ("proxy", "--proxy"), ("proxy_user", "--proxy-user"),
                            ("netrc_file", "--netrc-file"), ("max_filesize", "--max-filesize"),
                            ("max_time", "--max-time"), ("retries", "--retry")]:
            if key in ask:
                options += [option, case.fill(str(ask[key]), port, setup)]
        for key, option in [("headers", "--header"), ("resolve", "--resolve"), ("cookies", "--cookie")]:
            for value in ask.get(key, []):
                options += [option, case.fill(value, port, setup)]
        return options

    def run(self, case, port, folder, setup, known):
        out = os.path.join(folder, "out")
        names = ["-o", case.output_name() or "file"] if not case.header_name() else ["-O", "-J"]
        arguments = ["curl", case.url(port), "--write-out", "%{http_code}"] + names + self.options(case, port, setup)
        try:
            process = start(arguments, case, folder, out)
        except subprocess.TimeoutExpired:
            return Result(published(out, known), True, None, "hangs")
        files = published(out, known)
        status = int(process.stdout[-3:] or 0)
        if process.returncode == 0 and 300 <= status < 400 and not case.ask.get("follow"):
            # A downloader does not take the body of a redirect for the file.
            return Result({}, True, status, "keeps the redirect")
        if process.returncode == 0 and not files:
            files = {case.output_name() or "file": b""}
        error = re.sub(r"\s+", " ", process.stderr.decode(errors="replace")).strip()
        return Result(files, process.returncode != 0, status if process.returncode else None,
                      f"fails: {error}" if process.returncode else "finishes")
