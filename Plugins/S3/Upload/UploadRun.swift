#if LIBCURL
  import Crypto
  import DownpipeCore
  import DownpipeHTTP
  import Foundation
  import Synchronization

  /// The upload of one file by the step.
  struct UploadRun: Sendable {
    let uploads: MultipartUploads
    let key: String
    let content: ObjectContent
    let fields: HeaderFields
    /// Whether an object of another origin must not be replaced.
    let onlyIfNew: Bool
    let context: ProcessingContext

    private static let digestField = "x-amz-meta-downpipe-sha256"
    private var settings: S3.Configuration { uploads.client.configuration }

    /// Returns when the object is there.
    func upload(_ follower: UploadFollower?) async throws {
      if let upload = try await follower?.finish(key: key) { return try await complete(upload) }
      let prior = UploadNote(context.priorNote, bucket: uploads.bucket, key: key)
      // An earlier run may have completed it, and parts of a complete upload must not be sent.
      if let prior, try await uploads.object(key)?.token == prior.token { return }
      if content.byteCount <= settings.partSize, prior?.upload == nil, try await putWhole() { return }
      let upload = try await PartUpload.begin(
        uploads, prior ?? UploadNote(bucket: uploads.bucket, key: key), byteCount: content.byteCount, fields
      ) { try await context.note($0.text) }
      try await send(upload)
      try await complete(upload)
    }

    // MARK: One request

    /// Uploads a small file; `false` if the storage cannot do it without the danger of replacing an object.
    private func putWhole() async throws -> Bool {
      let body = content.body(0..<content.byteCount)
      let digest = try body.digest(SHA256.self).hex
      var fields = fields
      fields[Self.digestField] = digest
      let canAsk = uploads.client.hasConditionalPut
      if onlyIfNew, !canAsk {
        // An upload of one part has a condition, but no part is empty.
        if content.byteCount > 0 { return false }
        if try await isThere(digest: digest) { return true }
      }
      try Task.checkCancellation()
      switch try await uploads.put(key, body, digest: digest, fields, onlyIfNew: onlyIfNew && canAsk) {
      case .stored: return true
      case .exists:
        guard try await isThere(digest: digest) else { throw exists }
        return true
      case .unconditional:
        uploads.client.hasConditionalPut = false
        return try await putWhole()
      case .unknownUpload: throw exists
      }
    }

    /// Whether the object is there with the same bytes; `false` if there is none.
    /// - Throws: `DownloadError` with `.alreadyExists` if it has others.
    private func isThere(digest: String) async throws -> Bool {
      guard let object = try await uploads.object(key, field: Self.digestField) else { return false }
      if object.size == content.byteCount, object.token == digest { return true }
      if let sum = object.etag?.md5, object.size == content.byteCount,
        try Array(content.body(0..<content.byteCount).digest(Insecure.MD5.self)) == sum
      {
        return true
      }
      throw exists
    }

    private var exists: DownloadError {
      DownloadError(
        .alreadyExists,
        "s3://\(uploads.bucket)/\(key.escaped) exists already, with other bytes: choose another key, remove it, or let it be "
          + "replaced")
    }

    // MARK: Parts

    /// Sends all parts that the storage does not have.
    private func send(_ upload: PartUpload) async throws {
      guard let parts = upload.plan.parts(of: content.byteCount) else {
        throw DownloadError(.tooLarge, "a file of \(content.byteCount) bytes has more than \(PartPlan.mostParts) parts")
      }
      try await withThrowingTaskGroup(of: Int64.self) { group in
        var progress = StepProgress(completed: 0, total: .known(content.byteCount))
        func waitForOne() async throws -> Bool {
          guard let count = try await group.next() else { return false }
          progress.completed += count
          context.report(progress)
          return true
        }
        for (index, range) in parts.enumerated() {
          if index >= settings.partsAtOnce { _ = try await waitForOne() }
          group.addTask { [self] in
            try await upload.send(index + 1, content.body(range))
            return range.upperBound - range.lowerBound
          }
        }
        while try await waitForOne() {}
      }
    }

    /// Makes the object of its parts.
    private func complete(_ upload: PartUpload) async throws {
      try Task.checkCancellation()
      let tag = upload.expectedTag
      var outcome = try await uploads.complete(key, upload.id, upload.parts, onlyIfNew: onlyIfNew)
      if outcome == .unconditional {
        if try await isStored(upload, tag) { return }
        outcome = try await uploads.complete(key, upload.id, upload.parts, onlyIfNew: false)
      }
      switch outcome {
      case .stored(let stored):
        guard let stored = stored?.bareTag, let tag, stored != tag, stored.hasSuffix("-\(upload.parts.count)") else {
          return
        }
        throw DownloadError(
          .processing,
          "s3://\(uploads.bucket)/\(key.escaped) does not have the bytes that were sent: its tag is \(stored.escaped) "
            + "and should be \(tag)")
      case .exists:
        if try await !isStored(upload, tag) { throw exists }
      case .unknownUpload, .unconditional:
        if try await !isStored(upload, tag) { throw PartUpload.ended(upload.note) }
      }
    }

    /// Whether the object is there, from this upload or with the same bytes; `false` if there is none.
    /// - Throws: `DownloadError` with `.alreadyExists` if it has others. The upload is ended then.
    private func isStored(_ upload: PartUpload, _ tag: String?) async throws -> Bool {
      guard let object = try await uploads.object(key) else { return false }
      if object.token == upload.note.token { return true }
      try? await uploads.abort(key, upload.id)
      if object.size == content.byteCount, let tag, object.etag?.bareTag == tag { return true }
      throw exists
    }
  }
#endif
