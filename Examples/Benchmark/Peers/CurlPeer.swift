struct CurlPeer: Peer {
  let executable = "curl"

  func command(for assignment: Assignment) -> ProgramCommand? {
    let trust = assignment.certificate.map { ["--cacert", $0] } ?? []
    switch assignment.kind {
    // It has no segments: one connection, for comparison.
    case .file, .segments:
      guard assignment.urls.count == 1 else { return nil }
      return ProgramCommand("curl", trust + ["-sSf", "-o", assignment.result, assignment.url])
    case .verified(let sha256):
      return .shell(
        #"curl -sSf "$1" | tee "$2" | sha256sum --status -c <(echo "$3  -")"#,
        [assignment.url, assignment.result, sha256])
    case .gunzipped:
      return .shell(#"curl -sSf "$1" | gunzip > "$2""#, [assignment.url, assignment.result])
    case .list(let jobs):
      return ProgramCommand(
        "curl",
        ["-sSf", "--parallel", "--parallel-max", "\(jobs)", "--output-dir", assignment.folder]
          + ["-K", assignment.curlList])
    // At most 300 at once.
    case .slow: return nil
    }
  }
}
