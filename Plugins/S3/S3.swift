#if LIBCURL
  public import DownpipeCore
  public import Foundation

  /// A bucket of an object storage that speaks the protocol of Amazon S3, or the part of it below a prefix.
  ///
  /// ```swift
  /// let archive = try S3("s3://my-archive/2026")                          // AWS, credentials as its tools find them
  /// let local = try S3("s3://downloads") { $0.endpoint = URL(string: "http://localhost:9000") }
  /// ```
  /// Requests are signed by libcurl (signature version 4), which has to be 7.87 or later. A refused request is repeated with
  /// a pause, up to ``Configuration/attempts`` times, if the storage asks for it (`SlowDown`, 5xx) or did not answer. The
  /// connections of all steps and sources with copies of one value are shared; they close when the last copy is released.
  public struct S3: Sendable {
    /// The name of the bucket.
    public let bucket: String
    /// What the keys of all objects begin with: empty, or a text that ends with a slash.
    public let prefix: String

    let client: S3Client

    /// The settings.
    public var configuration: Configuration { client.configuration }

    /// Creates a description of a bucket. Nothing is asked of the storage.
    ///
    /// - Parameters:
    ///   - url: `s3://bucket` or `s3://bucket/prefix`.
    ///   - configuration: The settings.
    /// - Throws: ``/DownpipeCore/DownloadError`` with `.invalidPipeline` for another URL, and for settings that contradict
    ///   each other.
    public init(_ url: String, _ configuration: Configuration = Configuration()) throws(DownloadError) {
      let client = try S3Client(configuration)
      guard let location = URL(string: url).flatMap({ try? ObjectLocation($0, allowsBucket: true) }),
        location.version == nil
      else {
        throw DownloadError(
          .invalidPipeline, "“\(url.prefix(200).escaped)” is no bucket: write s3://bucket or s3://bucket/prefix")
      }
      bucket = location.bucket
      prefix = location.key.isEmpty || location.key.hasSuffix("/") ? location.key : location.key + "/"
      self.client = client
    }

    /// Creates a description of a bucket with settings that the closure changes.
    public init(_ url: String, _ configure: (inout Configuration) -> Void) throws(DownloadError) {
      var configuration = Configuration()
      configure(&configuration)
      try self.init(url, configuration)
    }

    /// Ends multipart uploads below the prefix that were started before a date, and removes their parts, for which the
    /// storage may charge.
    ///
    /// An upload is left behind when its download is removed or starts again. A rule of the bucket's lifecycle
    /// (`AbortIncompleteMultipartUpload`) does the same without a call. Uploads of other programs are ended, too.
    /// - Parameter date: By the clock of the storage. No upload may take so long.
    /// - Returns: The number of uploads.
    /// - Throws: ``/DownpipeCore/DownloadError``; see ``UploadTo``.
    public func abortUploads(startedBefore date: Date) async throws -> Int {
      try await MultipartUploads(client: client, bucket: bucket).abort(prefix: prefix, startedBefore: date)
    }
  }

  extension DownloadError.Code {
    /// The object storage does not know the credentials, or they have expired, or there are none.
    public static let objectStorageCredentials = DownloadError.Code("objectStorageCredentials")
    /// The credentials have no right to what was asked of the object storage.
    public static let objectStorageDenied = DownloadError.Code("objectStorageDenied")
    /// There is no such bucket.
    public static let bucketNotFound = DownloadError.Code("bucketNotFound")
  }

  extension DownloadError {
    /// The keys are this machine's: every download fails with them.
    static func credentials(_ message: String) -> DownloadError {
      DownloadError(.objectStorageCredentials, message, scope: .machine)
    }
  }
#endif
