import DownpipeCore

/// Names with a number, for files that must not take the place of others: `film (1).mkv`.
enum NumberedName {
  /// The name with a number before its extension; a folder's name has no extension.
  ///
  /// The stem is cut where the whole would be longer than a file system takes.
  static func make(_ name: String, _ number: Int, kind: Artifact.Kind) -> String {
    let ending = kind == .directory ? "" : self.ending(of: name)
    let suffix = " (\(number))" + ending
    var stem = String(name.unicodeScalars.dropLast(ending.unicodeScalars.count))
    while stem.utf8.count + suffix.utf8.count > PathText.maximumNameLength, !stem.isEmpty {
      // A scalar, not a character: one character can be longer than any name.
      stem.unicodeScalars.removeLast()
    }
    return stem + suffix
  }

  /// Whether a name is what ``make(_:_:kind:)`` gives for another one and some number.
  static func isNumbered(_ candidate: String, from name: String, kind: Artifact.Kind) -> Bool {
    let ending = kind == .directory ? "" : self.ending(of: name)
    guard candidate.hasSuffix(")" + ending), let open = candidate.lastIndex(of: "(") else { return false }
    let digits = candidate[candidate.index(after: open)...].dropLast(ending.count + 1)
    guard let number = Int(digits), number > 0 else { return false }
    return make(name, number, kind: kind) == candidate
  }

  /// The extension with its dot, `.tar.gz` and the like in one piece; empty when there is none.
  ///
  /// What follows the last dot counts when it looks like an extension: 1 to 16 bytes without blanks, behind a stem.
  static func ending(of name: String) -> String {
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

  /// The smallest number found free by a search that doubles and then halves: numbers below it may
  /// be free too when somebody has deleted files in between, which does no harm.
  ///
  /// Looking at each number in turn would cost a million calls for the millionth `index.html`.
  static func firstFree<Failure: Error>(_ isTaken: (Int) throws(Failure) -> Bool) throws(Failure) -> Int {
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
