internal import Foundation

/// What a reply says of the file beside what is known of it: the row of a table that applies to it.
///
/// **A reply that contradicts what is known is never taken for the file, and nothing on disk is given up for it.** Known are the
/// bytes on disk, the size of the file, its validator, media type, content coding and digests: of a partial, of the file that a
/// refresh is about, and, after an automatic restart, of the bytes that were given up. ``ResumePlan`` applies the row to the
/// bytes of the reply.
package enum ReplyRow: String, CaseIterable, Sendable {
  /// An empty body, although the file is known not to be empty.
  case empty
  /// A web page, although the file is none.
  case page
  /// Text, JSON or XML, although the file is of another kind.
  case otherKind
  /// The user has asked for what the server has now, and it is another file.
  case permittedOther
  /// The validator that is known, with another size.
  case sameValidatorOtherSize
  /// Another validator, with fewer bytes than are on disk, and without a later date.
  case shorterWithoutLaterDate
  /// Another validator of the same form, from the same resource, or a later date.
  case otherVersion
  /// A strong digest other than the one that is known, without another validator.
  case otherDigest
  /// Another size, without a validator that says so.
  case otherSize
  /// Another content coding.
  case otherCoding
  /// A validator that differs, and proves nothing: one of another form, an earlier date, or one of another resource.
  case otherProof
  /// Nothing that contradicts what is known.
  case fits

  /// When a reply comes.
  package enum Occasion: String, CaseIterable, Sendable {
    /// The first bytes of a download, also after an automatic restart.
    case first
    /// Bytes are on disk, and the rest of the file is asked for: from the same place, a mirror, or by a fresh link.
    case resumed
    /// A finished file is refreshed.
    case refreshed
    /// The user has restarted the download or changed its URL, or the bytes on disk were imported.
    case permitted

    /// Whether what the server has now may be another file, without proof.
    var isPermission: Bool { self == .refreshed || self == .permitted }
  }

  /// What follows for the bytes of a reply.
  package enum Decision: String, Sendable {
    /// The bytes are of the file, as far as the range and the bytes on disk agree.
    case goesOn = "goes on"
    /// A whole body is compared with the bytes on disk; instead of a range, the whole file is asked for.
    case compares
    /// A whole body is written beside the bytes on disk; instead of a range, the whole file is asked for.
    case replaces
    /// Nothing of it is used. After a request for a range, the whole file is asked for once.
    case refuses
  }

  /// What follows for the bytes of the reply.
  package var decision: Decision {
    switch self {
    case .fits: .goesOn
    case .otherProof: .compares
    case .permittedOther, .otherVersion: .replaces
    case .empty, .page, .otherKind, .sameValidatorOtherSize, .shorterWithoutLaterDate, .otherDigest, .otherSize,
      .otherCoding:
      .refuses
    }
  }

  /// Why, as the end of a sentence.
  package var reason: String {
    switch self {
    case .empty: "an empty body is an error of the server, or that of an expired link"
    case .page: "most likely a log-in page or that of an expired link"
    case .otherKind: "most likely a message about an error or an expired link"
    case .permittedOther: "the server's present file was asked for"
    case .sameValidatorOtherSize: "the validator says that the file is the same, and the size that it is not"
    case .shorterWithoutLaterDate: "it is shorter than the bytes on disk, and has no later date"
    case .otherVersion: "the file on the server has changed"
    case .otherDigest: "its digest differs, and nothing else says that the file has changed"
    case .otherSize: "its size differs, and nothing else says that the file has changed"
    case .otherCoding: "sizes and bytes of two content codings cannot be compared"
    case .otherProof: "its validator proves nothing"
    case .fits: "nothing contradicts what is known"
    }
  }
}

