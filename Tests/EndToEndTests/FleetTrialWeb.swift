#if os(Linux) && Postgres
  import ChildPipe
  import DownpipeCore
  import Foundation
  import Glibc

  @testable import FaultyServer

  /// The web of the trial: a process on a machine of its own that is all hosts.
  final class FleetTrialWeb: Sendable {
    private let machine: FleetTrialMachine
    private let process = Process()
    private let input: FileHandle
    /// Open as long as the server: it prints when it ends.
    private let output: FileHandle
    private let log: String

    init(on machine: FleetTrialMachine, seed: UInt64, delay: Duration, log: String) throws {
      (self.machine, self.log) = (machine, log)
      let (input, output) = (try ChildPipe(), try ChildPipe())
      let program = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().appending(path: "FaultyServer")
        .path
      process.executableURL = URL(filePath: machine.launcher[0])
      process.arguments =
        machine.launcher.dropFirst() + [
          program, "serve", "--address", "0.0.0.0", "--port", "80", "--seed", "\(seed)", "--delay",
          "\(Int(delay / .milliseconds(1)))", "--log", log,
        ]
      try process.run(input: input, output: output)
      (self.input, self.output) = (input.fileHandleForWriting, output.fileHandleForReading)
      let answer = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
      guard answer.hasPrefix("ready") else { throw DownloadError(.network, "the web server does not start: \(answer)") }
    }

    /// Ends the server, and returns its log.
    func close() async throws -> [ServedRequest] {
      try input.close()
      while process.isRunning { try await Task.sleep(for: .milliseconds(20)) }
      let text = try String(contentsOfFile: log, encoding: .utf8)
      return text.split(separator: "\n").compactMap { ServedRequest(line: $0) }
    }
  }
#endif
