internal import Foundation

/// What to do with the bytes of a reply, given the bytes on disk: the heart of the engine.
///
/// A pure function through which every byte of every source passes. **No byte is written unless
/// coverage (start, end and total), length, validator and content coding agree with what is on disk.**
package enum ResumePlan: Sendable, Hashable {
  /// Go on at byte `offset`. The body begins `comparing` bytes earlier, at byte 0 where the server sent the whole;
  /// those must equal the bytes on disk, or nothing of the body is written.
  case append(at: Int64, comparing: Int64)
  /// Write the body from byte 0. What was on disk is of no use any more: why; `nil` when there was nothing.
  case restart(because: DownloadError?)
  /// Everything is on disk; the body, if any, is not needed.
  case alreadyComplete
  /// Nothing of the body may be written. Whether to resume, restart or give up is the retry policy's business.
  case reject(DownloadError)
}

/// How far a server's ranges are trusted. A URL whose answers could not be used is asked in a way that depends
/// less on its server; what is on disk is kept meanwhile.
package enum RangeTrust: Int, Sendable, Hashable, Comparable {
  /// Not at all: the whole is asked for, and compared with what is on disk before anything is written.
  case none
  /// Ranges are right, but validators are not enough to prove them.
  case overlap
  /// As RFC 9110 says.
  case full

  /// Less trust comes first.
  package static func < (left: RangeTrust, right: RangeTrust) -> Bool { left.rawValue < right.rawValue }
}

/// What is enough to go on with when the server gives no strong validator.
///
/// The last bytes on disk are always fetched again and compared, with a strong validator too: 64 KiB, or all where there
/// are fewer.
public enum ResumeValidation: Sendable, Hashable {
  /// Nothing: the whole is asked for. What is on disk stays as far as every byte of it is the same.
  case strict
  /// That the last so many bytes are the same; so many are compared with a strong validator, too.
  case overlap(Int64)
  /// That the digest of the whole, checked at the end, will tell. Without an expected digest, and in a pipeline without
  /// a ``DigestVerifying`` step, the same as `.strict`.
  case digest

  /// Compare the last 64 KiB.
  public static let standard = ResumeValidation.overlap(65_536)
}

extension ResumePlan {
  /// So many bytes are compared unless a validation says otherwise.
  private static let standardOverlap: Int64 = 65_536

  /// What to ask the server for, given what is on disk.
  package struct Question: Sendable, Hashable {
    /// The bytes to ask for; the whole when `nil`.
    package var range: RequestedRange?
    /// The validator to send with the range.
    package var validator: Validator?
  }

  /// The question that goes with a checkpoint.
  ///
  /// - Parameters:
  ///   - checkpoint: what is on disk.
  ///   - validation: what is enough without a strong validator.
  ///   - hasDigest: whether a digest of the whole will be checked at the end.
  ///   - trust: how far the server's ranges are trusted.
  package static func question(
    for checkpoint: Checkpoint, validation: ResumeValidation = .standard, hasDigest: Bool = false,
    trust: RangeTrust = .full
  ) -> Question {
    let have = checkpoint.ranges.prefixLength
    // Bytes in a content coding were produced for that one answer: they cannot be continued.
    guard have > 0, checkpoint.contentCoding == nil, trust > .none else { return Question() }
    let isStrong = trust == .full && checkpoint.validator?.isStrong == true
    // Some bytes are always asked for again and compared, whatever the validator says: servers that keep a strong
    // entity tag while the content changes exist, and so do partials that are not what they were said to be. And a file
    // that is complete already answers 206 with its total, instead of a 416 that some servers send without one.
    let overlap: Int64 =
      switch validation {
      case .overlap(let bytes): max(1, bytes)
      case .strict: isStrong ? standardOverlap : have
      case .digest: isStrong || hasDigest ? standardOverlap : have
      }
    let start = max(0, have - overlap)
    return start == 0 ? Question() : Question(range: RequestedRange(from: start), validator: checkpoint.validator)
  }

