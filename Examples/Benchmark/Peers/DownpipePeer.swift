/// This package: its command-line tool, or its library in this program where the tool has no option.
struct DownpipePeer: Peer {
  static let title = "Downpipe"

  let name = Self.title
  /// The path of the tool.
  let executable: String
  /// The path of this program.
  let benchmark: String

  func command(for assignment: Assignment) -> ProgramCommand? {
    var options = ["get", "-q", "-d", assignment.folder]
    if let certificate = assignment.certificate { options += ["--ca-certificate", certificate] }
    switch assignment.kind {
    case .file: break
    case .verified(let sha256): options += ["--checksum", "sha256=\(sha256)"]
    case .gunzipped: options.append("--gunzip")
    case .list(let jobs): return ProgramCommand(executable, options + ["-j", "\(jobs)", "-i", assignment.list])
    case .segments(let count, _):
      options += ["-s", "\(count)"] + assignment.urls.dropFirst().flatMap { ["--mirror", $0] }
    // The tool downloads 1,000 files at once at most.
    case .slow(let count):
      return ProgramCommand(
        benchmark, ["slow", "--list", assignment.list, "--directory", assignment.folder, "--jobs", "\(count)"])
    }
    return ProgramCommand(executable, options + [assignment.url])
  }
}
