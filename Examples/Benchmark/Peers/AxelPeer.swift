struct AxelPeer: Peer {
  let executable = "axel"

  func command(for assignment: Assignment) -> ProgramCommand? {
    let connections: Int
    switch assignment.kind {
    case .file: connections = 1
    case .segments(let count, _): connections = count
    case .verified, .gunzipped, .unpacked, .list, .slow: return nil
    }
    // It has no option for a certificate to trust, and does not know the addresses of a certificate.
    let trust = assignment.certificate == nil ? [] : ["--insecure"]
    return ProgramCommand("axel", trust + ["-q", "-n", "\(connections)", "-o", assignment.result] + assignment.urls)
  }
}
