internal import Foundation
internal import Synchronization

// A refresh of a finished download: what the published file and the record allow.
extension Run {
  /// The condition of a request to one of the download's places; `nil` to fetch the file in any case.
  ///
  /// A validator means something only for the place that has sent it, or for the URL of the request, which may lead there
  /// by a redirect.
  func condition(for url: URL) -> Validator? {
    if findings.withLock({ $0.asksWithoutCondition }) { return nil }
    return read { record in
      guard record.isAsking, let validator = record.checkpoint.validator,
        validator.conditionField != nil
      else { return nil }
      guard let resource = record.checkpoint.resource, resource != url.resourceKey else { return validator }
      let isOfMirror = record.request.mirrors.contains { $0.resourceKey == resource }
      return url == record.request.url && !isOfMirror ? validator : nil
    }
  }

  /// Prepares a refresh: a file that was removed, or changed by another program, is fetched as a whole. So is one in
  /// memory, whose bytes the record does not have.
  func prepareRefresh() async throws {
    guard let stored = read({ $0.isAsking ? .some($0.steps.artifact) : .none }) else { return }
    if let stored, stored.path != nil, await storage.contains(try storage.artifact(from: stored)) { return }
    try await fetchAnew()
  }

  /// Forgets the published file as the content of the download, first in the ledger. It stays in place.
  func fetchAnew() async throws {
    update { $0.fetchAnew() }
    try await save([.checkpoint, .steps])
  }

  /// The published file of a refreshed download that has not changed.
  func unchangedArtifact() throws -> Artifact {
    // From now on a change of the destination waits for the end of the run.
    let stored = update { record in
      record.apply(.bytesComplete)
      return record.steps.artifact
    }
    guard let stored else { throw DownloadError(.storage, "the published file is not in the record") }
    return try storage.artifact(from: stored)
  }
}
