"""Downloads the cases of curl's own test suite, and compares the results with curl's. See README.md."""
import argparse, base64, concurrent.futures, os, shutil, sys, tempfile
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cases, clients, judge

HERE = os.path.dirname(os.path.abspath(__file__))
IDLE = 1.5  # seconds until the server closes a connection on which nothing arrives


def exceptions(source):
    """The table of a source: case -> (what it does, why)."""
    table = {}
    path = os.path.join(HERE, "exceptions", source + ".tsv")
    if os.path.exists(path):
        with open(path) as file:
            for line in file:
                if line.strip() and not line.startswith("#"):
                    names, key, reason = line.rstrip("\n").split("\t")
                    table.update((name, (key, reason)) for name in names.split(","))
    return table


def write_setup(case, port, setup, out):
    """The files that the case starts with. What it would overwrite is put into the folder of the downloads."""
    known = {}
    for file in case.setup:
        content = base64.b64decode(file["b64"]).replace(b"@PORT@", str(port).encode())
        name = os.path.basename(file["name"])
        if name == case.output_name():
            known[name] = content
        with open(os.path.join(out if name in known else setup, name), "wb") as target:
            target.write(content)
    return known


def leaks(case, output, folder, setup):
    """Where a password of the case shows up."""
    found = []
    for secret in case.secrets():
        if secret in output:
            found.append("the output")
        for parent, _, names in os.walk(folder):
            for name in names if parent != setup else []:
                path = os.path.join(parent, name)
                # Locks are links that lead nowhere.
                if os.path.isfile(path):
                    with open(path, "rb") as file:
                        content = file.read()
                    content += b"".join(os.getxattr(path, key) for key in os.listxattr(path))
                    if secret in content:
                        found.append(os.path.relpath(path, folder))
    return found


def run(case, client, server_type):
    """-> (the reason why it is not asked, or None; the verdict, or None)"""
    reason = case.not_asked()
    if reason:
        return reason, None
    folder = tempfile.mkdtemp(prefix=case.id + ".")
    server = server_type(case.raw, 0, 20, IDLE).start()
    try:
        setup, out = os.path.join(folder, "setup"), os.path.join(folder, "out")
        os.mkdir(setup), os.mkdir(out)
        server.subst["@DIR@"] = setup
        known = write_setup(case, server.port, setup, out)
        reason = client.not_asked(case)
        if reason:
            return reason, None
        result = client.run(case, server.port, folder, setup, known)
        if result.unsupported:
            return result.unsupported, None
        case.expect = fill(case.expect, server.port)
        return None, judge.judge(case, result, list(server.requests), leaks(case, result.output, folder, setup))
    finally:
        server.close()
        shutil.rmtree(folder, ignore_errors=True)


def fill(value, port):
    if isinstance(value, dict):
        return {key: fill(item, port) for key, item in value.items()}
    if isinstance(value, list):
        return [fill(item, port) for item in value]
    return value.replace("@PORT@", str(port)) if isinstance(value, str) else value


def report(client, table, wanted, results):
    """Prints the result of a client. -> whether it is as it should be"""
    groups = {key: [] for key in ("agrees", "differs for a reason", "not asked", "differs", "never allowed")}
    for case in wanted:
        reason, verdict = results[case.id]
        excused = table.get(case.id)
        if reason:
            groups["not asked"].append((case, reason))
            continue
        groups["never allowed"] += [(case, violation) for violation in verdict.violations]
        if verdict.difference is None:
            if excused and not excused[0].endswith("?"):
                groups["differs"].append((case, "agrees: remove it from the table of exceptions"))
            else:
                groups["agrees"].append((case, ""))
        elif excused and excused[0].rstrip("?") == verdict.key:
            groups["differs for a reason"].append((case, f"{verdict.difference}\n{'':14}Reason: {excused[1]}"))
        else:
            if verdict.key.startswith("publishes"):
                groups["never allowed"].append((case, "bytes that the expectation does not have"))
            groups["differs"].append((case, f"{verdict.difference} [{verdict.key}]"))
    asked = len(wanted) - len(groups["not asked"])
    for title, found in groups.items():
        if found and title != "agrees":
            print(f"{client.name}: {title}")
            for case, text in found:
                print(f"  {case.id:10}  {case.name}\n{'':14}{text}")
    print(f"{client.name}: {len(groups['agrees'])} of {asked} agree, "
          f"{len(groups['differs for a reason'])} differ for a reason, {len(groups['differs'])} differ, "
          f"{len(groups['never allowed'])} never allowed; {len(groups['not asked'])} of {len(wanted)} not asked",
          flush=True)
    return not groups["differs"] and not groups["never allowed"]


def main():
    parser = argparse.ArgumentParser(prog=".ci/corpus", description=__doc__)
    parser.add_argument("sources", nargs="*", metavar="SOURCE", help="a value of --source (default: curl)")
    parser.add_argument("--downpipe", metavar="FILE", help="the tool")
    parser.add_argument("--reference", action="store_true", help="run curl itself; differences are no failure")
    parser.add_argument("--case", action="append", metavar="ID", help="only this case, such as curl-0040")
    options = parser.parse_args()
    corpora = os.environ.get("DOWNPIPE_CORPORA")
    if not corpora:
        sys.exit("There are no cases: set DOWNPIPE_CORPORA to the folder of the corpora, which has curl/.")
    isFine = True
    reference = [clients.Curl()] if options.reference else []
    sources = options.sources or ([] if options.reference else ["curl"])
    for client in reference + [clients.Downpipe(os.path.abspath(options.downpipe), source) for source in sources]:
        wanted, server = cases.load(os.path.join(corpora, "curl"))
        wanted = [case for case in wanted if not options.case or case.id in options.case]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda case: run(case, client, server), wanted))
        results = {case.id: result for case, result in zip(wanted, found)}
        fine = report(client, exceptions(client.name), wanted, results)
        isFine = isFine and (fine or isinstance(client, clients.Curl))
    sys.exit(0 if isFine else 1)


if __name__ == "__main__":
    main()
