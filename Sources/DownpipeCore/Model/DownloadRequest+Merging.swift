// What a request that is added again changes.
extension DownloadRequest {
  /// A part of a request that is taken over as a whole.
  package struct MergedPart: Sendable {
    /// The property's name.
    package let name: String
    /// Takes the part over from a new request, unless it is that of the base.
    let merge: @Sendable (_ new: DownloadRequest, _ base: DownloadRequest, _ merged: inout DownloadRequest) -> Void

    private init<Value: Equatable & Sendable>(
      _ name: String, _ path: any WritableKeyPath<DownloadRequest, Value> & Sendable
    ) {
      self.name = name
      merge = { new, base, merged in
        if new[keyPath: path] != base[keyPath: path] { merged[keyPath: path] = new[keyPath: path] }
      }
    }

    /// Every part but the id, which names the download.
    package static let all: [MergedPart] = [
      MergedPart("url", \.url),
      MergedPart("mirrors", \.mirrors),
      MergedPart("priority", \.priority),
      MergedPart("intent", \.intent),
      MergedPart("tags", \.tags),
      MergedPart("metadata", \.metadata),
      MergedPart("expectedSize", \.expectedSize),
      MergedPart("sizeHint", \.sizeHint),
      MergedPart("expectedDigests", \.expectedDigests),
      MergedPart("maximumSize", \.maximumSize),
      MergedPart("headers", \.headers),
      MergedPart("destination", \.destination),
      MergedPart("steps", \.steps),
      MergedPart("headStart", \.headStart),
    ]
  }

  /// This request with what a new one changes of it: the parts in which the new one differs from the one that was added
  /// last. Where it says the same as then, what was changed since stays.
  package func takingOver(_ new: DownloadRequest, since base: DownloadRequest) -> DownloadRequest {
    var merged = self
    for part in MergedPart.all { part.merge(new, base, &merged) }
    return merged
  }
}
