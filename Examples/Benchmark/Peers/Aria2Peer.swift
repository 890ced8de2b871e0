struct Aria2Peer: Peer {
  let executable = "aria2c"
  let package = "aria2"

  func command(for assignment: Assignment) -> ProgramCommand? {
    // Without preallocation, which writes each file twice on file systems without fallocate(2).
    var options = ["-q", "--no-conf", "--file-allocation=none", "-d", assignment.folder]
    if let certificate = assignment.certificate { options.append("--ca-certificate=\(certificate)") }
    switch assignment.kind {
    case .file: break
    case .verified(let sha256): options.append("--checksum=sha-256=\(sha256)")
    case .gunzipped, .unpacked: return nil
    case .list(let jobs): return ProgramCommand("aria2c", options + ["-j\(jobs)", "-x1", "-i", assignment.list])
    case .segments(let count, _): options += ["-x\(count)", "-s\(count)", "-k1M"]
    case .slow(let count):
      return ProgramCommand(
        "aria2c", options + ["-j\(count)", "-x1", "-i", assignment.list])
    }
    return ProgramCommand("aria2c", options + ["-o", assignment.name] + assignment.urls)
  }
}
