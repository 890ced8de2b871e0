#!/usr/bin/env python3
"""Copies sources as Apple's compiler sees them, for .ci/apple.

  copy.py FOLDER   makes the package in a folder; files that have not changed keep their time
  copy.py --left   lists the lines that only Apple's compiler sees and that the package does not compile
  copy.py --seen   lists those that it compiles

A line of a copy has the number that it has in its source.
"""
import os, re, sys

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
HERE = "Tests/ApplePlatforms"

# Folder or file of the repository, folder of the package, platform. Gates differ between macOS and iOS.
COPIES = [
    ("Sources/DownpipeCore", "Sources/DownpipeCore", "macOS"),
    ("Sources/DownpipePOSIX", "Sources/DownpipePOSIX", "macOS"),
    ("Sources/CSystemCalls", "Sources/CSystemCalls", "macOS"),
    ("Sources/CZlib", "Sources/CZlib", "macOS"),
    # For the stand-in of CryptoKit.
    ("Sources/CCrypto", "Sources/CCrypto", "macOS"),
    ("Sources/DownpipeDigest", "Sources/DownpipeDigest", "macOS"),
    ("Tests/DownpipeDigestTests", "Tests/DigestTests", "macOS"),
    ("Sources/CCurl", "Sources/CCurl", "macOS"),
    # Of the test kit.
    ("Sources/DownpipeTesting/Fixtures/TemporaryFolder.swift", "Sources/Fixtures", "macOS"),
    ("Sources/DownpipeTesting/HTTPServer/RefusingPort.swift", "Sources/Fixtures", "macOS"),
    ("Sources/DownpipeTool/Run/DescriptorLimit.swift", "Sources/ToolProcess", "macOS"),
    ("Sources/DownpipeTool/Run/Interruption.swift", "Sources/ToolProcess", "macOS"),
    ("Sources/DownpipeTool/Run/LimitTrial.swift", "Sources/ToolProcess", "macOS"),
    (f"{HERE}/ToolParts", "Sources/ToolProcess", None),
    ("Examples/Benchmark/Processes/DescriptorLimit.swift", "Sources/BenchmarkProcess", "macOS"),
    ("Examples/Benchmark/Processes/Leftovers.swift", "Sources/BenchmarkProcess", "macOS"),
    ("Plugins/Files", "Plugins/Files", "macOS"),
    ("Plugins/Memory", "Plugins/Memory", "macOS"),
    ("Plugins/Gates", "Plugins/Gates", "macOS"),
    ("Plugins/Gates", "Plugins/GatesOnPhone", "iOS"),
    ("Plugins/HTTP", "Plugins/HTTP", "macOS"),
    ("Plugins/Signature/ChildProgram.swift", "Sources/ChildProgram", "macOS"),
    ("Plugins/URLSession", "Plugins/URLSession", "macOS"),
    ("Plugins/BackgroundURLSession", "Plugins/BackgroundURLSession", "macOS"),
    (f"{HERE}/Package.swift", ".", None),
    (f"{HERE}/StandIns", "StandIns", None),
    (f"{HERE}/Tests", "Tests", None),
]

CONDITIONS = {
    "canImport(Darwin)": True, "canImport(Network)": True, "canImport(CryptoKit)": True,
    "canImport(Glibc)": False, "canImport(Musl)": False,
    "canImport(FoundationNetworking)": False, "canImport(FoundationXML)": False, "os(Linux)": False,
}  # fmt: skip
# A module called Darwin would make SwiftPM's own code take this for a Mac.
IMPORTS = {"Foundation": "AppleFoundation", "Darwin": "AppleDarwin", "IOKit.ps": "IOKit"}
# libcurl's headers bring some of Glibc's; a scoped import prevails.
BESIDE_CURL = "import AppleDarwin; import typealias DarwinTypes.sigset_t" + "".join(
    f"; import func AppleDarwin.{name}" for name in ("getsockname", "pthread_sigmask", "shutdown", "sigaddset", "sigemptyset", "socket")
) + "".join(f"; import var AppleDarwin.{name}" for name in ("MSG_DONTWAIT", "MSG_PEEK", "SHUT_RD", "SOCK_STREAM"))


def conditions(platform):
    return CONDITIONS | {f"os({name})": name == platform for name in ("macOS", "iOS")}


