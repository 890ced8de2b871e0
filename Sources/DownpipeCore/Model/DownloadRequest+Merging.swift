package import Foundation

// The effect of adding a request again.
extension DownloadRequest {
  /// A property of a request that is merged as a whole.
  package struct MergedPart: Sendable {
    /// The name of the property.
    package let name: String
    /// Copies the property from a new request if it differs from that of the base.
    let merge: @Sendable (_ new: DownloadRequest, _ base: DownloadRequest, _ merged: inout DownloadRequest) -> Void

    private init<Value: Equatable & Sendable>(
      _ name: String, _ path: any WritableKeyPath<DownloadRequest, Value> & Sendable
    ) {
      self.name = name
      merge = { new, base, merged in
        if new[keyPath: path] != base[keyPath: path] { merged[keyPath: path] = new[keyPath: path] }
      }
    }

    /// All properties except the id.
    package static let all: [MergedPart] = [
      MergedPart("url", \.url),
      MergedPart("mirrors", \.mirrors),
      MergedPart("priority", \.priority),
      MergedPart("intent", \.intent),
      MergedPart("deadline", \.deadline),
      MergedPart("after", \.after),
      MergedPart("tags", \.tags),
      MergedPart("metadata", \.metadata),
      MergedPart("expectedSize", \.expectedSize),
      MergedPart("sizeHint", \.sizeHint),
      MergedPart("expectedDigests", \.expectedDigests),
      MergedPart("pieces", \.pieces),
      MergedPart("maximumSize", \.maximumSize),
      MergedPart("headers", \.headers),
      MergedPart("destination", \.destination),
      MergedPart("steps", \.steps),
      MergedPart("refresh", \.refresh),
      MergedPart("headStart", \.headStart),
      MergedPart("isNamedByServer", \.isNamedByServer),
      MergedPart("lineage", \.lineage),
    ]
  }

  /// Returns this request with the changes of a new one: the properties in which the new request differs from the one
  /// that was last added. Other properties keep changes that were made since then.
  ///
  /// Header fields and the URL may then come from different requests: the fields stay bound to the origin of theirs.
  package func takingOver(_ new: DownloadRequest, since base: DownloadRequest) -> DownloadRequest {
    var merged = self
    for part in MergedPart.all { part.merge(new, base, &merged) }
    switch (new.url != base.url, new.headers != base.headers) {
    case (false, true): merged.bindHeaders(givenFor: new.url)
    case (true, false) where headers != new.headers: merged.bindHeaders(givenFor: url)
    default: break
    }
    return merged
  }

  /// Whether this request asks for another file than an earlier one: its URL or expected size has changed, or there is a
  /// digest, of the file or of its pieces, that the earlier one did not have. A requirement that is gone does not ask for another file.
  package func asksForAnotherFile(than earlier: DownloadRequest) -> Bool {
    if hasOtherURL(than: earlier) { return true }
    if expectedSize != .unknown, expectedSize != earlier.expectedSize { return true }
    if let pieces, pieces != earlier.pieces { return true }
    return expectedDigests.contains { !earlier.expectedDigests.contains($0) }
  }

  /// Whether a step has to prove the file by a digest, of the file or of its pieces.
  package var expectsDigest: Bool { !expectedDigests.isEmpty || pieces != nil }

  /// Whether work that was begun for an earlier request, a transfer or steps, must not go on for this one.
  package func changesWork(begunFor earlier: DownloadRequest) -> Bool {
    // Equal copies share their storage, so the comparison of most requests ends here.
    if self == earlier { return false }
    return hasOtherURL(than: earlier) || mirrors != earlier.mirrors || expectedSize != earlier.expectedSize
      || expectedDigests != earlier.expectedDigests || pieces != earlier.pieces || maximumSize != earlier.maximumSize
      || steps != earlier.steps || hasOtherStepSettings(than: earlier)
      || isNamedByServer != earlier.isNamedByServer
  }

  private func hasOtherStepSettings(than earlier: DownloadRequest) -> Bool {
    guard metadata != earlier.metadata else { return false }
    func settings(_ request: DownloadRequest) -> [String: String] {
      request.metadata.filter { $0.key.hasPrefix(Self.stepSettingPrefix) }
    }
    return settings(self) != settings(earlier)
  }

  /// Whether the URL differs; ledgers keep a relative URL as an absolute one.
  package func hasOtherURL(than earlier: DownloadRequest) -> Bool {
    url != earlier.url && url.absoluteString != earlier.url.absoluteString
  }

  /// Binds the header fields to the origin of the URL that they were given for, if the request has a URL of another
  /// origin now.
  package mutating func bindHeaders(givenFor earlier: URL) {
    guard !headers.isEmpty, url != earlier else { return }
    let origin = Origin(earlier)
    if origin == nil || origin != Origin(url) { headers = headers.bound(to: origin) }
  }

  /// The header fields that may be sent to one of the request's URLs; a mirror of another origin gets only those that
  /// are meant for it.
  package func headers(for target: URL) -> HeaderFields {
    isNamedByServer ? headers.forEverybody : headers.reaching(target, ofDownloadAt: url)
  }
}
