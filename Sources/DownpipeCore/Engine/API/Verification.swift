/// What the verification of a finished download's file has found; see ``Downloader/verify(_:repairing:)``.
public enum Verification: Sendable, Hashable {
  /// The file has the bytes that were downloaded.
  case intact
  /// The file has other bytes, and the error says which: `.pieceMismatch` with ``DownloadError/wrongBytes``,
  /// `.digestMismatch`, or `.lengthMismatch`.
  case damaged(DownloadError)
  /// The file does not exist any more.
  case missing
  /// Nothing says here which bytes are right, for the reason in the text.
  case unverifiable(String)
}

extension Downloader {
  /// Verifies the file of a finished download on the disk, and repairs it if that is wanted.
  ///
  /// ```swift
  /// if case .damaged(let error) = try await downloader.verify(id, repairing: true) {
  ///   print(error)
  ///   _ = try await downloader.download(id)?.value     // when the repaired file is in its place
  /// }
  /// ```
  /// The file is compared with the digests of the request, with those that the server has sent, and with
  /// ``DownloadRequest/pieces``, by the ``DigestVerifying`` steps of the pipeline. A file whose bytes were changed by a
  /// step, such as an archive that was unpacked, cannot be verified; see ``PostProcessor/keepsContent``. The file is read on
  /// a thread for blocking work, and cancelling the task ends that.
  ///
  /// **Repair.** A damaged or missing file is fetched again, as by ``restart(_:)``: it stays in place until the new one is
  /// complete, and is then replaced. With ``DownloadRequest/pieces`` only the wrong pieces are fetched; the others are
  /// copied from the file. A file that another program has changed is the download's own again, and is replaced, too; a file
  /// that was there before the download (``Artifact/isReused``) is not.
  /// - Parameters:
  ///   - id: The finished download.
  ///   - isRepairing: Whether a damaged or missing file is repaired. The method does not wait for that.
  /// - Returns: What was found before a repair.
  /// - Throws: ``DownloadError`` with `.invalidRequest` if there is no such download, or if it has not finished;
  ///   `.inUse` if it has changed while it was to be repaired; `.permission` or `.storage` if the file cannot be read;
  ///   `.ledger` or `.shutDown`; `CancellationError`.
  public func verify(_ id: DownloadID, repairing isRepairing: Bool = false) async throws -> Verification {
    try await engine.verify(id, repairing: isRepairing)
  }
}
