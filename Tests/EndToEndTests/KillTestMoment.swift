import DownpipeTesting
import Foundation

/// When the tool is killed; chosen before it starts.
///
/// Some runs are killed after a time. That rarely hits the last millisecond of a file
/// (steps, publishing, the final state in the ledger). So other runs are killed soon after the server has sent the last
/// byte of a file, or after the finished file has appeared.
enum KillTestMoment: Sendable, CustomStringConvertible {
  /// This long after the process was started.
  case afterStart(Duration)
  /// This long after the server has sent this many bytes to this run.
  case afterBytes(Int64, Duration)
  /// This long after the server has sent the last byte of the nth file of this run.
  case afterFile(Int, Duration)
  /// This long after a path exists.
  case afterAppearance(String, Duration)

  var description: String {
    switch self {
    case .afterStart(let delay): "\(delay) after its start"
    case .afterBytes(let count, let delay): "\(delay) after \(count) bytes"
    case .afterFile(let number, let delay): "\(delay) after the last byte of file \(number)"
    case .afterAppearance(let path, let delay): "\(delay) after \(path) was there"
    }
  }

  /// Draws a moment for a run that has something left to do.
  ///
  /// - Parameters:
  ///   - bytes: the number of bytes that are left.
  ///   - results: the paths of the files that are left.
  ///   - duration: how long the rest takes at least.
  static func draw(
    bytes: Int64, results: [String], duration: Duration, using generator: inout SeededGenerator
  ) -> KillTestMoment {
    switch Int.random(in: 0..<100, using: &generator) {
    case ..<12: .afterStart(.microseconds(.random(in: 0...250_000, using: &generator)))
    case ..<37: .afterStart(duration * Double.random(in: 0...1, using: &generator) + .milliseconds(100))
    case ..<57:
      .afterBytes(
        .random(in: 0...max(0, bytes), using: &generator), .microseconds(.random(in: 0...100_000, using: &generator)))
    case ..<80:
      .afterFile(.random(in: 1...max(1, results.count), using: &generator), soon(2...5.2, using: &generator))
    default: .afterAppearance(results.randomElement(using: &generator) ?? "", soon(1...4.5, using: &generator))
    }
  }

  /// A time between two powers of ten of microseconds: as likely within the first millisecond as from 10 to 100.
  private static func soon(
    _ exponents: ClosedRange<Double>, using generator: inout SeededGenerator
  ) -> Duration {
    .microseconds(Int64(pow(10, Double.random(in: exponents, using: &generator))))
  }
}
