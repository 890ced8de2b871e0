internal import Foundation
internal import Synchronization

// Another version of the file, fetched beside the bytes of the one before.
extension Run {
  /// The most versions that one run begins. A server that sends two of them in turn would be asked for ever.
  static let mostVersions = 2

  /// The key of the partial in use.
  var partialKey: PartialKey { read { $0.partialKey } }

  /// Whether a 403 means that the link of a place has expired, and is to be refreshed: it is the URL of the request, and
  /// was not refreshed by this run.
  func canRefresh(_ url: URL) -> Bool {
    pipeline.refresher != nil && state.withLock { $0.freshLink == nil && $0.record.request.url == url }
  }

  /// Whether a step verifies a digest of the request.
  var verifiesDigest: Bool {
    read { $0.request.expectsDigest && $0.request.steps.verifiesDigests(of: pipeline.steps) }
  }

  /// The version that takes the place of the bytes on disk after a failure; `nil` if there is none.
  func anotherVersion(after error: any Error) -> AnotherVersion? {
    if let version = error as? AnotherVersion { return version }
    // Only for bytes that differ: what was refused as a message stays refused. A digest proves the new version, and it takes the
    // place of the bytes on disk only then.
    let isAllowed = findings.withLock { $0.hasOtherBytes } && (read { $0.versions.mayChange } || verifiesDigest)
    guard isAllowed, stopReason == nil, read({ !$0.partialRanges.isEmpty }) else { return nil }
    let known = (error as? JudgedFailure)?.error ?? error as? DownloadError
    guard let known, known.code == .contentChanged || known.code == .sizeChanged else { return nil }
    return AnotherVersion(because: known, isProven: true)
  }

  /// Goes on with the version before if nothing has come of the one that was begun.
  func goBackFromEmptyVersion() {
    update { record in if record.partialRanges.isEmpty { record.goBackToEarlierVersion() } }
  }

  /// Begins a version, first in the ledger. The bytes on disk stay until it is complete. If its reply is of the version before,
  /// that one goes on.
  func begin(_ version: AnotherVersion) async throws {
    announce(.restarted(version.error))
    context.options.probe?.note(.beganVersion(id))
    let hasEarlier = update { record in
      if let earlier = record.versions.earlier, version.fits(earlier) {
        record.goBackToEarlierVersion()
      } else {
        record.beginVersion(isWanted: record.versions.mayChange || version.isProven)
      }
      return record.earlierArtifact != nil
    }
    findings.withLock { ($0.origins, $0.hasOtherBytes) = (ByteOrigins(), false) }
    try await save(hasEarlier ? [.checkpoint, .steps, .state] : [.checkpoint, .steps])
  }
}
