public import DownpipeCore

extension DownloadError.Code {
  /// The signature is not one of the file by an accepted key, or it cannot be read.
  public static let badSignature = DownloadError.Code("badSignature")
  /// There is no signature for the download.
  public static let noSignature = DownloadError.Code("noSignature")
}

extension ProcessingContext {
  /// Fetches a signature and verifies a file with it.
  ///
  /// If that fails, the signature is fetched once more, unless it was requested for this file: the copy of another download
  /// may be older than the file.
  /// - Parameter verify: Verifies the file with the bytes of the signature; called again for other bytes.
  /// - Throws: The error of `verify`, with the URL of the signature for `.badSignature`, and the errors of the fetch.
  func verify(
    with file: CompanionFile, maximumBytes: Int, _ verify: ([UInt8]) async throws -> Void
  ) async throws {
    let bytes = try await fetch(signature: file, maximumBytes: maximumBytes)
    do {
      do {
        try await verify(bytes)
      } catch let error as DownloadError where [.badSignature, .digestMismatch].contains(error.code) {
        let again = try await fetch(signature: file, maximumBytes: maximumBytes)
        guard again != bytes else { throw error }
        try await verify(again)
      }
    } catch let error as DownloadError where error.code == .badSignature {
      throw error.located(stage: nil, url: try? file.url(beside: request.url), attempt: nil)
    }
  }

  /// Fetches a signature.
  ///
  /// - Throws: ``DownloadError`` with `.noSignature` if the server says for good that there is none; otherwise the error
  ///   of the fetch, for the retry policy.
  private func fetch(signature file: CompanionFile, maximumBytes: Int) async throws -> [UInt8] {
    let url = try file.url(beside: request.url)
    do {
      return try await fetch(file, maximumBytes: maximumBytes)
    } catch let error as DownloadError {
      guard error.code == .httpStatus, let status = error.httpStatus, (400..<500).contains(status),
        ![408, 425, 429].contains(status)
      else { throw error }
      throw DownloadError(
        .noSignature,
        "there is no signature at \(url.redacted), where the server replied with status \(status): check the URL",
        httpStatus: status, cause: error
      ).located(stage: nil, url: url, attempt: nil)
    }
  }
}

extension Artifact {
  /// The error for a folder, which no signature is of; `nil` for a file.
  func folderError(in step: String) -> DownloadError? {
    guard kind == .directory else { return nil }
    return DownloadError(
      .processing, "“\(name)” is a folder, which has no signature: put \(step) before the step that creates it")
  }
}
