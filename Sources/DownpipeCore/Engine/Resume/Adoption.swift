internal import Foundation

/// What a reply says about the file. It goes into the checkpoint only once the reply's bytes have proved to belong to
/// those on disk: at once where there is nothing to compare, otherwise when the comparison is over.
struct Adoption: Sendable {
  /// The size of the whole; `nil` where the reply does not say and what was known stays.
  let total: ByteCount?
  let validator: Validator?
  let resource: String
  let contentCoding: String?
  let mediaType: String?
  let digests: [FileDigest]
  let name: String
  /// Whether the reply's body begins at byte 0 and so has been, or will have been, compared with every byte kept.
  let isWhole: Bool
  /// Whether strong validators of the same resource agree.
  let isVouched: Bool
  /// How many bytes stay.
  let kept: Int64

  init(_ reply: SourceReply, to request: SourceRequest, keeping kept: Int64, of checkpoint: Checkpoint) {
    switch reply.coverage {
    case .whole: total = kept > 0 && reply.length == .unknown ? nil : reply.length
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
    isVouched = ResumePlan.comparison(of: checkpoint, with: reply, to: request) == .sameStrong
    self.kept = kept
  }

  /// Takes it over.
  func apply(to checkpoint: inout Checkpoint) {
    if let total { checkpoint.total = total }
    if kept == 0 || isWhole {
      checkpoint.validator = validator
      checkpoint.resource = resource
    } else {
      // Where only a few bytes were compared, the validator still tells a change, but vouches for the whole no more.
      if !isVouched { checkpoint.validator = (checkpoint.validator ?? validator)?.weakened }
      checkpoint.resource = checkpoint.resource ?? resource
    }
    checkpoint.contentCoding = contentCoding
    checkpoint.mediaType = mediaType ?? checkpoint.mediaType
    if !digests.isEmpty { checkpoint.digests = digests }
    if kept == 0 || checkpoint.name == nil { checkpoint.name = name }
  }
}

extension Validator {
  /// The same, but no proof any more.
  var weakened: Validator {
    Validator(entityTag: entityTag.map { EntityTag($0.opaque, isWeak: true) }, lastModified: lastModified)
  }
}