  /// Decides what to do with a reply.
  ///
  /// - Parameters:
  ///   - checkpoint: what is on disk, and which representation it belongs to.
  ///   - request: what was asked.
  ///   - reply: what came back; its body is not looked at.
  ///   - validation: what is enough without a strong validator.
  ///   - expectedSize: the size the whole must have, if known beforehand.
  ///   - hasDigest: whether a digest of the whole will be checked at the end.
  package static func decide(
    checkpoint: Checkpoint, request: SourceRequest, reply: SourceReply,
    validation: ResumeValidation = .standard, expectedSize: Int64? = nil, hasDigest: Bool = false
  ) -> ResumePlan {
    let have = checkpoint.ranges.prefixLength
    let isElsewhere = checkpoint.isElsewhere(than: reply.finalURL ?? request.url)
    var comparison = comparison(of: checkpoint, with: reply, to: request)
    // A digest of the whole can tell that it is the same file even so.
    if isElsewhere, comparison == .changed, hasDigest { comparison = .absent }
    if have > 0, MediaType.isPage(reply.mediaType), let known = checkpoint.mediaType, !MediaType.isPage(known),
      comparison != .sameStrong, reply.coverage.hasBytes
    {
      return .reject(
        DownloadError(.linkExpired, "a page came instead of the rest of the file: most likely one to log in at"))
    }
    switch reply.coverage {
    case .none(let refusal):
      return decide(
        refusal, have: have, comparison: comparison, checkpoint: checkpoint, request: request, reply: reply,
        expectedSize: expectedSize)
    case .multipart:
      return .reject(
        DownloadError(.multipartRange, "the server answered with several ranges in one body, which nobody asked for"))
    case .unreadable(let field):
      return .reject(
        DownloadError(.unreadableRange, "the server's 206 has no usable Content-Range (“\(field.prefix(100))”)"))
    case .whole:
      if let error = sizeError(reply.length, expected: expectedSize) { return .reject(error) }
      return decideWhole(
        checkpoint: checkpoint, reply: reply, have: have,
        // Every byte is compared, which proves more than the tags of two resources.
        comparison: isElsewhere && comparison == .changed ? .absent : comparison)
    case .range(let range, let total):
      return decide(
        range, total: total, have: have, comparison: comparison, checkpoint: checkpoint, request: request,
        reply: reply, validation: validation, expectedSize: expectedSize, hasDigest: hasDigest)
    }
  }

  /// How the validator kept with the bytes relates to a reply's. Validators speak of one resource: those of two may
  /// agree by chance, so that it counts as weak. The same strong digest of the whole outweighs them.
  static func comparison(
    of checkpoint: Checkpoint, with reply: SourceReply, to request: SourceRequest
  ) -> Validator.Comparison {
    let comparison = checkpoint.validator?.compare(to: reply.validator) ?? .absent
    switch comparison {
    case .sameStrong where checkpoint.isElsewhere(than: reply.finalURL ?? request.url): return .sameWeak
    case .changed where checkpoint.digests.contains { $0.algorithm.isStrong && reply.digests.contains($0) }:
      return .absent
    default: return comparison
    }
  }

  /// A 200. What is on disk is not thrown away before the new body has overtaken it: as far as it goes, the body is
  /// compared with it, and so proves it.
  private static func decideWhole(
    checkpoint: Checkpoint, reply: SourceReply, have: Int64, comparison: Validator.Comparison
  ) -> ResumePlan {
    if have == 0 { return .restart(because: nil) }
    if comparison == .changed {
      return .restart(
        because: DownloadError(.contentChanged, "the file on the server is another one than the \(have) bytes on disk"))
    }
    guard reply.contentCoding == checkpoint.contentCoding else {
      return .restart(
        because: DownloadError(
          .wrongContentCoding, "the server sends the file in the coding “\(reply.contentCoding ?? "identity")” now"))
    }
    if case .known(let length) = reply.length {
      let fits = checkpoint.total == .unknown || checkpoint.total == .known(length)
      if comparison == .sameStrong, length == have, fits { return .alreadyComplete }
      if length < have || !fits {
        return .restart(
          because: DownloadError(
            .sizeChanged, "the file on the server has \(length) bytes and cannot be the one on disk"))
      }
    }
    return .append(at: have, comparing: have)
  }

