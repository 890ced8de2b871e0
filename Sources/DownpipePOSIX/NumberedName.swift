package import DownpipeCore

/// Names with a number, for files that must not replace others: `film (1).mkv`.
package enum NumberedName {
  /// The name with a number before its extension. The name of a folder has no extension.
  ///
  /// The stem is shortened when the result would be longer than ``PathText/maximumNameLength``.
  package static func make(_ name: String, _ number: Int, kind: Artifact.Kind) -> String {
    let ending = kind == .directory ? "" : self.ending(of: name)
    let suffix = " (\(number))" + ending
    var stem = String(name.unicodeScalars.dropLast(ending.unicodeScalars.count))
    while stem.utf8.count + suffix.utf8.count > PathText.maximumNameLength, !stem.isEmpty {
      // Scalars, since one character can be longer than a file name.
      stem.unicodeScalars.removeLast()
    }
    return stem + suffix
  }

  /// Whether ``make(_:_:kind:)`` returns `candidate` for `name` and some number.
  package static func isNumbered(_ candidate: String, from name: String, kind: Artifact.Kind) -> Bool {
    let ending = kind == .directory ? "" : self.ending(of: name)
    guard candidate.hasSuffix(")" + ending), let open = candidate.lastIndex(of: "(") else { return false }
    let digits = candidate[candidate.index(after: open)...].dropLast(ending.count + 1)
    guard let number = Int(digits), number > 0 else { return false }
    return make(name, number, kind: kind) == candidate
  }

  /// The extension with its dot, or two of them such as `.tar.gz`; empty when there is none.
  ///
  /// The text after the last dot is an extension if it has 1 to 16 bytes without blanks and follows a stem.
  package static func ending(of name: String) -> String {
    let parts = name.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count >= 2, let last = parts.last, (1...16).contains(last.utf8.count), !last.contains(" ")
    else { return "" }
    // ".profile" is a hidden file without an extension.
    if parts.count == 2, parts[0].isEmpty { return "" }
    let isTar = parts[parts.count - 2].caseInsensitivelyEquals("tar")
    if parts.count >= 3, isTar, !(parts.count == 3 && parts[0].isEmpty) {
      return ".\(parts[parts.count - 2]).\(last)"
    }
    return ".\(last)"
  }

  /// A free number whose predecessor is taken (or 1), found by doubling and then halving. Smaller numbers may be free,
  /// too, when files were deleted.
  ///
  /// Testing each number in turn would cost a million calls for the millionth `index.html`.
  package static func firstFree<Failure: Error>(_ isTaken: (Int) throws(Failure) -> Bool) throws(Failure) -> Int {
    var taken = 0
    var free = 1
    while try isTaken(free) {
      taken = free
      free *= 2
    }
    while free - taken > 1 {
      let middle = taken + (free - taken) / 2
      if try isTaken(middle) { taken = middle } else { free = middle }
    }
    return free
  }
}
