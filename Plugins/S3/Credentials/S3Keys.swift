#if LIBCURL
  import DownpipeCore
  import Foundation

  /// What requests are signed with.
  struct S3Keys: Sendable, Hashable {
    var id: String
    var secret: String
    /// Sent with temporary keys.
    var token: String?
    /// When they end; `nil` for keys that do not.
    var expires: Date?

    /// Rejects what cannot be sent in a header field.
    func check(_ place: String) throws(DownloadError) {
      let texts = [id, secret, token ?? "-"]
      guard texts.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy { (0x21...0x7E).contains($0) } }) else {
        throw DownloadError.credentials(
          "the keys in \(place) cannot be used: they are empty, or have blanks or other characters")
      }
    }
  }

  extension S3Keys {
    /// The answer of the services of containers and instances.
    struct Document: Decodable {
      var AccessKeyId: String?
      var SecretAccessKey: String?
      var Token: String?
      var Expiration: String?
      var Code: String?
    }

    /// - Throws: `DownloadError` with `.objectStorageCredentials` if the service has answered something else.
    init(document: [UInt8], from service: String) throws(DownloadError) {
      let document = try? JSONDecoder().decode(Document.self, from: Data(document))
      guard let document, document.Code ?? "Success" == "Success", let id = document.AccessKeyId,
        let secret = document.SecretAccessKey
      else {
        throw DownloadError.credentials("\(service) has no keys: check the role of the container or the instance")
      }
      self.init(
        id: id, secret: secret, token: document.Token,
        expires: document.Expiration.flatMap(Date.init(timestamp:)))
      try check(service)
    }
  }
#endif
