import Foundation

/// How often a test repeats what chance decides: a few times in `.ci/test`, many times in the long form, which
/// `DOWNPIPE_LONG=1` selects (`.ci/long properties`).
package enum LongForm {
  /// Whether this is the long form.
  package static let isSelected = ProcessInfo.processInfo.environment["DOWNPIPE_LONG"] == "1"

  /// The number of repetitions.
  package static func count<Number: BinaryInteger>(_ usual: Number, long: Number) -> Number {
    isSelected ? long : usual
  }
}