def of_platform(text, platform):
    """The source with the conditions of a platform, and with the names of the stand-ins."""
    known = conditions(platform)
    lines = text.split("\n")
    for index, line in enumerate(lines):
        if re.match(r"\s*#(if|elseif)\b", line):
            for name, value in known.items():
                line = line.replace(name, "true" if value else "false")
            if re.search(r"\b(os|canImport|targetEnvironment)\(", line):
                sys.exit(f"copy.py does not know a condition: {line.strip()}")
        elif found := re.match(r"(\s*(?:@\w+\s+|public\s+|package\s+)*import )([\w.]+)$", line):
            line = found[1] + IMPORTS.get(found[2], found[2])
            if found[2] == "Darwin" and "import CCurl" in text:
                line = BESIDE_CURL
        elif not line.lstrip().startswith("//"):
            line = re.sub(r"\bDarwin\.(?=[a-z])", "AppleDarwin.", line)
        lines[index] = line
    return "\n".join(lines)


def files(path):
    if os.path.isfile(os.path.join(ROOT, path)):
        yield path, os.path.basename(path)
        return
    for folder, names, found in os.walk(os.path.join(ROOT, path)):
        names[:] = [name for name in names if not name.endswith(".docc")]
        for name in found:
            whole = os.path.join(folder, name)
            yield os.path.relpath(whole, ROOT), os.path.relpath(whole, os.path.join(ROOT, path))


def make(folder):
    made = set()
    for source, target, platform in COPIES:
        for path, name in files(source):
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                text = file.read()
            if platform and path.endswith(".swift"):
                text = of_platform(text, platform)
            copy = os.path.normpath(os.path.join(folder, target, name))
            made.add(copy)
            if os.path.exists(copy):
                with open(copy, encoding="utf-8") as file:
                    if file.read() == text:
                        continue
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            with open(copy, "w", encoding="utf-8") as file:
                file.write(text)
    for place, _, names in os.walk(folder):
        for name in names:
            if os.path.join(place, name) not in made and name != "Package.resolved":
                os.remove(os.path.join(place, name))


def value(condition, known):
    """Whether a condition holds; None when it depends on something else."""
    for name, holds in known.items():
        condition = condition.replace(name, str(holds))
    condition = condition.replace("&&", " and ").replace("||", " or ").replace("!", " not ")
    names = set(re.findall(r"[A-Za-z_]\w*(?:\([^)]*\))?", condition)) - {"True", "False", "and", "or", "not"}
    results = set()
    for choice in (True, False):
        text = condition
        for name in sorted(names, key=len, reverse=True):
            text = text.replace(name, str(choice))
        results.add(eval(text))
    return results.pop() if len(results) == 1 else None


def lines_of(path, known):
    """The numbers of the lines of code that may be compiled."""
    result, stack = set(), []
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            text = line.split("//")[0].strip()
            if found := re.match(r"#(if|elseif)\b(.*)", text):
                holds = value(found[2], known)
                if found[1] == "if":
                    stack.append([holds is not False, holds is True])
                else:
                    stack[-1] = [not stack[-1][1] and holds is not False, stack[-1][1] or holds is True]
            elif text.startswith("#else"):
                stack[-1] = [not stack[-1][1], True]
            elif text.startswith("#endif"):
                stack.pop()
            elif text and all(active for active, _ in stack):
                result.add(number)
    return result


def only_apple(path):
    linux = {name: not holds for name, holds in CONDITIONS.items()} | {"os(macOS)": False, "os(iOS)": False}
    linux["canImport(Musl)"] = False
    apple = set().union(*(lines_of(path, conditions(name)) for name in ("macOS", "iOS")))
    return apple - lines_of(path, linux)


def listing(is_seen):
    compiled = {path for source, _, platform in COPIES if platform for path, _ in files(source)}
    count = 0
    for top in ("Sources", "Plugins", "Examples", "Tests"):
        for path, _ in sorted(files(top)):
            if not path.endswith(".swift") or path.startswith(HERE) or (path in compiled) != is_seen:
                continue
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                text = file.read().split("\n")
            for number in sorted(only_apple(path)):
                line = text[number - 1].strip()
                if line != "import Darwin":
                    count += 1
                    print(f"{path}:{number}: {line}")
    print(f"{count} lines, without those that are `import Darwin`")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--left"]:
            listing(is_seen=False)
        case ["--seen"]:
            listing(is_seen=True)
        case [folder] if not folder.startswith("-"):
            make(os.path.normpath(folder))
        case _:
            sys.exit(__doc__)
