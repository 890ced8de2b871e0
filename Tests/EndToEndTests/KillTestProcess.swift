import Dispatch
import Downpipe
import DownpipeTesting
import Foundation
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// One run of the tool, which is killed at a moment chosen before it starts unless it ends before.
final class KillTestProcess: Sendable {
  struct Ending: Sendable {
    /// As shells report it: 128 and the number of the signal for a process that a signal has ended.
    let status: Int32
    /// Why the tool was killed; `nil` when it ended by itself.
    let killed: Killing?
  }

  enum Killing: Sendable, Hashable {
    case asPlanned
    /// The tool has not ended in two minutes; a run takes seconds.
    case hung
  }

  private struct State {
    var process: Int32?
    var isOver = false
    var isScheduled = false
    var killed: Killing?
  }

  private let moment: KillTestMoment?
  private let state = Mutex(State())

  init(killedAt moment: KillTestMoment?) { self.moment = moment }

  /// Runs the tool of the same build as these tests.
  ///
  /// - Parameters:
  ///   - output: the file for its standard output: unlike the bytes of a pipe, they outlive the tool.
  ///   - errors: the file for its standard error.
  func run(_ arguments: [String], output: String, errors: String) async throws -> Ending {
    let process = Process()
    process.executableURL = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
      .appending(path: "downpipe")
    process.arguments = arguments
    process.standardInput = FileHandle.nullDevice
    let files = try [output, errors].map { path in
      _ = FileManager.default.createFile(atPath: path, contents: nil)
      return try FileHandle(forWritingTo: URL(filePath: path))
    }
    defer { for file in files { try? file.close() } }
    process.standardOutput = files[0]
    process.standardError = files[1]
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        process.terminationHandler = { [self] process in
          let isSignal = process.terminationReason == .uncaughtSignal
          continuation.resume(
            returning: Ending(status: process.terminationStatus + (isSignal ? 128 : 0), killed: end()))
        }
        do {
          try process.run()
          begin(process.processIdentifier)
        } catch {
          continuation.resume(throwing: error)
        }
      }
    } onCancel: {
      kill(because: .hung)
    }
  }

  /// The server has sent this many bytes and this many complete files to this run.
  func served(_ bytes: Int64, files: Int) {
    switch moment {
    case .afterBytes(let count, let delay) where bytes >= count: schedule(after: delay)
    case .afterFile(let number, let delay) where files >= number: schedule(after: delay)
    default: break
    }
  }

  // MARK: -

  private func begin(_ process: Int32) {
    state.withLock { if !$0.isOver { $0.process = process } }
    switch moment {
    case .afterStart(let delay): schedule(after: delay)
    case .afterAppearance(let path, let delay):
      Thread.detachNewThread { [self] in
        while state.withLock({ !$0.isOver }) {
          if access(path, F_OK) == 0 { return schedule(after: delay) }
          usleep(100)
        }
      }
    default: break
    }
    Self.later(.hangLimit) { [weak self] in self?.kill(because: .hung) }
  }

  private func end() -> Killing? {
    state.withLock { state in
      state.isOver = true
      state.process = nil
      return state.killed
    }
  }

  private func schedule(after delay: Duration) {
    let isFirst = state.withLock { state in
      defer { state.isScheduled = true }
      return !state.isScheduled
    }
    if isFirst { Self.later(delay) { [weak self] in self?.kill(because: .asPlanned) } }
  }

  private func kill(because reason: Killing) {
    state.withLock { state in
      guard let process = state.process, state.killed == nil else { return }
      state.killed = reason
      _ = systemKill(process, SIGKILL)
    }
  }

  private static func later(_ delay: Duration, _ body: @escaping @Sendable () -> Void) {
    let (seconds, attoseconds) = delay.components
    let nanoseconds = Int(seconds) * 1_000_000_000 + Int(attoseconds / 1_000_000_000)
    DispatchQueue.global(qos: .userInteractive).asyncAfter(deadline: .now() + .nanoseconds(nanoseconds), execute: body)
  }
}

/// Calls `kill(2)`, which a method of the same name hides.
private func systemKill(_ process: Int32, _ signal: Int32) -> Int32 { kill(process, signal) }
