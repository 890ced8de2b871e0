import Foundation

/// What a program used, from its start to its end, with the processes that it waited for.
struct ProcessUse: Sendable {
  /// As shells report it: 128 and the number of the signal for a program that a signal has ended.
  let status: Int32
  /// When it was started, on the monotonic clock, in nanoseconds.
  let start: UInt64
  let wallSeconds: Double
  /// User and system time.
  let cpuSeconds: Double
  /// The largest of its processes.
  let peakMemory: Int64

  /// Reads the line that the launcher writes.
  init?(_ line: String) {
    let numbers = line.split(whereSeparator: \.isWhitespace).compactMap { Int64($0) }
    guard numbers.count == 5 else { return nil }
    status = Int32(clamping: numbers[0])
    start = UInt64(clamping: numbers[1])
    wallSeconds = Double(numbers[2]) / 1e9
    cpuSeconds = Double(numbers[3]) / 1e6
    peakMemory = numbers[4]
  }
}

/// A program with its arguments.
struct ProgramCommand: Sendable {
  var arguments: [String]
  /// Variables besides those that every program of the benchmark gets.
  var environment: [String: String] = [:]

  init(_ program: String, _ arguments: [String] = [], environment: [String: String] = [:]) {
    self.arguments = [program] + arguments
    self.environment = environment
  }

  /// Commands of a shell; `values` are its `$1`, `$2`, ….
  static func shell(_ script: String, _ values: [String]) -> ProgramCommand {
    ProgramCommand("bash", ["-o", "pipefail", "-c", script, "benchmark"] + values)
  }
}

/// Something that makes a benchmark impossible, in words for the one who runs it.
struct BenchmarkError: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}