  /// A 206 with a range that can be read.
  private static func decide(
    _ range: ByteRange, total: ByteCount, have: Int64, comparison: Validator.Comparison, checkpoint: Checkpoint,
    request: SourceRequest, reply: SourceReply, validation: ResumeValidation, expectedSize: Int64?, hasDigest: Bool
  ) -> ResumePlan {
    guard let asked = request.range else {
      return .reject(DownloadError(.wrongRange, "the server answered with a range although the whole was asked for"))
    }
    guard range.lowerBound == asked.start else {
      return .reject(
        DownloadError(.wrongRange, "the server's range begins at \(range.lowerBound) instead of \(asked.start)"))
    }
    if let end = asked.end, range.upperBound > end {
      return .reject(DownloadError(.wrongRangeEnd, "the server's range ends at \(range.upperBound) instead of \(end)"))
    }
    if case .known(let total) = total, range.upperBound > total {
      return .reject(DownloadError(.wrongRangeEnd, "the server's range ends behind the end of the file"))
    }
    if case .known(let length) = reply.length, length != range.upperBound - range.lowerBound {
      return .reject(
        DownloadError(.lengthMismatch, "Content-Length says \(length) bytes, Content-Range another number"))
    }
    guard reply.contentCoding == checkpoint.contentCoding else {
      return .reject(
        DownloadError(
          .wrongContentCoding, "the server sent the range in the coding “\(reply.contentCoding ?? "identity")”"))
    }
    if let error = sizeError(total, expected: expectedSize) { return .reject(error) }
    if case .known(let old) = checkpoint.total, case .known(let new) = total, old != new {
      return .reject(DownloadError(.sizeChanged, "the file's size changed from \(old) to \(new) bytes"))
    }
    if case .known(let old) = checkpoint.total, range.upperBound > old {
      return .reject(DownloadError(.sizeChanged, "the file has more than the \(old) bytes it had"))
    }
    if case .known(let total) = total, have > total {
      return .reject(DownloadError(.sizeChanged, "there are \(have) bytes on disk of a file of \(total)"))
    }
    if comparison == .changed {
      return .reject(DownloadError(.contentChanged, "the file on the server has changed"))
    }
    // Asking from behind the end of what is there would leave a hole; a body that ends before the bytes
    // on disk do brings nothing.
    let overlap = have - asked.start
    guard overlap >= 0, range.upperBound >= have else {
      return .reject(DownloadError(.wrongRangeEnd, "the server's range does not continue the \(have) bytes on disk"))
    }
    if comparison == .sameStrong { return .append(at: have, comparing: overlap) }
    switch validation {
    case .overlap where overlap > 0:
      return .append(at: have, comparing: overlap)
    case .digest where hasDigest:
      return .append(at: have, comparing: overlap)
    case .strict, .overlap, .digest:
      return .reject(
        DownloadError(.unproven, "nothing proves that the file on the server is still the one on disk"))
    }
  }

  /// An answer without bytes.
  private static func decide(
    _ refusal: Coverage.Refusal, have: Int64, comparison: Validator.Comparison, checkpoint: Checkpoint,
    request: SourceRequest, reply: SourceReply, expectedSize: Int64?
  ) -> ResumePlan {
    func status(_ status: Int, _ message: String) -> ResumePlan {
      .reject(DownloadError(.httpStatus, message, httpStatus: status, retryAfter: reply.retryAfter))
    }
    switch refusal {
    case .notModified:
      return status(304, "the server said “not modified” to a request without a condition of ours")
    case .preconditionFailed:
      return status(412, "a condition in the request's own header fields does not hold")
    case .status(let code):
      return status(code, "the server answered \(code)")
    case .rangeNotSatisfiable(let total):
      guard let asked = request.range, have > 0 else {
        return status(416, "the server refused a range although the whole was asked for")
      }
      guard case .known(let total) = total else {
        return .reject(
          DownloadError(
            .rangeNotSatisfiable,
            "the server refused the range from \(asked.start) and did not say how long the file is",
            httpStatus: 416))
      }
      if comparison == .changed {
        return .reject(DownloadError(.contentChanged, "the file on the server has changed", httpStatus: 416))
      }
      if let error = sizeError(.known(total), expected: expectedSize) { return .reject(error) }
      if comparison == .sameStrong, total == have, checkpoint.total == .unknown || checkpoint.total == .known(total) {
        return .alreadyComplete
      }
      return .reject(
        DownloadError(
          .rangeNotSatisfiable,
          "the server's file has \(total) bytes, and nothing proves that they are those on disk",
          httpStatus: 416))
    }
  }

  private static func sizeError(_ size: ByteCount, expected: Int64?) -> DownloadError? {
    guard let expected, case .known(let size) = size, size != expected else { return nil }
    return DownloadError(.lengthMismatch, "the file has \(size) bytes, \(expected) were expected")
  }
}

extension Checkpoint {
  /// Whether its bytes are known to come from another resource than a URL's.
  func isElsewhere(than url: URL) -> Bool { resource.map { $0 != url.resourceKey } ?? false }
}
