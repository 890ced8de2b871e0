#if LIBCURL
  import DownpipeCore
  import Foundation

  /// A refusal of the storage: the status, and what its document says.
  struct S3Failure: Error, Sendable, Hashable {
    var status: Int
    /// The code of the storage, such as `NoSuchKey`; empty if it has sent none.
    var code = ""
    var message = ""
    /// The region that the bucket has, if the storage says so.
    var region: String?
    var retryAfter: RetryAfter?

    init(status: Int, fields: HeaderFields, body: [UInt8]) {
      self.status = status
      region = fields["x-amz-bucket-region"]
      retryAfter = fields["Retry-After"].flatMap { RetryAfter(parsing: $0, sentAt: fields["Date"]) }
      guard let document = try? S3Document(body), document.name == "Error" else { return }
      code = document["Code"] ?? ""
      message = document["Message"] ?? ""
      region = region ?? document["Region"]
    }

    /// The same request may succeed later.
    var isTemporary: Bool {
      [408, 429, 500, 502, 503, 504].contains(status)
        || [
          "SlowDown", "InternalError", "ServiceUnavailable", "RequestTimeout", "ThrottlingException", "Throttling",
          "OperationAborted", "ConditionalRequestConflict", "BadDigest", "XAmzContentSHA256Mismatch",
        ].contains(code)
    }

    /// The code says that the same request fails each time, or with the same keys.
    var isFinal: Bool {
      [
        "PreconditionFailed", "NoSuchUpload", "NoSuchBucket", "NoSuchKey", "InvalidPart", "InvalidPartOrder",
        "EntityTooSmall", "EntityTooLarge", "MalformedXML", "InvalidRequest", "InvalidArgument", "MethodNotAllowed",
        "NotImplemented", "AccessDenied", "AllAccessDisabled", "AccountProblem", "InvalidAccessKeyId",
        "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "TokenRefreshRequired", "RequestTimeTooSkewed",
      ].contains(code)
    }

    /// The keys are too old, and others may be had.
    var needsNewCredentials: Bool { ["ExpiredToken", "TokenRefreshRequired", "InvalidToken"].contains(code) }

    var isConflict: Bool { status == 412 || code == "PreconditionFailed" }

    /// The storage has no conditional requests of this kind.
    var isUnsupported: Bool { status == 501 || code == "NotImplemented" }

    var isMissing: Bool { status == 404 && code != "NoSuchBucket" }

    /// The failure for a user.
    /// - Parameter what: What was asked for, such as “the upload to s3://bucket/key”.
    func error(_ what: String, bucket: String) -> DownloadError {
      let said = [code, message].filter { !$0.isEmpty }.map { $0.prefix(300).escaped }.joined(separator: ": ")
      let reply = "status \(status)\(said.isEmpty ? "" : ", \(said)")"
      switch code {
      case "NoSuchBucket":
        return DownloadError(
          .bucketNotFound, "\(what) failed: there is no bucket “\(bucket)” at this storage (\(reply)); check its name")
      case "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "TokenRefreshRequired":
        return DownloadError.credentials(
          "\(what) failed: the object storage does not accept the credentials (\(reply)); check the key, its secret and its token, "
            + "and whether they have expired")
      case "RequestTimeTooSkewed":
        return DownloadError.credentials(
          "\(what) failed: the clock of this machine differs too much from that of the storage (\(reply)); set it right"
        )
      case "AccessDenied", "AllAccessDisabled", "AccountProblem":
        return denied(what, reply)
      default: break
      }
      if isTemporary {
        var error = DownloadError(
          .network, "\(what) failed: the object storage is busy or disturbed (\(reply)); a retry may help")
        error.retryAfter = retryAfter
        return error
      }
      if status == 401 || status == 403 { return denied(what, reply) }
      return DownloadError(.processing, "\(what) failed: the object storage refuses it (\(reply))")
    }

    private func denied(_ what: String, _ reply: String) -> DownloadError {
      DownloadError(
        .objectStorageDenied,
        "\(what) failed: the credentials have no right to it (\(reply)); check the policies of the bucket and of the key"
      )
    }
  }
#endif
