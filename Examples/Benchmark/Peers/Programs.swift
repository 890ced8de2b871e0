import Foundation

/// The programs that a benchmark needs, and where they are.
struct Programs: Sendable {
  let downpipe: DownpipePeer
  /// The others that are installed.
  let others: [any Peer]
  let nginx: String

  /// - Parameters:
  ///   - downpipe: The tool; `nil` for the one beside this program.
  ///   - nginx: The server; `nil` for the one of the system.
  ///   - allowsMissing: Whether the comparison goes on without peers that are not installed.
  /// - Throws: ``BenchmarkError`` that names the Debian packages to install.
  init(downpipe: String?, nginx: String?, allowsMissing: Bool) throws {
    let tool = try downpipe.map { URL(filePath: $0).standardizedFileURL.path } ?? Products.path("downpipe")
    self.downpipe = DownpipePeer(executable: tool)
    let peers: [any Peer] = [CurlPeer(), CurlThenTarPeer(), Aria2Peer(), Wget2Peer(), AxelPeer()]
    others = peers.filter { Self.find($0.executable) != nil }
    let server = nginx ?? "nginx"
    self.nginx = Self.find(server) ?? ""

    var problems: [String] = []
    if Self.find(tool) == nil { problems.append("\(tool) is not an executable: choose the tool with --downpipe") }
    if self.nginx.isEmpty { problems.append("\(server) is missing (package nginx): there is no comparison without it") }
    if Self.find("openssl") == nil { problems.append("openssl is missing (package openssl): it makes a certificate") }
    let missing = peers.filter { $0.isProgram && Self.find($0.executable) == nil }
    if !allowsMissing {
      problems += missing.map {
        "\($0.executable) is missing (package \($0.package)); --allow-missing goes on without it"
      }
    }
    guard problems.isEmpty else { throw BenchmarkError(problems.joined(separator: "\n")) }
  }

  /// The path of a program.
  static func find(_ program: String) -> String? {
    if program.contains("/") {
      let path = URL(filePath: program).standardizedFileURL.path
      return FileManager.default.isExecutableFile(atPath: path) ? path : nil
    }
    let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
    // Servers are in folders that a user's path need not have.
    return (path.split(separator: ":").map(String.init) + ["/usr/sbin", "/usr/local/sbin"])
      .map { "\($0)/\(program)" }.first { FileManager.default.isExecutableFile(atPath: $0) }
  }

  /// The versions of all programs, by name.
  func versions(_ processes: Processes) async -> [(name: String, version: String)] {
    var versions: [(String, String)] = []
    let commands =
      [("Downpipe", [downpipe.executable, "--version"])]
      + others.filter(\.isProgram).map { ($0.name, [$0.executable, "--version"]) }
      + [("nginx", [nginx, "-v"]), ("openssl", ["openssl", "version"])]
    for (name, command) in commands {
      let output = try? await processes.run(ProgramCommand(command[0], Array(command.dropFirst()))).output
      versions.append((name, Self.number(in: output ?? "") ?? "unknown version"))
    }
    return versions
  }

  /// The first number with a dot.
  private static func number(in text: String) -> String? {
    text.firstMatch(of: /\d+\.\d[\w.]*/).map { String($0.output) }
  }
}
