public import DownpipeCore
public import Foundation

extension MetalinkDocument {
  /// Returns a request for each file: with its best URL and the others as mirrors, its size, its digests, and its path as
  /// the destination.
  ///
  /// ```swift
  /// let requests = try document.requests(from: documentURL) { request, file in
  ///   request.tags = ["update"]
  /// }
  /// ```
  /// The document names the URLs, so the requests are ``/DownpipeCore/DownloadRequest/isNamedByServer``: they get no
  /// credentials, and of the header fields that `change` adds those for everybody only, unless it sets that to `false`.
  /// URLs with user information are left out. A pipeline without a step such as `VerifyChecksum` refuses requests with
  /// digests.
  /// - Parameters:
  ///   - documentURL: Where the document came from; `nil` when it is not known. If it is `https`, URLs of `http` are left
  ///     out for files without a strong digest (SHA-256, SHA-384 or SHA-512), which would prove their bytes.
  ///   - directory: The folder of the files, relative to the storage's root; the root itself by default.
  ///   - change: Changes a request before it is returned.
  ///   - isAccepted: Whether a URL can be used; by default, whether it is `https` or `http`.
  ///   - skip: Gets each file that is left out: those of ``skipped``, and those that have no usable URL. `nil` if such a
  ///     file is an error.
  /// - Throws: `DownloadError` with `.invalidMetalink` for a file that is left out without `skip`, and if no file is left;
  ///   what `change` throws.
  public func requests(
    from documentURL: URL? = nil, in directory: String? = nil,
    changing change: (inout DownloadRequest, File) throws -> Void = { _, _ in },
    accepting isAccepted: (URL) -> Bool = { ["https", "http"].contains($0.scheme?.lowercased()) },
    skipping skip: ((SkippedFile) -> Void)? = nil
  ) throws -> [DownloadRequest] {
    let isSecure = documentURL?.scheme?.lowercased() == "https"
    var firstLeftOut: SkippedFile?
    func leaveOut(_ file: SkippedFile) throws(DownloadError) {
      guard let skip else { throw file.error }
      firstLeftOut = firstLeftOut ?? file
      skip(file)
    }
    for file in skipped { try leaveOut(file) }
    let requests = try files.compactMap { file -> DownloadRequest? in
      let pieces = file.bestPieces
      let isProved = file.digests.contains { $0.algorithm.isStrong } || pieces?.algorithm.isStrong == true
      var known: Set<URL> = []
      let urls = file.mirrors.map(\.url).filter { url in
        let parts = URLText(url)
        return isAccepted(url) && parts.userInfo == nil && (!isSecure || isProved || !parts.isPlainHTTP)
          && known.insert(url).inserted
      }
      guard let first = urls.first else {
        try leaveOut(SkippedFile(name: file.name, reason: "none of its URLs can be used"))
        return nil
      }
      var request = DownloadRequest(
        first, mirrors: Array(urls.dropFirst()), destination: file.destination(in: directory))
      request.expectedSize = file.size.map { .known($0) } ?? .unknown
      request.expectedDigests = file.digests
      request.isNamedByServer = true
      request.pieces = pieces
      try change(&request, file)
      return request
    }
    if requests.isEmpty { throw firstLeftOut?.error ?? MetalinkReader.invalid("it has no file") }
    return requests
  }
}

extension MetalinkDocument.SkippedFile {
  /// The error that says which file is left out, and why: `.invalidMetalink`.
  public var error: DownloadError {
    let file = name.map { "the file “\($0.prefix(100).escaped)”" } ?? "a file without a name"
    return DownloadError(.invalidMetalink, "\(file) of the Metalink document is left out: \(reason)")
  }
}

extension MetalinkDocument.File {
  /// Why nothing in the document verifies the bytes of the file although it has hashes: their algorithms are unknown, or its
  /// pieces exceed the limits of `PieceDigests`. `nil` if something does, and for a file without hashes.
  public var unverifiableReason: String? {
    guard digests.isEmpty, bestPieces == nil else { return nil }
    let names = unknownAlgorithms + pieces.filter { !$0.digests.isEmpty }.map { "\($0.algorithm) of pieces" }
    guard !names.isEmpty else { return nil }
    let shown = names.prefix(5).map(\.escaped).joined(separator: ", ") + (names.count > 5 ? " and others" : "")
    return "its hashes are \(shown), which cannot be checked here"
  }

  /// The digests of pieces in the strongest algorithm; `nil` if there are none that can be used.
  var bestPieces: PieceDigests? {
    for algorithm in DigestAlgorithm.byStrength.reversed() {
      for pieces in pieces where pieces.algorithm == algorithm {
        if let digests = PieceDigests(algorithm, length: pieces.length, digests: pieces.digests),
          size.map(digests.fit) ?? true
        {
          return digests
        }
      }
    }
    return nil
  }

  /// The destination of the file, with names that are safe on every file system.
  func destination(in directory: String?) -> DownloadRequest.Destination {
    var names = name.split(separator: "/").map { SafeFileName.make(fromTitle: String($0)) }
    let last = names.popLast()
    let folders = (directory.map { [$0] } ?? []) + names
    return DownloadRequest.Destination(
      directory: folders.isEmpty ? nil : folders.joined(separator: "/"), name: last)
  }
}

extension URLText {
  fileprivate var isPlainHTTP: Bool { isHTTP && !isHTTPS }
}
