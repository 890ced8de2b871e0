#if LIBCURL
  import DownpipeCore
  import DownpipeDigest
  import DownpipeHTTP
  import Foundation

  /// The upload of one file by the step.
  struct UploadRun: Sendable {
    let uploads: MultipartUploads
    let key: String
    let content: ObjectContent
    let fields: HeaderFields
    /// Whether an object of another origin must not be replaced.
    let onlyIfNew: Bool
    /// Whether an earlier fetch of the download has uploaded the object.
    let replacesOwn: Bool
    let context: ProcessingContext

    private var settings: S3.Configuration { uploads.client.configuration }

    /// Returns when the object is there.
    func upload(_ follower: UploadFollower?) async throws {
      let total = content.byteCount
      let followed = try await follower?.finish(key: key) { [context] sent in
        context.report(StepProgress(completed: sent, total: .known(total)))
      }
      let prior =
        (follower?.key == key ? follower?.note : nil) ?? UploadNote(context.priorNote, bucket: uploads.bucket, key: key)
      // An earlier run may have completed it, and parts of a complete upload must not be sent.
      if followed == nil, let prior, try await uploads.hasObject(of: prior, size: content.byteCount) { return }
      let isConditional = try await mustBeNew()
      if let followed { return try await complete(followed, onlyIfNew: isConditional) }
      if content.byteCount <= settings.partSize, prior?.upload == nil, try await putWhole(onlyIfNew: isConditional) {
        return
      }
      let upload = try await PartUpload.begin(
        uploads, prior ?? UploadNote(bucket: uploads.bucket, key: key), byteCount: content.byteCount, fields
      ) { try await context.note($0.text) }
      try await send(upload)
      try await complete(upload, onlyIfNew: isConditional)
    }

    /// Whether the object must not exist.
    ///
    /// What an earlier fetch has uploaded may be replaced, unless another program has written there since.
    private func mustBeNew() async throws -> Bool {
      guard onlyIfNew, replacesOwn, let object = try await uploads.object(key) else { return onlyIfNew }
      guard object.token != nil || object.digest != nil else { throw exists }
      return false
    }

    // MARK: One request

    /// Uploads a small file; `false` if the storage cannot do it without the danger of replacing an object.
    private func putWhole(onlyIfNew: Bool) async throws -> Bool {
      let body = content.body(0..<content.byteCount)
      let digest = try body.digest(.sha256).hex
      var fields = fields
      fields[UploadNote.digestField] = digest
      let canAsk = uploads.client.hasConditionalPut
      // An upload of one part has a condition, but no part is empty.
      if onlyIfNew, !canAsk, content.byteCount > 0 { return false }
      if onlyIfNew, !uploads.client.isAWS || !canAsk, try await isThere(digest: digest) { return true }
      try Task.checkCancellation()
      switch try await uploads.put(key, body, digest: digest, fields, onlyIfNew: onlyIfNew && canAsk) {
      case .stored: return true
      case .unconditional:
        uploads.client.hasConditionalPut = false
        return try await putWhole(onlyIfNew: onlyIfNew)
      case .exists, .unknownUpload:
        guard try await knowing({ try await isThere(digest: digest) }) else { throw exists }
        return true
      }
    }

    /// Whether the object is there with the same bytes; `false` if there is none.
    /// - Throws: `DownloadError` with `.alreadyExists` if it has others; `.objectStorageDenied`.
    private func isThere(digest: String) async throws -> Bool {
      guard let object = try await uploads.object(key) else { return false }
      guard object.size == content.byteCount else { throw exists }
      if object.digest == digest { return true }
      // Uploaded in one request, or in one part. Without MD5, which a FIPS provider refuses, the bytes are unknown.
      guard HashFunction.md5.isAvailable else { throw exists }
      let sum = try content.body(0..<content.byteCount).digest(.md5)
      if let tag = object.etag?.bareTag, [sum.hex, try HashFunction.md5.digest(of: sum).hex + "-1"].contains(tag) {
        return true
      }
      throw exists
    }

    private var exists: DownloadError {
      DownloadError(
        .alreadyExists,
        "s3://\(uploads.bucket)/\(key.escaped) exists already, with other bytes as far as can be seen: choose another key, "
          + "remove it, or let it be replaced")
    }

    /// Asks about an object that exists. Without the right to know more, it is another one.
    private func knowing(_ ask: () async throws -> Bool) async throws -> Bool {
      do { return try await ask() } catch let error as DownloadError where error.code == .objectStorageDenied {
        throw exists
      }
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
    private func complete(_ upload: PartUpload, onlyIfNew: Bool) async throws {
      if onlyIfNew, !uploads.client.isAWS, try await isStored(upload) { return }
      try Task.checkCancellation()
      var outcome = try await uploads.complete(key, upload.id, upload.parts, onlyIfNew: onlyIfNew)
      if outcome == .unconditional {
        if try await isStored(upload) { return }
        outcome = try await uploads.complete(key, upload.id, upload.parts, onlyIfNew: false)
      }
      switch outcome {
      case .stored: return
      case .exists:
        if try await !knowing({ try await isStored(upload) }) { throw exists }
      case .unknownUpload, .unconditional:
        if try await !isStored(upload) { throw PartUpload.ended(upload.note) }
      }
    }

    /// Whether the object is there, from this upload or with the same bytes; `false` if there is none.
    /// - Throws: `DownloadError` with `.alreadyExists` if it has others; the upload is ended then. `.objectStorageDenied`.
    private func isStored(_ upload: PartUpload) async throws -> Bool {
      guard let object = try await uploads.object(key) else { return false }
      if object.size == content.byteCount {
        if object.token == upload.note.token { return true }
        if let tag = upload.expectedTag, object.etag?.bareTag == tag {
          try? await uploads.abort(key, upload.id)
          return true
        }
      }
      try? await uploads.abort(key, upload.id)
      throw exists
    }
  }
#endif
