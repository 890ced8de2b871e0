internal import Foundation

/// What to do with the body of a reply, given the bytes on disk.
///
/// A plan is computed by pure functions, and every reply that continues a file passes through it; those that fill gaps are
/// compared with what is known by then in ``Transfer``. **No byte is written unless
/// coverage (start, end and total), length, validator and content coding agree with what is on disk.**
package enum ResumePlan: Sendable, Hashable {
  /// Append to the partial at byte `at`. The body begins `comparing` bytes earlier (at byte 0 if the server sent the
  /// whole file). These bytes must equal the bytes on disk; otherwise nothing of the body is written.
  case append(at: Int64, comparing: Int64)
  /// Write the body from byte 0; no bytes are on disk. A body without a stated length has to end where the file is known to
  /// end, if it is.
  case begin(until: Int64?)
  /// Write the body from byte 0, beside the bytes on disk, which it replaces when it is complete: it is another version of
  /// the file. The error says why.
  case replace(because: DownloadError)
  /// All bytes are on disk; the body, if any, is not needed.
  case alreadyComplete
  /// Write nothing of the body. If a range was requested, the whole file may be requested next, see
  /// ``RangeTrust/left(after:of:)``; otherwise the retry policy decides.
  case reject(DownloadError)
}

extension ResumePlan {
  /// The number of bytes to compare unless the validation gives another one.
  private static let standardOverlap: Int64 = 65_536

  /// What to request from the server, given the bytes on disk.
  package struct Question: Sendable, Hashable {
    /// The range to request; the whole file if `nil`.
    package var range: RequestedRange?
    /// The validator to send with the range.
    package var validator: Validator?
  }

  /// Returns what to request from the server to continue from a checkpoint.
  ///
  /// - Parameters:
  ///   - checkpoint: The bytes on disk and their representation.
  ///   - validation: What proves the partial if there is no strong validator.
  ///   - hasDigest: Whether a digest of the whole file is checked at the end.
  ///   - trust: How far the server's ranges are trusted.
  package static func question(
    for checkpoint: Checkpoint, validation: ResumeValidation = .standard, hasDigest: Bool = false,
    trust: RangeTrust = .full
  ) -> Question {
    let have = checkpoint.ranges.prefixLength
    guard !checkpoint.ranges.isEmpty, trust > .none, checkpoint.isContinuable(trusting: trust) else {
      return Question()
    }
    let isStrong = trust == .full && checkpoint.validator?.isStrong == true
    // A reply with a whole file would give up the bytes behind a gap.
    let fromTheStart =
      isStrong && checkpoint.ranges.end > have
      ? Question(range: RequestedRange(from: 0), validator: checkpoint.validator) : Question()
    if have == 0 { return fromTheStart }
    // Some bytes are always requested again and compared, even if the validator is strong: some servers keep a strong
    // entity tag while the content changes, and some imported partials are not what they claim to be. Besides, a file
    // that is already complete is answered by a 206 with its total, not by a 416, which some servers send without one.
    let overlap: Int64 =
      switch validation {
      case .overlap(let bytes): max(1, bytes)
      case .strict: isStrong ? standardOverlap : have
      case .digest: isStrong || hasDigest ? standardOverlap : have
      }
    let start = max(0, have - overlap)
    return start == 0 ? fromTheStart : Question(range: RequestedRange(from: start), validator: checkpoint.validator)
  }

  /// Decides what to do with a reply.
  ///
  /// - Parameters:
  ///   - checkpoint: The bytes on disk and their representation.
  ///   - request: The request that was sent.
  ///   - reply: The reply; its body is not read.
  ///   - validation: What proves the partial if there is no strong validator.
  ///   - expectedSize: The required size of the whole file; `nil` if it is not known.
  ///   - hasDigest: Whether a digest of the whole file is checked at the end.
  ///   - isPermitted: Whether the user has asked for what the server has now.
  ///   - canRefresh: Whether an expired link can be refreshed: a 403 then means that it has expired.
  package static func decide(
    checkpoint: Checkpoint, request: SourceRequest, reply: SourceReply,
    validation: ResumeValidation = .standard, expectedSize: Int64? = nil, hasDigest: Bool = false,
    isPermitted: Bool = false, canRefresh: Bool = false
  ) -> ResumePlan {
    JudgedReply(
      checkpoint: checkpoint, request: request, reply: reply, validation: validation, expectedSize: expectedSize,
      hasDigest: hasDigest, isPermitted: isPermitted, canRefresh: canRefresh
    ).plan
  }

  /// Compares the validator in the checkpoint with that of a reply.
  ///
  /// A validator applies to one resource only. Equal validators of two resources may be a coincidence and count as
  /// weak. Equal strong digests of the whole file outweigh different validators.
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
}

