#if LIBCURL
  public import DownpipeCore
  import DownpipeHTTP
  public import Foundation

  /// Fetches `s3:` URLs: `s3://bucket/key`, with a version as `?versionId=…`.
  ///
  /// ```swift
  /// S3Source { $0.region = "eu-central-1" }
  /// S3Source { $0.endpoint = URL(string: "http://localhost:9000") }
  /// ```
  /// Ranges are served, and the `ETag` is the validator: a range is asked for with `If-Match`, so that an object that has
  /// changed starts again. Where the storage has a SHA-256 of the whole object, it is a digest of the reply. URLs that a
  /// server has named, such as mirrors, are asked for without a signature.
  public struct S3Source: Source {
    /// The settings of the source.
    public let configuration: S3.Configuration

    /// Creates a source with the given settings. Contradictions are found when the downloader starts.
    public init(_ configuration: S3.Configuration = S3.Configuration()) {
      self.configuration = configuration
    }

    /// Creates a source whose default settings the closure changes.
    public init(_ configure: (inout S3.Configuration) -> Void) {
      var configuration = S3.Configuration()
      configure(&configuration)
      self.init(configuration)
    }

    /// Returns whether `url` is an `s3:` URL.
    public func accepts(_ url: URL) -> Bool { url.scheme?.lowercased() == ObjectLocation.scheme }

    /// Returns the source's session, whose connections close when the downloader shuts down.
    /// - Throws: `DownloadError` with `.invalidPipeline` for settings that contradict each other.
    public func start(in context: SourceContext) async throws -> any SourceSession {
      S3Session(client: try S3Client(configuration))
    }

    /// Returns the step that removes a content coding with which an object was stored.
    public func decoder(for coding: String) -> (any PostProcessor<File, File>)? { HTTPSource().decoder(for: coding) }
  }

  /// The source of one run.
  struct S3Session: SourceSession {
    let client: S3Client

    func stop() async { await client.stop() }

    func open(_ request: SourceRequest) async throws -> SourceReply {
      let location = try ObjectLocation(request.url)
      let purpose = "the download of s3://\(location.bucket)/\(location.key.escaped)"
      var call = S3Call(method: .get, bucket: location.bucket, key: location.key, purpose: purpose)
      if let version = location.version { call.query["versionId"] = version }
      call.fields = try HTTPRequestFields.fields(for: request)
      // A storage may not know If-Range.
      call.fields["If-Range"] = nil
      // Proxies may change them, so that they must not be signed, and nothing else is asked for without them.
      for name in ["Accept", "Accept-Encoding"] { call.fields[name] = nil }
      if request.range != nil, let tag = request.validator?.ifRange, tag.hasPrefix("\"") {
        call.fields["If-Match"] = tag
      }
      call.fields["x-amz-checksum-mode"] = "ENABLED"
      call.isSigned = !request.isNamedByServer
      call.lease = request.lease
      let (head, response, failure) = try await client.open(call)
      if failure?.status == 412, call.fields["If-Match"] != nil {
        throw DownloadError(
          .contentChanged, "\(purpose) starts again: the object has changed since its first bytes came", httpStatus: 412
        )
      }
      if let failure, ![412, 416].contains(failure.status) {
        var error = failure.error(purpose, bucket: location.bucket)
        (error.code, error.httpStatus) = (.httpStatus, failure.status)
        error.retryAfter = failure.retryAfter
        throw error
      }
      let body: Body =
        failure == nil
        ? .pushing(discard: { response.discard() }) { sink in
          try await response.push(into: sink, pace: request.pace, limit: nil)
        } : .empty
      var reply = try SourceReply(httpStatus: head.status, headers: head.fields, url: request.url, body: body)
      reply.suggestedName = reply.suggestedName ?? location.key.split(separator: "/").last.map(String.init)
      if reply.coverage == .whole, let sum = head.fields["x-amz-checksum-sha256"],
        head.fields["x-amz-checksum-type"] ?? "FULL_OBJECT" == "FULL_OBJECT",
        let bytes = Data(base64Encoded: sum), bytes.count == 32
      {
        let digest = FileDigest(.sha256, bytes: Array(bytes))
        if !reply.digests.contains(digest) { reply.digests.append(digest) }
      }
      return reply
    }
  }
#endif
