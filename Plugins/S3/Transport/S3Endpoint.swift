#if LIBCURL
  import DownpipeCore
  import Foundation

  /// The server of a storage, and how its URLs name buckets.
  struct S3Endpoint: Sendable, Hashable {
    /// The URL of a storage other than AWS, without a slash at its end.
    let base: String?
    let addressing: S3.Addressing

    /// - Throws: `DownloadError` with `.invalidPipeline` for a variable of the environment that is no URL.
    init(_ configuration: S3.Configuration) throws(DownloadError) {
      var url = configuration.endpoint
      if url == nil {
        for name in ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"] where url == nil {
          guard let text = configuration.environment[name], !text.isEmpty else { continue }
          url = URL(string: text)
          guard url?.isHTTP == true else {
            throw DownloadError(.invalidPipeline, "\(name) is no URL of a storage: it begins with http:// or https://")
          }
        }
      }
      base = url.map { url in
        let text = url.absoluteString
        return text.hasSuffix("/") ? String(text.dropLast()) : text
      }
      addressing = configuration.addressing
    }

    /// The URL of a bucket or an object, without its query.
    func url(bucket: String, key: String, region: String) -> String {
      let path = ObjectLocation.encoded(key, keepsSlashes: true)
      let base = base ?? "https://s3.\(region).amazonaws.com\(region.hasPrefix("cn-") ? ".cn" : "")"
      guard isInHostName(bucket), let scheme = base.range(of: "://") else { return "\(base)/\(bucket)/\(path)" }
      return "\(base[..<scheme.upperBound])\(bucket).\(base[scheme.upperBound...])/\(path)"
    }

    private func isInHostName(_ bucket: String) -> Bool {
      switch addressing {
      case .path: false
      case .hostName: true
      // The certificate of the storage is for one label before its name.
      case .automatic: base == nil && !bucket.contains(".") && !bucket.contains("_")
      }
    }
  }
#endif
