import DownpipeTesting
import Foundation

/// When the tool is killed: chosen before it starts.
///
/// A run is killed at some time after its start, whatever it is doing then. That alone would rarely hit what takes a
/// millisecond at the end of each file (the steps, publishing, the ledger's last word), so that others are killed
/// soon after the server has sent a file's last byte, or after the finished file has appeared.
enum KillTestMoment: Sendable, CustomStringConvertible {
  /// So long after the process was made.
  case afterStart(Duration)
  /// So long after the server has sent so many bytes to this run.
  case afterBytes(Int64, Duration)
  /// So long after the server has sent the last byte of the how many-th file of this run.
  case afterFile(Int, Duration)
  /// So long after there is something at a path.
  case afterAppearance(String, Duration)

  var description: String {
    switch self {
    case .afterStart(let delay): "\(delay) after its start"
    case .afterBytes(let count, let delay): "\(delay) after \(count) bytes"
    case .afterFile(let number, let delay): "\(delay) after the last byte of file \(number)"
    case .afterAppearance(let path, let delay): "\(delay) after \(path) was there"
    }
  }

  /// Draws one for a run that has something left to do.
  ///
  /// - Parameters:
  ///   - bytes: how many are left.
  ///   - results: where the files will be that are left.
  ///   - duration: how long that will take at least.
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
