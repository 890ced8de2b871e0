#if RPC
  import Downpipe
  import DownpipeTesting
  import Foundation

  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Darwin)
    import Darwin
  #endif

  /// An aria2c with an RPC server at a port and in a folder of its own. It is killed with this value.
  final class RealAria2: Sendable {
    static let token = "sesame"

    let folder: TemporaryFolder
    let port: Int
    var place: LocalPlace { .port(port) }
    private let process: Process
    private let status: Watched<Int32?>

    /// Starts an aria2c, and returns when it answers.
    /// - Throws: `DownloadError` if there is none on this machine, or if it ends.
    static func start() async throws -> RealAria2 {
      let version = try await Command("aria2c", ["--version"]).run()
      guard version.status == 0 else {
        throw DownloadError(.invalidRequest, "aria2c is missing: run .ci/setup --tests. \(version.errors)")
      }
      let server = try RealAria2()
      while true {
        if (try? await server.place.send("GET", "/jsonrpc")) != nil { return server }
        if let status = server.status.value {
          throw DownloadError(.invalidRequest, "aria2c does not start: status \(status)")
        }
        try Task.checkCancellation()
        await Task.yield()
      }
    }

    private init() throws {
      folder = try TemporaryFolder()
      // aria2c cannot choose a free port itself.
      port = try RefusingPort().port
      try FileManager.default.createDirectory(atPath: folder.path("out"), withIntermediateDirectories: false)
      process = Process()
      process.executableURL = URL(filePath: "/usr/bin/env")
      process.arguments = [
        "aria2c", "--no-conf", "--enable-rpc", "--rpc-listen-port=\(port)", "--rpc-secret=\(Self.token)",
        "--dir=\(folder.path("out"))", "--quiet", "--enable-dht=false",
      ]
      process.standardInput = FileHandle.nullDevice
      process.standardOutput = FileHandle.nullDevice
      process.standardError = FileHandle.nullDevice
      let status = Watched<Int32?>(nil)
      self.status = status
      process.terminationHandler = { process in
        let code = process.terminationStatus
        status.update { $0 = code }
      }
      try process.run()
    }

    deinit { if status.value == nil { kill(process.processIdentifier, SIGKILL) } }

    /// Kills it, and waits for its end.
    func end() async {
      kill(process.processIdentifier, SIGKILL)
      await status.wait { $0 != nil }
    }
  }
#endif