/// A reply beside the bytes on disk, and what its bytes have to meet.
private struct JudgedReply {
  let checkpoint: Checkpoint
  let request: SourceRequest
  let reply: SourceReply
  let validation: ResumeValidation
  let expectedSize: Int64?
  let hasDigest: Bool
  let isPermitted: Bool
  let canRefresh: Bool
  let row: ReplyRow
  /// The number of bytes on disk, from the first one to the first gap.
  let have: Int64
  /// Whether the bytes on disk are known to come from another resource than the reply.
  let isElsewhere: Bool
  let comparison: Validator.Comparison

  init(
    checkpoint: Checkpoint, request: SourceRequest, reply: SourceReply, validation: ResumeValidation,
    expectedSize: Int64?, hasDigest: Bool, isPermitted: Bool, canRefresh: Bool
  ) {
    self.checkpoint = checkpoint
    self.request = request
    self.reply = reply
    self.validation = validation
    self.expectedSize = expectedSize
    self.hasDigest = hasDigest
    self.isPermitted = isPermitted
    self.canRefresh = canRefresh
    row = ReplyRow.of(
      reply, to: request, known: checkpoint,
      isPermitted ? .permitted : checkpoint.ranges.isEmpty ? .first : .resumed, hasDigest: hasDigest)
    have = checkpoint.ranges.prefixLength
    isElsewhere = checkpoint.isElsewhere(than: reply.finalURL ?? request.url)
    let comparison = ResumePlan.comparison(of: checkpoint, with: reply, to: request)
    // Validators of two resources may differ for the same file; the digest of the whole file decides.
    self.comparison = isElsewhere && comparison == .changed && hasDigest ? .absent : comparison
  }

  /// What to do with the reply.
  var plan: ResumePlan {
    switch reply.coverage {
    case .none(let refusal):
      return plan(for: refusal)
    case .multipart:
      return .reject(
        DownloadError(.multipartRange, "the server sent several ranges in one body, although one was requested"))
    case .unreadable(let field):
      return .reject(
        DownloadError(.unreadableRange, "the server's 206 has no usable Content-Range (“\(field.prefix(100))”)"))
    case .whole:
      return planForWhole
    case .range(let range, let total):
      return plan(for: range, of: total)
    }
  }

  /// Decides on a 200 reply. The bytes on disk are kept and compared with the beginning of the body, which proves them.
  private var planForWhole: ResumePlan {
    if row.decision == .refuses { return .reject(row.error(reply, known: checkpoint)) }
    if let error = sizeError(reply.length) { return .reject(error) }
    // Some servers send a range with the status 200: a new version must not begin with one.
    let mayBeRange = request.range.map { $0.start > 0 } ?? false
    switch row.decision {
    case .replaces where mayBeRange:
      return .reject(row.error(reply, known: checkpoint))
    case .replaces where have > 0 || !checkpoint.ranges.isEmpty:
      return .replace(because: row.error(reply, known: checkpoint))
    case .replaces, .goesOn, .compares, .refuses: break
    }
    if checkpoint.ranges.isEmpty {
      let isBound =
        row.decision != .replaces && !isPermitted && !hasDigest && reply.contentCoding == checkpoint.contentCoding
      return .begin(until: isBound ? checkpoint.total.bytes : nil)
    }
    let fits = checkpoint.total == .unknown || reply.length == checkpoint.total
    if have > 0, comparison == .sameStrong, reply.length == .known(have), fits, !mayBeRange { return .alreadyComplete }
    return .append(at: have, comparing: have)
  }

