internal import Foundation
internal import Synchronization

/// Notes what removed records leave behind: files to delete and watchers to inform. It is a small part of the records,
/// which can be a million.
///
/// All records are noted, because none can be proved to have left no bytes on disk: a restart resets the attempts and
/// the checkpoint, and its partial is only deleted when the next attempt has ended.
final class RemovedDownloads: Sendable {
  /// What has been noted.
  struct Summary: Sendable {
    fileprivate(set) var pages: [RemovedPage] = []
    /// The requests of watched downloads; of those that are not watched individually, a bounded number.
    fileprivate(set) var watched: [DownloadRequest] = []
    fileprivate(set) var count = 0

    /// The number of artifacts to delete.
    var fileCount: Int { pages.reduce(0) { $0 + $1.fileCount } }

    /// Removes and returns all pages.
    mutating func takePages() -> [RemovedPage] {
      defer { pages = [] }
      return pages
    }

    /// Removes and returns the artifacts to delete, and the ids of their downloads.
    mutating func takeFiles() -> [(id: DownloadID, artifact: StoredArtifact)] {
      defer { for index in pages.indices { pages[index].dropFiles() } }
      return pages.flatMap(\.artifacts)
    }
  }

  private let state = Mutex(Summary())
  private let hub: EventHub?
  private let withFiles: Bool

  /// - Parameters:
  ///   - hub: Knows the watchers to inform; `nil` if there is no need to.
  ///   - withFiles: Whether the artifacts of finished downloads are deleted, too.
  init(of hub: EventHub? = nil, withFiles: Bool = false) {
    self.hub = hub
    self.withFiles = withFiles
  }

  func note(_ record: DownloadRecord) {
    state.withLock { state in
      let files: [StoredArtifact?] = withFiles ? record.artifactsToDelete.flatMap(\.files) : []
      // An entry for each partial, and each file.
      let keys = record.partialKeys
      for index in 0..<max(keys.count, files.count) {
        if state.pages.last?.isFull ?? true { state.pages.append(RemovedPage()) }
        let file = index < files.count ? files[index] : nil
        state.pages[state.pages.count - 1].append(index < keys.count ? keys[index] : keys[0], file)
      }
      state.count += 1
      guard let hub else { return }
      let isWatched =
        hub.isFollowed(record.id) || (state.watched.count < LedgerBulkResult.mostIDs && hub.isWatched(record.id))
      if isWatched { state.watched.append(record.request) }
    }
  }

  /// Adds the files that another one has noted.
  func add(_ summary: Summary) { state.withLock { $0.pages += summary.pages } }

  /// Removes and returns everything.
  func taken() -> Summary {
    state.withLock { state in
      defer { state = Summary() }
      return state
    }
  }
}

/// The keys and artifacts of up to 1,000 removed records, packed.
///
/// A record costs 16 bytes and the text of its id. An artifact costs 48 bytes and the text of its path and name. With
/// the unused capacity of the arrays, a million records with ids of 36 bytes took 60 MiB, and a million with artifacts
/// whose path and name have 60 bytes took 170 MiB (measured on Linux).
struct RemovedPage: Sendable {
  static let capacity = 1000

  private struct Key: Sendable {
    var generation: Int64
    /// Where the text of the id begins, and its length.
    var start: Int32
    var length: Int32
    var isSecond: Bool
  }
  /// An artifact to delete. The text of its path and name follows that of its id.
  private struct File: Sendable {
    var size: Int64?
    var modifiedAt: Date?
    /// The index of its key.
    var key: Int32
    /// The length of the path; -1 if there is none.
    var path: Int32
    var name: Int32
    var kind: Artifact.Kind
  }

  private var text: [UInt8] = []
  private var keyList: [Key] = []
  /// Most removed records have no artifact to delete.
  private var files: [File] = []

  var isFull: Bool { keyList.count >= Self.capacity }
  var fileCount: Int { files.count }

  mutating func dropFiles() { files = [] }

  mutating func append(_ key: PartialKey, _ artifact: StoredArtifact?) {
    let start = Int32(text.count)
    let length = append(key.id.rawValue)
    if let artifact {
      files.append(
        File(
          size: artifact.size, modifiedAt: artifact.modifiedAt, key: Int32(keyList.count),
          path: artifact.path.map { append($0) } ?? -1, name: append(artifact.name), kind: artifact.kind))
    }
    keyList.append(Key(generation: key.generation, start: start, length: length, isSecond: key.isSecond))
  }

  /// Returns the length of the text.
  private mutating func append(_ string: String) -> Int32 {
    let start = text.count
    text.append(contentsOf: string.utf8)
    return Int32(text.count - start)
  }

  var keys: [PartialKey] {
    keyList.map {
      PartialKey(id: DownloadID(string($0.start, $0.length)), generation: $0.generation, isSecond: $0.isSecond)
    }
  }

  /// The artifacts, without their media types, and the ids of their downloads.
  var artifacts: [(id: DownloadID, artifact: StoredArtifact)] {
    files.map { file in
      let key = keyList[Int(file.key)]
      let path = key.start + key.length
      let artifact = StoredArtifact(
        kind: file.kind, path: file.path < 0 ? nil : string(path, file.path),
        name: string(path + max(0, file.path), file.name), size: file.size, mediaType: nil,
        modifiedAt: file.modifiedAt)
      return (DownloadID(string(key.start, key.length)), artifact)
    }
  }

  private func string(_ start: Int32, _ length: Int32) -> String {
    String(decoding: text[Int(start)..<Int(start + length)], as: UTF8.self)
  }
}
