struct AxelPeer: Peer {
  let executable = "axel"

  func command(for assignment: Assignment) -> ProgramCommand? {
    let connections: Int
    switch assignment.kind {
    case .file: connections = 1
    case .segments(let count, _): connections = count
    case .verified, .gunzipped, .list, .slow: return nil
    }
    // It has no option for a certificate to trust; OpenSSL reads the variable.
    let environment = assignment.certificate.map { ["SSL_CERT_FILE": $0] } ?? [:]
    return ProgramCommand(
      "axel", ["-q", "-n", "\(connections)", "-o", assignment.result] + assignment.urls, environment: environment)
  }
}
