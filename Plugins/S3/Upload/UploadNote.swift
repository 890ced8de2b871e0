#if LIBCURL
  import DownpipeCore
  import Foundation

  /// What the step keeps in the ledger before it uploads, so that the next run continues the upload, and recognises an object
  /// that it has written itself.
  struct UploadNote: Sendable, Hashable, Codable {
    var bucket: String
    var key: String
    /// A random text in the metadata of the object, which no other upload has.
    var token: String
    /// The id of the multipart upload; `nil` for an upload in one request.
    var upload: String?
    var plan: PartPlan?

    init(bucket: String, key: String) {
      self.bucket = bucket
      self.key = key
      token = UUID().uuidString.lowercased()
    }

    /// The note of an earlier run; `nil` if it is about another object.
    init?(_ text: String?, bucket: String, key: String) {
      guard let text, let note = try? JSONDecoder().decode(UploadNote.self, from: Data(text.utf8)),
        note.bucket == bucket, note.key == key, UUID(uuidString: note.token) != nil
      else { return nil }
      self = note
    }

    var text: String {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
      return (try? encoder.encode(self)).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }

    /// The field with the token.
    static let tokenField = "x-amz-meta-downpipe-upload"
    /// The field with the SHA-256 of an object that was uploaded in one request.
    static let digestField = "x-amz-meta-downpipe-sha256"
  }
#endif
