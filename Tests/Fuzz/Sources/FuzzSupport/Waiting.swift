import Dispatch
import Foundation
import Synchronization

/// Runs asynchronous work from libFuzzer's thread, which has no task.
public enum Waiting {
  /// Returns when the work has ended, and ends the process when it takes too long.
  public static func run(within limit: Duration, _ what: String, _ work: @escaping @Sendable () async -> Void) {
    let done = DispatchSemaphore(value: 0)
    Task.detached {
      await work()
      done.signal()
    }
    let seconds = limit / .seconds(1)
    if done.wait(timeout: .now() + seconds) == .timedOut { fail("\(what) took more than \(seconds) s") }
  }
}

/// Writes a line beside libFuzzer's.
public func note(_ text: String) { FileHandle.standardError.write(Data("== \(text)\n".utf8)) }

/// Ends the process, so that libFuzzer keeps the input.
public func fail(_ text: String) -> Never {
  note("defect: \(text)")
  abort()
}
