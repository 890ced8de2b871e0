"""The cases of the corpus: what is asked, and what is expected."""
import base64, json, os, re, sys

# What no downloader can be asked with the options of `downpipe`, and why.
NO_OPTION = {
    "time_condition": "no conditional requests",
    "range": "no part of a file",
    "resume_from": "only what downpipe itself has received is resumed",
    "raw": "transfer codings are always decoded",
    "path_as_is": "dot segments are always removed from URLs",
    "follow_trusted": "credentials never go to another origin",
    "retry_max_time": "no time limit over all attempts",
    "allow_http09": "no HTTP/0.9",
}
# Cases that are more than their options.
NO_OPTION_CASES = {
    "curl-3009": "a missing folder is created",
    "curl-2113": "a field with a blank in its name is refused",
}
# What is asked, and makes no difference to the bytes or the outcome.
IGNORED = {"fail", "fail_with_body", "remove_on_error", "name_from_url", "output_dir", "create_dirs", "remote_time",
           "etag_save", "te"}


class Case:
    def __init__(self, data, raw):
        self.id, self.name, self.ask, self.raw = data["id"], data["name"], data["ask"], raw
        self.url_text, self.setup, self.expect = data["url"], data["setup_files"], data["expect"]
        self.outcome, self.status = self.expect["outcome"], self.expect["status"]

    def not_asked(self):
        """Why the case cannot be asked; None if it can."""
        # Where raw mode has nothing to leave undecoded, it is the usual mode.
        if self.id == "curl-0372":
            return None
        for key, reason in NO_OPTION.items():
            if key in self.ask:
                return reason
        return NO_OPTION_CASES.get(self.id)

    def fill(self, text, port, folder):
        text = text.replace("@PORT@", str(port)).replace("@PWD@/@DIR@", folder)
        return text.replace("@DIR@", folder).replace("@PWD@", folder)

    def url(self, port):
        text = self.fill(self.url_text, port, "")
        # A scheme that is left out is curl's guess.
        return text if re.match(r"[a-z]+:/", text) else "http://" + text

    def environment(self):
        return dict(line.split("=", 1) for line in self.ask.get("environment", []) if not line.startswith("#"))

    def output_name(self):
        path = self.ask.get("output")
        return path and ("file" if path == "/dev/null" else os.path.basename(path))

    def header_name(self):
        """The name that the file must have, where the case is about names, and where versions of curl agree."""
        if not self.expect["suite_verified_with_curl_8.14.1"]:
            return None
        if not self.ask.get("name_from_header") or self.ask.get("output"):
            return None
        return next((os.path.basename(f["name"]) for f in self.expect["files"] if not is_side_file(f["name"])), None)

    def body(self):
        """The expected bytes; None where curl did not keep them."""
        if self.ask.get("output") == "/dev/null":
            return None
        body = base64.b64decode(self.expect["body_b64"] or "")
        if not body:
            for file in self.expect["files"]:
                if not is_side_file(file["name"]):
                    return base64.b64decode(file["b64"] or "")
        return body

    def secrets(self):
        """Passwords that must not show up anywhere. Short ones are words of other texts, too."""
        given = [self.ask.get(key, "").partition(":")[2] for key in ("user", "proxy_user")]
        return [password.encode() for password in given if len(password) >= 6]


def is_side_file(name):
    """Headers, cookies and messages that curl was asked to save beside the file."""
    return re.search(r"(heads|jar|cookies?|etag|stderrlog)\d+", name) is not None


def load(folder):
    """All cases, and the server class of the corpus."""
    sys.path.insert(0, folder)
    import replay
    with open(os.path.join(folder, "downloader-cases.json")) as file:
        wanted = json.load(file)["cases"]
    with open(os.path.join(folder, "cases.json")) as file:
        raw = {case["id"]: case for case in json.load(file)["cases"]}
    return [Case(data, raw[data["id"]]) for data in wanted], replay.Server
