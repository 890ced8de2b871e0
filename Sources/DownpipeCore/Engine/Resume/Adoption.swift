internal import Foundation

/// The representation that a reply announces, to be stored in the checkpoint.
///
/// It is stored only after the reply's bytes have been shown to continue the bytes on disk: at once if there is nothing
/// to compare, otherwise after the comparison.
///
/// A class, because copies in the frames of waiting functions would take a kilobyte for each transfer.
final class Adoption: Sendable {
  /// The total size; `nil` if the reply does not tell, so that the known total stays.
  let total: ByteCount?
  let validator: Validator?
  let resource: String
  let contentCoding: String?
  let mediaType: String?
  let digests: [FileDigest]
  let name: String
  /// Whether the reply's body begins at byte 0, so that it is compared with every kept byte.
  let isWhole: Bool
  /// Whether strong validators of the same resource agree.
  let hasSameStrongValidator: Bool
  /// The number of bytes on disk that are kept.
  let kept: Int64

  init(_ reply: SourceReply, to request: SourceRequest, keeping kept: Int64, of checkpoint: Checkpoint) {
    switch reply.coverage {
    // A known size binds a reply that does not state one.
    case .whole: total = reply.length == .unknown ? nil : reply.length
    case .range(_, let total): self.total = total == .unknown ? nil : total
    default: total = nil
    }
    validator = reply.validator
    resource = (reply.finalURL ?? request.url).resourceKey
    contentCoding = reply.contentCoding
    mediaType = reply.mediaType
    digests = reply.digests
    name = SafeFileName.make(from: reply.suggestedName, url: reply.finalURL ?? request.url)
    isWhole = reply.coverage == .whole
    hasSameStrongValidator = ResumePlan.comparison(of: checkpoint, with: reply, to: request) == .sameStrong
    self.kept = kept
  }

  func apply(to record: inout DownloadRecord) {
    apply(to: &record.checkpoint)
    // What the server has now is the file.
    record.versions.mayChange = false
  }

  func apply(to checkpoint: inout Checkpoint) {
    if let total { checkpoint.total = total }
    if kept == 0 || isWhole {
      checkpoint.validator = validator
      checkpoint.resource = resource
    } else {
      // If only a few bytes were compared, the validator can still reveal a change, but no longer proves the whole
      // file.
      if !hasSameStrongValidator { checkpoint.validator = (checkpoint.validator ?? validator)?.weakened }
      checkpoint.resource = checkpoint.resource ?? resource
    }
    checkpoint.contentCoding = contentCoding
    // A type that says nothing does not take the place of one that does.
    if MediaType.Kind(mediaType) != .unknown || checkpoint.mediaType == nil {
      checkpoint.mediaType = mediaType ?? checkpoint.mediaType
    }
    if !digests.isEmpty { checkpoint.digests = digests }
    if kept == 0 || checkpoint.name == nil { checkpoint.name = name }
  }
}

extension Validator {
  /// The validator as a weak one: it can reveal a change, but proves nothing.
  var weakened: Validator {
    Validator(entityTag: entityTag.map { EntityTag($0.opaque, isWeak: true) }, lastModified: lastModified)
  }
}
