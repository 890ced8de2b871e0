internal import Foundation

extension Checkpoint {
  /// What is known of the file without the bytes: its size, validator, media type and coding. A reply that contradicts them is
  /// not taken for the file, see ``ReplyRow``.
  package var facts: Checkpoint {
    Checkpoint(
      total: total, validator: validator, resource: resource, contentCoding: contentCoding, mediaType: mediaType)
  }
}

extension DownloadRecord {
  /// Forgets the bytes of the partial in use. What is known of the file stays.
  mutating func forgetBytes() {
    checkpoint = checkpoint.facts
    dropSteps()
  }

  /// Goes on with the earlier version, if its bytes are kept. Those of the version in use take their place as kept ones.
  /// - Returns: Whether there is an earlier version.
  @discardableResult
  mutating func goBackToEarlierVersion() -> Bool {
    guard let earlier = versions.earlier else { return false }
    versions.earlier = checkpoint.ranges.isEmpty ? nil : checkpoint
    versions.isWanted = false
    versions.isInSecond.toggle()
    checkpoint = earlier
    dropSteps()
    return true
  }

  /// Begins another version of the file, in the other partial. The bytes of this one are kept, unless those of a version before
  /// are: then these stay, and the bytes in use are overwritten.
  ///
  /// - Parameter isWanted: Whether it may be of any size.
  mutating func beginVersion(isWanted: Bool) {
    if versions.earlier == nil {
      versions = VersionLog(isInSecond: !versions.isInSecond, hasOther: true, earlier: checkpoint)
    }
    (versions.mayChange, versions.isWanted) = (false, isWanted)
    checkpoint = Checkpoint(mediaType: versions.earlier?.mediaType)
    dropSteps()
  }

  /// Why a complete version does not take the place of the one before; `nil` if it does. The reply with which it began may not have
  /// stated its size.
  var contradictionOfVersion: DownloadError? {
    guard let earlier = versions.earlier, case .known(let total) = checkpoint.total else {
      return nil
    }
    let reply = SourceReply(
      coverage: .whole, length: .known(total), validator: checkpoint.validator, contentCoding: checkpoint.contentCoding,
      mediaType: checkpoint.mediaType, finalURL: checkpoint.resource.flatMap { URL(string: $0) }, body: .empty)
    let row = ReplyRow.of(reply, to: SourceRequest(url: request.url, id: id), known: earlier, .resumed)
    return row == .empty || row == .shorterWithoutLaterDate && !versions.isWanted
      ? row.error(reply, known: earlier) : nil
  }
}
