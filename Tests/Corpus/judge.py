"""Compares what a client made of a case with the expectation."""
import base64, hashlib, re


def short_digest(content):
    return hashlib.sha256(content).hexdigest()[:16]


class Verdict:
    """- difference: what the client does instead of the expected; None if it agrees.
    - key: the same in a form that the table of exceptions can name.
    - violations: what no table can excuse."""

    def __init__(self, difference=None, key=None, violations=()):
        self.difference, self.key, self.violations = difference, key, list(violations)


def judge(case, result, requests, leaks):
    verdict = outcome(case, result)
    verdict.violations += credentials(case, requests)
    verdict.violations += [f"{place} has a password" for place in leaks]
    return verdict


def outcome(case, result):
    expected = case.body() if case.outcome == "file" else None
    contents = list(result.published.values())
    if contents and (case.outcome != "file" or expected is not None and contents != [expected]):
        content = contents[0]
        what = f"publishes {len(content)} bytes, {content[:40]!r}, instead of "
        what += f"{len(expected)} bytes" if expected is not None else case.outcome
        return Verdict(what, f"publishes {short_digest(content)}")
    if contents and result.failed:
        return Verdict(f"publishes, and {result.detail}", "publishes and fails", ["a failed download has published"])
    if case.outcome == "file":
        if not contents:
            return Verdict(f"{result.detail} instead of a file", failure(result))
        name, wanted = next(iter(result.published)), case.header_name()
        if wanted and name != wanted:
            return Verdict(f"names the file “{name}” instead of “{wanted}”", f"names {name}")
        return Verdict()
    if not result.failed:
        return Verdict(f"{result.detail} without a file", "finishes")
    if result.detail.startswith(("crashes", "hangs", "refuses")):
        return Verdict(result.detail, failure(result))
    if case.outcome in ("http-error", "redirect-kept") and result.status != case.status:
        return Verdict(f"{result.detail}, instead of the status {case.status}", failure(result))
    return Verdict()


def failure(result):
    return result.detail.split(":")[0].split(" with ")[0]


def credentials(case, requests):
    """Credentials in requests that should not have them."""
    expected = {}
    for line, fields in zip(case.expect["requests"] or [], case.expect["request_headers"] or []):
        for name, value in fields.items():
            if is_secret(name):
                expected.setdefault((origin(line, fields, name), name.lower()), []).append(value)
    found = []
    for request in requests:
        line, fields = parsed(request)
        for name, value in fields:
            if not is_secret(name):
                continue
            place = origin(line, dict(fields), name)
            allowed = expected.get((place, name.lower()), [])
            if not any(is_covered(name, value, other) for other in allowed):
                found.append(f"sends {name} to {place}, which should not get it")
    return found


def is_secret(name):
    return name.lower() in ("authorization", "proxy-authorization", "cookie")


def is_covered(name, value, other):
    if name.lower() == "cookie":
        return cookie_names(value) <= cookie_names(other)
    scheme = value.split(" ")[0].lower()
    return scheme == other.split(" ")[0].lower() and (scheme == "digest" or value == other)


def cookie_names(value):
    return {pair.split("=")[0].strip() for pair in value.split(";")}


def origin(line, fields, name):
    """Where a request goes: to the one proxy, or to the host of the URL."""
    if name.lower() == "proxy-authorization":
        return "the proxy"
    absolute = re.match(r"\S+ https?://([^/? ]*)", line, re.I)
    return (absolute.group(1) if absolute else next((v for k, v in fields.items() if k.lower() == "host"), "")).lower()


def parsed(request):
    lines = request.decode("latin-1").split("\r\n")
    pairs = [line.split(":", 1) for line in lines[1:] if ":" in line]
    return lines[0], [(name.strip(), value.strip()) for name, value in pairs]
