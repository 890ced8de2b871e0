struct Wget2Peer: Peer {
  let executable = "wget2"

  func command(for assignment: Assignment) -> ProgramCommand? {
    guard assignment.urls.count <= 1 else { return nil }
    var options = ["-q", "--no-hsts", "--no-robots"]
    if let certificate = assignment.certificate { options.append("--ca-certificate=\(certificate)") }
    switch assignment.kind {
    case .file: break
    case .verified, .gunzipped, .unpacked, .slow: return nil
    case .list(let jobs):
      return ProgramCommand(
        "wget2", options + ["--max-threads=\(jobs)", "-P", assignment.folder, "-i", assignment.list])
    case .segments(let count, let size):
      // A chunk for each connection: the server limits the rate of a request, and smaller ones would escape it.
      options += ["--max-threads=\(count)", "--chunk-size=\((size + Int64(count) - 1) / Int64(count))"]
    }
    return ProgramCommand("wget2", options + ["-O", assignment.result, assignment.url])
  }
}