  /// Decides on a 206 reply with a valid Content-Range.
  private func plan(for range: ByteRange, of total: ByteCount) -> ResumePlan {
    guard let asked = request.range else {
      return .reject(DownloadError(.wrongRange, "the server sent a range, although the whole file was requested"))
    }
    guard range.lowerBound == asked.start else {
      return .reject(
        DownloadError(.wrongRange, "the server's range begins at \(range.lowerBound) instead of \(asked.start)"))
    }
    if let end = asked.end, range.upperBound > end {
      return .reject(DownloadError(.wrongRangeEnd, "the server's range ends at \(range.upperBound) instead of \(end)"))
    }
    if case .known(let total) = total, range.upperBound > total {
      return .reject(DownloadError(.wrongRangeEnd, "the server's range ends after the end of the file"))
    }
    if case .known(let length) = reply.length, length != range.upperBound - range.lowerBound {
      return .reject(
        DownloadError(.lengthMismatch, "Content-Length (\(length) bytes) does not match Content-Range"))
    }
    guard reply.contentCoding == checkpoint.contentCoding else {
      return .reject(
        DownloadError(
          .wrongContentCoding,
          "the server sent the range in the content coding “\(reply.contentCoding ?? "identity")”"))
    }
    if reply.contentCoding != nil, !checkpoint.hasSameStrongTag(as: reply) {
      return .reject(
        DownloadError(.unproven, "nothing proves that the server has coded the file as it did before"))
    }
    if let error = sizeError(total) { return .reject(error) }
    switch row.decision {
    case .goesOn: break
    // Another validator of the same file; only the digest tells.
    case .compares where comparison != .changed: break
    case .compares, .replaces, .refuses: return .reject(row.error(reply, known: checkpoint))
    }
    if case .known(let old) = checkpoint.total, range.upperBound > old {
      return .reject(DownloadError(.contentChanged, "the file grew beyond its former size of \(old) bytes"))
    }
    // A range that starts after the bytes on disk would leave a hole; a range that ends before their end adds nothing.
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

  /// Decides on a reply without bytes.
  private func plan(for refusal: Coverage.Refusal) -> ResumePlan {
    func status(_ status: Int, _ message: String) -> ResumePlan {
      .reject(DownloadError(.httpStatus, message, httpStatus: status, retryAfter: reply.retryAfter))
    }
    switch refusal {
    case .preconditionFailed where request.range != nil:
      return rangeRefused(412)
    case .status(let code) where request.range != nil && !isAboutTheRequest(code):
      return rangeRefused(code)
    case .notModified:
      return status(304, "the server answered “Not Modified”, although the request had no such condition")
    case .preconditionFailed:
      return status(412, "a condition in the header fields of the request does not hold")
    case .status(let code) where code == 204 || code == 205:
      return status(code, "the server answered \(code): there is no file under this URL, not even an empty one")
    case .status(let code):
      return status(code, "the server answered \(code)")
    case .rangeNotSatisfiable(let total):
      guard let asked = request.range, have > 0 else {
        return status(416, "the server refused a range, although the whole file was requested")
      }
      guard case .known(let total) = total else {
        return .reject(
          DownloadError(
            .rangeNotSatisfiable,
            "the server refused the range from byte \(asked.start) and did not give the size of the file",
            httpStatus: 416))
      }
      if comparison == .changed {
        return .reject(DownloadError(.contentChanged, "the file on the server has changed", httpStatus: 416))
      }
      if let error = sizeError(.known(total)) { return .reject(error) }
      if comparison == .sameStrong, total == have, checkpoint.total == .unknown || checkpoint.total == .known(total) {
        return .alreadyComplete
      }
      return .reject(
        DownloadError(
          .rangeNotSatisfiable,
          "the file on the server has \(total) bytes, and nothing proves that the bytes on disk are the same",
          httpStatus: 416))
    }
  }

  /// Whether a status says that the server, or a proxy, would refuse the whole file, too, or wants to be asked later.
  private func isAboutTheRequest(_ status: Int) -> Bool {
    switch status {
    case 401, 407, 429: true
    case 403: canRefresh
    case 503: reply.retryAfter != nil
    default: false
    }
  }

  private func rangeRefused(_ status: Int) -> ResumePlan {
    .reject(
      DownloadError(
        .rangeRefused, "the server answered \(status) to the request for a part of the file", httpStatus: status,
        retryAfter: reply.retryAfter))
  }

  private func sizeError(_ size: ByteCount) -> DownloadError? {
    guard let expectedSize, case .known(let size) = size, size != expectedSize else { return nil }
    return DownloadError(.lengthMismatch, "the file has \(size) bytes, but \(expectedSize) were expected")
  }
}

extension Checkpoint {
  /// Whether the bytes are known to come from a resource other than that of `url`.
  func isElsewhere(than url: URL) -> Bool { resource.map { $0 != url.resourceKey } ?? false }

  /// Whether a range can continue the bytes.
  ///
  /// Coded bytes may differ from reply to reply, because the server codes them anew. A strong entity tag names one coded
  /// form (RFC 9110 §8.8.3), but a date does not. Of bytes that the transport has decoded there are no ranges.
  fileprivate func isContinuable(trusting trust: RangeTrust) -> Bool {
    guard let contentCoding else { return true }
    return trust == .full && validator?.entityTag?.isWeak == false && !ContentCoding.isDecodedByTransport(contentCoding)
  }

  fileprivate func hasSameStrongTag(as reply: SourceReply) -> Bool {
    guard let tag = validator?.entityTag, !tag.isWeak else { return false }
    return reply.validator?.entityTag == tag
  }
}
