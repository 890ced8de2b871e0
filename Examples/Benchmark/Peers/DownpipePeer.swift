import Foundation

/// The command-line tool of this package.
struct DownpipePeer: Peer {
  static let title = "Downpipe"

  let name = Self.title
  /// The path of the tool.
  let executable: String

  func command(for assignment: Assignment) -> ProgramCommand? {
    var options = ["get", "-q", "-d", assignment.folder]
    if let certificate = assignment.certificate { options += ["--ca-certificate", certificate] }
    switch assignment.kind {
    case .file: break
    case .verified(let sha256): options += ["--checksum", "sha256=\(sha256)"]
    case .gunzipped: options.append("--gunzip")
    // The tool may have been built without libarchive: a program with the library, which this one has.
    case .unpacked:
      return ProgramCommand(Products.executable.path, ["unpack", assignment.url, "--folder", assignment.folder])
    case .list(let jobs), .slow(let jobs):
      return ProgramCommand(executable, options + ["-j", "\(jobs)", "-i", assignment.list])
    case .segments(let count, _):
      options += ["-s", "\(count)"] + assignment.urls.dropFirst().flatMap { ["--mirror", $0] }
    }
    return ProgramCommand(executable, options + [assignment.url])
  }
}