extension ReplyRow {
  /// The row of a reply that has, or may have, bytes of the file.
  ///
  /// - Parameters:
  ///   - reply: The reply. Its coverage says what its bytes are; see ``SourceReply/asRead(to:known:)``.
  ///   - request: The request that it answers.
  ///   - known: What is known of the file, with the ranges on disk.
  ///   - occasion: When the reply comes.
  ///   - hasDigest: Whether a digest of the request is checked at the end, which then decides what no bytes on disk prove.
  package static func of(
    _ reply: SourceReply, to request: SourceRequest, known: Checkpoint, _ occasion: Occasion, hasDigest: Bool = false
  ) -> ReplyRow {
    let have = known.ranges.end
    let size = reply.statedSize
    // Whether a media type is that of the file does not matter for a range of a file of the known size: its bytes tell.
    let isRangeOfKnownSize = reply.coverage != .whole && known.total != .unknown && known.total == size
    if size == .known(0), have > 0 || known.total.bytes ?? 0 > 0 { return .empty }
    if have == 0, hasDigest, request.range == nil { return .fits }
    switch (MediaType.Kind(known.mediaType), MediaType.Kind(reply.mediaType)) {
    // The page may have been that of a log-in.
    case (.unknown, _), (_, .unknown), (_, .content), (.page, _): break
    case (let old, let new) where old == new: break
    case (_, .page): return .page
    default: if !isRangeOfKnownSize { return .otherKind }
    }
    let comparison = ResumePlan.comparison(of: known, with: reply, to: request)
    let isElsewhere = known.isElsewhere(than: reply.finalURL ?? request.url)
    // Without bytes, the coding of the bytes that were given up says only which sizes can be compared.
    let isSameCoding = reply.contentCoding == known.contentCoding
    let isShorter = isSameCoding && size.bytes.map { $0 < have } ?? false
    let hasOtherSize =
      isShorter || isSameCoding && known.total != .unknown && size != .unknown && size != known.total
    let hasOtherDigest = isSameCoding && known.digests.contains { $0.algorithm.isStrong && reply.contradicts($0) }
    if occasion.isPermission,
      comparison == .changed && !isElsewhere || hasOtherSize || hasOtherDigest || have > 0 && !isSameCoding
    {
      return .permittedOther
    }
    switch comparison {
    case .sameStrong, .sameWeak: if hasOtherSize { return .sameValidatorOtherSize }
    case .changed where !isElsewhere:
      let isLater = known.validator?.isEarlier(than: reply.validator) ?? false
      if isShorter, !isLater { return .shorterWithoutLaterDate }
      if isLater || known.validator?.hasForm(of: reply.validator) ?? false { return .otherVersion }
    case .changed, .absent: break
    }
    if hasOtherDigest { return .otherDigest }
    if hasOtherSize { return .otherSize }
    if have > 0, !isSameCoding { return .otherCoding }
    return comparison == .changed ? .otherProof : .fits
  }

  /// The error of a reply that is not used, or that is another version: what the server sends, and what was expected.
  func error(_ reply: SourceReply, known: Checkpoint) -> DownloadError {
    let new = FileText(reply.statedSize, reply.mediaType, reply.contentCoding)
    let have = known.ranges.end
    let old = FileText(known.total, known.mediaType, known.contentCoding, atLeast: have)
    let what = new == old ? "\(new) that are not the same" : "\(new), not \(old)"
    return DownloadError(
      self == .otherCoding ? .wrongContentCoding : .contentChanged, "the server now sends \(what): \(reason)")
  }
}

/// A file in a few words: `3,000,000 bytes of video/mp4`.
private struct FileText: Equatable, CustomStringConvertible {
  let description: String

  init(_ size: ByteCount, _ mediaType: String?, _ coding: String?, atLeast: Int64 = 0) {
    var text =
      switch size {
      case .known(1): "1 byte"
      case .known(let bytes): "\(bytes.grouped) bytes"
      case .unknown: atLeast > 0 ? "at least \(atLeast.grouped) bytes" : "a number of bytes that it does not state"
      }
    if let mediaType { text += " of \(MediaType.withoutParameters(mediaType).prefix(100).escaped)" }
    if let coding { text += " in the content coding “\(coding.prefix(100).escaped)”" }
    description = text
  }
}

extension Int64 {
  /// The number with a comma after each three digits, in every locale.
  fileprivate var grouped: String {
    var text = ""
    let digits = String(self)
    for (index, digit) in digits.enumerated() {
      if index > 0, (digits.count - index) % 3 == 0 { text.append(",") }
      text.append(digit)
    }
    return text
  }
}

extension SourceReply {
  /// The size of the whole representation, as far as the reply states it.
  var statedSize: ByteCount {
    switch coverage {
    case .whole: length
    case .range(_, let total): total
    case .multipart, .unreadable, .none: .unknown
    }
  }

  /// Whether the reply states another digest of the same algorithm.
  fileprivate func contradicts(_ digest: FileDigest) -> Bool {
    digests.contains { $0.algorithm == digest.algorithm } && !digests.contains(digest)
  }
}

extension Validator {
  /// Whether another validator has a later date.
  fileprivate func isEarlier(than other: Validator?) -> Bool {
    guard let mine = lastModified, let theirs = other?.lastModified else { return false }
    return theirs > mine
  }

  /// Whether another validator has an entity tag of the same strength.
  fileprivate func hasForm(of other: Validator?) -> Bool {
    guard let mine = entityTag, let theirs = other?.entityTag else { return false }
    return mine.isWeak == theirs.isWeak
  }
}
