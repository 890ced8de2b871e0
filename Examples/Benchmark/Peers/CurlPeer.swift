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
    case .unpacked:
      return .shell(
        #"mkdir "$2" && curl -sSf "$1" | tar --zstd -x -C "$2""#, [assignment.url, assignment.result])
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

/// curl, and then tar: what unpacking costs that begins when the download is complete.
struct CurlThenTarPeer: Peer {
  static let title = "curl, then tar"

  let name = Self.title
  let executable = "curl"
  let isProgram = false

  func command(for assignment: Assignment) -> ProgramCommand? {
    guard case .unpacked = assignment.kind else { return nil }
    return .shell(
      #"mkdir "$2" && curl -sSf -o "$2.tar.zst" "$1" && tar --zstd -xf "$2.tar.zst" -C "$2""#,
      [assignment.url, assignment.result])
  }
}
