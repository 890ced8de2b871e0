import Dispatch
import Foundation
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// What the benchmark must not leave behind: process groups and folders.
final class Leftovers: Sendable {
  static let shared = Leftovers()

  private struct State {
    var groups: Set<Int32> = []
    var folders: Set<String> = []
    var isEnding = false
  }

  private let state = Mutex(State())

  /// Removes everything and exits at SIGINT, SIGTERM and SIGHUP.
  func removeAtSignals() {
    let queue = DispatchQueue(label: "benchmark.signals")
    for number in [SIGINT, SIGTERM, SIGHUP] {
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
      // The handler keeps the source alive: it listens as long as the process runs.
      source.setEventHandler {
        withExtendedLifetime(source) {
          self.removeAll()
          exit(128 + number)
        }
      }
      source.resume()
    }
  }

  /// Registers the process group that `start` begins. Nothing starts any more after ``removeAll()``.
  func start(_ start: () throws -> Int32) throws {
    try state.withLock { state in
      guard !state.isEnding else { throw CancellationError() }
      state.groups.insert(try start())
    }
  }

  func ended(_ group: Int32) { state.withLock { _ = $0.groups.remove(group) } }

  /// Registers the temporary folder that `create` creates. No folder is created any more after ``removeAll()``.
  func create(_ folder: String, _ create: () throws -> Void) throws {
    try state.withLock { state in
      guard !state.isEnding else { throw CancellationError() }
      state.folders.insert(folder)
      try create()
    }
  }

  func remove(_ folder: String) {
    try? FileManager.default.removeItem(atPath: folder)
    state.withLock { _ = $0.folders.remove(folder) }
  }

  func removeAll() {
    let state = state.withLock { state in
      state.isEnding = true
      return state
    }
    for group in state.groups { Self.kill(group) }
    for folder in state.folders {
      // A killed process may write until it is gone, and a folder with a new file cannot be removed.
      for _ in 0..<Self.attempts {
        remove(folder)
        guard FileManager.default.fileExists(atPath: folder) else { break }
        usleep(Self.pause)
      }
    }
  }

  /// Five minutes: on a busy machine it takes long until a killed process is gone.
  private static let attempts = 15_000
  private static let pause: UInt32 = 20_000

  static func kill(_ group: Int32) {
    #if canImport(Glibc)
      _ = Glibc.kill(-group, SIGKILL)
    #else
      _ = Darwin.kill(-group, SIGKILL)
    #endif
  }
}
