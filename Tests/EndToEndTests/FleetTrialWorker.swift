#if os(Linux) && Postgres
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import Glibc
  import Synchronization

  /// A worker on a machine of its own: `downpipe work`, which is started again when it ends, as systemd does it.
  final class FleetTrialWorker: Sendable {
    private struct State {
      /// What has started the worker on its machine, and the worker.
      var launcher: Int32 = 0
      var process: Int32 = 0
      /// Why the process ends, if the trial ends it.
      var isKilled = false
      var isStopping = false
      var starts = 0
      var statuses: [Int32] = []
      var unexpected: [String] = []
    }

    let number: Int
    let machine: FleetTrialMachine
    /// The folder of its files.
    let folder: String
    let endpoint: String
    private let words: [String]
    private let log: String
    private let state = Mutex(State())
    /// The number of processes that have ended.
    private let ends = Watched(0)

    init(
      _ number: Int, on machine: FleetTrialMachine, in folder: String, _ settings: FleetTrialSettings, ledger: String
    ) {
      (self.number, self.machine) = (number, machine)
      self.folder = "\(folder)/\(machine.name)"
      log = "\(folder)/\(machine.name).log"
      endpoint = "\(machine.address):9464"
      words = [
        settings.tool, "work", "--ledger", ledger, "-d", self.folder, "-j", "\(settings.jobs)", "--fleet-per-host",
        "\(settings.perHost)", "--retry", "20", "--connect-timeout", "5", "--min-speed", "100", "--listen", endpoint,
        "--json",
      ]
    }

    /// How often a process was started.
    var starts: Int { state.withLock { $0.starts } }
    /// Processes that have ended although the trial had not ended them, with their last words.
    var unexpectedEnds: [String] { state.withLock { $0.unexpected } }
    /// The lines of all processes.
    var lines: [ToolLine] {
      let text = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
      return text.split(separator: "\n").compactMap { ToolLine($0) }
    }
    var errors: String { (try? String(contentsOfFile: log + ".errors", encoding: .utf8)) ?? "" }

    /// The partials and the folders of steps on its disk.
    var leftovers: [String] {
      let own = (try? FileManager.default.subpathsOfDirectory(atPath: folder + "/.downpipe")) ?? []
      return own.filter { $0.hasPrefix("partials/") || $0.hasPrefix("work/") }
    }

    func start() throws {
      let process = Process()
      process.executableURL = URL(filePath: machine.launcher[0])
      process.arguments = Array(machine.launcher.dropFirst()) + words
      process.standardInput = FileHandle.nullDevice
      let files = try [log, log + ".errors"].map { path in
        if !FileManager.default.fileExists(atPath: path) {
          _ = FileManager.default.createFile(atPath: path, contents: nil)
        }
        let file = try FileHandle(forWritingTo: URL(filePath: path))
        try file.seekToEnd()
        // The last line of a killed process may have no end.
        try file.write(contentsOf: Data("\n".utf8))
        return file
      }
      defer { for file in files { try? file.close() } }
      (process.standardOutput, process.standardError) = (files[0], files[1])
      process.terminationHandler = { [self] process in
        let isSignal = process.terminationReason == .uncaughtSignal
        ended(process.terminationStatus + (isSignal ? 128 : 0))
      }
      try process.run()
      var worker: Int32?
      // It is there a few milliseconds later.
      while worker == nil, process.isRunning {
        worker = FleetTrialMachine.children(of: process.processIdentifier).first
        usleep(1000)
      }
      state.withLock { state in
        (state.launcher, state.process, state.isKilled) = (process.processIdentifier, worker ?? 0, false)
        state.starts += 1
      }
    }

    private func ended(_ status: Int32) {
      let startsAgain = state.withLock { state in
        state.statuses.append(status)
        (state.launcher, state.process) = (0, 0)
        guard !state.isKilled, !state.isStopping else { return false }
        state.unexpected.append("\(machine.name) ended with \(status)")
        return true
      }
      ends.update { $0 += 1 }
      guard startsAgain else { return }
      Thread.detachNewThread { [self] in
        sleep(2)
        guard state.withLock({ !$0.isStopping && $0.process == 0 && !$0.isKilled }) else { return }
        try? start()
      }
    }

    private func signal(_ signal: Int32, alsoLauncher: Bool = false) {
      state.withLock { state in
        if state.process > 0 { _ = Glibc.kill(state.process, signal) }
        if alsoLauncher, state.launcher > 0 { _ = Glibc.kill(state.launcher, signal) }
      }
    }

    /// Kills the process, and starts one after a while.
    func kill(away: Duration) async throws {
      let before = ends.value
      let isRunning = state.withLock { state in
        state.isKilled = true
        return state.process > 0
      }
      signal(SIGKILL)
      if isRunning { await ends.wait { $0 > before } }
      try await Task.sleep(for: away)
      try start()
    }

    func pause(for time: Duration) async throws {
      signal(SIGSTOP)
      try await Task.sleep(for: time)
      // The launcher has stopped itself with its child.
      signal(SIGCONT, alsoLauncher: true)
    }

    /// Ends the worker as systemd does it.
    /// - Returns: Its exit status.
    func stop() async -> Int32 {
      let (before, isRunning) = (ends.value, state.withLock { $0.process > 0 })
      state.withLock { $0.isStopping = true }
      signal(SIGTERM)
      if isRunning { await ends.wait { $0 > before } }
      return state.withLock { $0.statuses.last ?? -1 }
    }
  }
#endif
