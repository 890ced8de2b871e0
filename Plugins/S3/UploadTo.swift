#if LIBCURL
  public import DownpipeCore
  import DownpipeHTTP
  import DownpipePOSIX
  import Foundation

  /// A step that uploads the file to an object storage. The result of the download is then the object: `s3://bucket/key`.
  ///
  /// ```swift
  /// FileStore("/var/lib/fetcher")
  /// UploadTo(try S3("s3://my-archive/2026"))
  /// ```
  /// **Keys.** The key is the prefix of the bucket, and then what `key` returns, or the destination of the request: its folder
  /// and its final name, otherwise the name of the file.
  ///
  /// **While bytes arrive.** A file of more than one part is uploaded behind the contiguous front of its download, if no step
  /// before changes it. No part is in memory: each is read back from the disk, and the download does not wait for a slow
  /// storage. In any case the file is on this machine until the object is complete.
  ///
  /// **After a kill.** The id of a multipart upload is in the ledger. The next run asks the storage for the parts that it
  /// has, compares their checksums with the bytes (SHA-256 if the storage keeps it, otherwise the MD5 sum of the tag), and
  /// sends the others. If neither can be had, as with objects that are encrypted with a key of KMS and a storage without
  /// checksums, parts are sent again. A worker that takes the download over without its bytes fetches them again, and
  /// uploads all parts, unless the object is complete. Removing a download leaves its upload behind, and so may a worker
  /// that was lost: see ``S3/abortUploads(startedBefore:)``.
  ///
  /// **Two writers.** With ``Existing/fail``, the storage is asked to write only if there is no object (`If-None-Match`). An
  /// object with the same bytes counts as written. A storage other than AWS is asked beforehand, too, in case it ignores the
  /// condition; one that refuses it for single requests gets an upload of one part. Where a storage has no condition at all,
  /// there is a moment in which another writer may come first. What an earlier fetch of the same download has uploaded is
  /// replaced, if no other program has replaced it meanwhile.
  ///
  /// Requests carry SHA-256 sums of their bodies, so that a storage refuses what was changed on its way. Objects get
  /// `x-amz-meta-downpipe-sha256`, or `x-amz-meta-downpipe-upload` if they have several parts.
  public struct UploadTo: PostProcessor {
    /// What happens when an object has the key already.
    public enum Existing: String, Sendable, Hashable {
      /// The download fails with `.alreadyExists`, unless the object has the same bytes or is what an earlier fetch of the
      /// same download has uploaded.
      case fail
      /// The object is replaced.
      case replace
    }

    /// The bucket.
    public let bucket: S3
    /// What happens when an object has the key already.
    public let onExisting: Existing
    private let chooseKey: (@Sendable (_ name: String, ProcessingContext) throws -> String)?

    /// Creates a step.
    ///
    /// - Parameters:
    ///   - bucket: The bucket, with the prefix of all keys.
    ///   - onExisting: What happens when an object has the key already.
    ///   - key: Returns the key after the prefix, for the name of the file; `nil` for the destination of the request. It must
    ///     return the same for the same download.
    public init(
      _ bucket: S3, onExisting: Existing = .fail,
      key: (@Sendable (_ name: String, _ context: ProcessingContext) throws -> String)? = nil
    ) {
      self.bucket = bucket
      self.onExisting = onExisting
      chooseKey = key
    }

    /// The bucket and what happens to objects that exist.
    public var summary: String {
      "s3://\(bucket.bucket)/\(bucket.prefix)\(onExisting == .replace ? ", replace" : ", fail if it exists")"
    }

    /// The step uploads a file and does not change it.
    public var keepsContent: Bool { true }

    private var uploads: MultipartUploads { MultipartUploads(client: bucket.client, bucket: bucket.bucket) }

    func key(_ name: String, _ context: ProcessingContext) throws -> String {
      let destination = context.request.destination
      let rest =
        try chooseKey?(name, context)
        ?? [destination.directory, destination.finalName ?? name].compactMap(\.self).joined(separator: "/")
      let location = ObjectLocation(bucket: bucket.bucket, key: bucket.prefix + rest)
      try location.check()
      return location.key
    }

    private func fields(_ mediaType: String?) -> HeaderFields {
      var fields = bucket.configuration.objectHeaders
      if let mediaType, fields["Content-Type"] == nil, HeaderField("Content-Type", mediaType).isValid {
        fields["Content-Type"] = mediaType
      }
      return fields
    }

    // MARK: While bytes arrive

    /// Uploads the parts of the file behind the front of the transfer.
    public func follower(in context: ProcessingContext) -> (any TransferFollower)? {
      let settings = bucket.configuration
      guard (context.bytesReceived ?? .max) > settings.partSize, let name = context.downloadedName,
        let key = try? key(name, context), let readBack = context.readBack
      else { return nil }
      let prior = UploadNote(context.priorNote, bucket: bucket.bucket, key: key)
      let plan = prior?.plan ?? PartPlan(partSize: settings.partSize, byteCount: context.bytesReceived)
      guard context.bytesReceived.map({ plan.parts(of: $0) != nil }) ?? plan.isGrowing else { return nil }
      let fields = fields(context.mediaType)
      return UploadFollower(key: key, plan, partsAtOnce: settings.partsAtOnce, readBack) { [uploads, bucket] in
        let note = prior ?? UploadNote(bucket: bucket.bucket, key: key)
        // Parts of an upload that is complete must not be sent.
        if prior != nil, try await uploads.hasObject(of: note, size: context.bytesReceived) { return nil }
        let upload = try await PartUpload.begin(uploads, note, byteCount: context.bytesReceived, fields) {
          try await context.note($0.text)
        }
        return upload.plan == plan ? upload : nil
      }
    }

    // MARK: The step

    /// Uploads the file.
    ///
    /// - Throws: `DownloadError` with `.alreadyExists`; `.unsafePath` for a key that is not possible;
    ///   `.objectStorageCredentials`, `.objectStorageDenied` and `.bucketNotFound`;
    ///   `.network` and the like if the storage did not answer or was busy, which is tried again; `.processing` for other
    ///   refusals; `CancellationError`.
    public func process(_ input: File, in context: ProcessingContext) async throws -> File {
      guard input.artifact.companions.isEmpty else {
        throw DownloadError(
          .processing,
          "UploadTo uploads one file, and “\(input.name)” has companions: upload them in the step that makes them, and "
            + "return the file without them")
      }
      let key = try key(input.name, context)
      guard let url = ObjectLocation(bucket: bucket.bucket, key: key).url else {
        throw DownloadError(.unsafePath, "“\(key.escaped)” cannot be the key of an object: no URL can have it")
      }
      func object(_ byteCount: Int64) -> File {
        File(
          Artifact(
            location: .remote(url), name: input.name, size: .known(byteCount), mediaType: input.artifact.mediaType,
            modifiedAt: bucket.configuration.time.date))
      }
      let content: ObjectContent
      do { content = try ObjectContent(input.artifact) } catch {
        // Another worker has the file, and may have completed the object before it was killed.
        if let prior = UploadNote(context.priorNote, bucket: bucket.bucket, key: key),
          let size = input.artifact.size.bytes, try await uploads.hasObject(of: prior, size: size)
        {
          return object(size)
        }
        throw error
      }
      let run = UploadRun(
        uploads: uploads, key: key, content: content, fields: fields(input.artifact.mediaType),
        onlyIfNew: onExisting == .fail, replacesOwn: context.replaces?.remoteURL == url, context: context)
      try await run.upload(context.follower as? UploadFollower)
      return object(content.byteCount)
    }
  }
#endif
