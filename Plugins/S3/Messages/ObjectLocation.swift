#if LIBCURL
  import DownpipeCore
  import Foundation

  /// The place of an object: the parts of an `s3:` URL.
  struct ObjectLocation: Sendable, Hashable {
    static let scheme = "s3"
    /// The longest key, in bytes of UTF-8.
    static let longestKey = 1024

    let bucket: String
    /// The key, not encoded; empty for the bucket itself.
    let key: String
    /// A version of the object, from the query item `versionId`.
    var version: String?

    init(bucket: String, key: String) {
      self.bucket = bucket
      self.key = key
    }

    /// - Throws: `DownloadError` with `.unsupportedURL` for another URL.
    init(_ url: URL, allowsBucket: Bool = false) throws(DownloadError) {
      let parts = URLComponents(url: url, resolvingAgainstBaseURL: false)
      guard let parts, parts.scheme?.lowercased() == Self.scheme, let bucket = parts.host, parts.port == nil,
        parts.user == nil, Self.isBucket(bucket)
      else {
        throw DownloadError(.unsupportedURL, "\(url.redacted) names no object: write s3://bucket/key")
      }
      let items = parts.queryItems ?? []
      guard items.allSatisfy({ $0.name == "versionId" && $0.value?.isEmpty == false }), items.count < 2 else {
        throw DownloadError(.unsupportedURL, "\(url.redacted) has a query: an object has at most ?versionId=…")
      }
      let path = parts.percentEncodedPath
      guard parts.fragment == nil else {
        throw DownloadError(.unsupportedURL, "\(url.redacted) has a fragment: write %23 for a # in the key")
      }
      guard let key = String(path.dropFirst(path.hasPrefix("/") ? 1 : 0)).removingPercentEncoding else {
        throw DownloadError(.unsupportedURL, "the key in \(url.redacted) is no UTF-8")
      }
      if key.isEmpty, !allowsBucket {
        throw DownloadError(.unsupportedURL, "\(url.redacted) names a bucket and no object: write s3://bucket/key")
      }
      (self.bucket, self.key, version) = (bucket, key, items.first?.value)
      if !key.isEmpty { try check() }
    }

    /// Host names, and the names that old buckets and other storages have.
    private static func isBucket(_ text: String) -> Bool {
      (1...255).contains(text.utf8.count) && text.utf8.allSatisfy(\.isUnreserved) && !text.hasPrefix(".")
    }

    /// - Throws: `DownloadError` with `.unsafePath` for a key that no storage, or not every program, can have.
    func check() throws(DownloadError) {
      func refused(_ why: String) -> DownloadError {
        DownloadError(.unsafePath, "“\(key.prefix(200).escaped)” cannot be the key of an object: \(why)")
      }
      if key.isEmpty { throw refused("it is empty") }
      if key.utf8.count > Self.longestKey { throw refused("it has more than \(Self.longestKey) bytes") }
      if key.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7F }) {
        throw refused("it has control characters")
      }
      // On the way, programs would take them for a path.
      if key.split(separator: "/", omittingEmptySubsequences: false).contains(where: { $0 == "." || $0 == ".." }) {
        throw refused("it has a “.” or “..” between slashes")
      }
    }

    /// The `s3:` URL.
    var url: URL? { URL(string: "\(Self.scheme)://\(bucket)/\(Self.encoded(key, keepsSlashes: true))") }

    /// Encodes what a URL must encode, in the one form that signatures have.
    static func encoded(_ text: some StringProtocol, keepsSlashes: Bool = false) -> String {
      var result = ""
      for byte in text.utf8 {
        if byte.isUnreserved || keepsSlashes && byte == UInt8(ascii: "/") {
          result.unicodeScalars.append(Unicode.Scalar(byte))
        } else {
          result += byte < 16 ? "%0" : "%"
          result += String(byte, radix: 16, uppercase: true)
        }
      }
      return result
    }
  }
#endif
