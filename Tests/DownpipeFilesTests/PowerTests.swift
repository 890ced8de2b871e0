import DownpipeCore
import DownpipePOSIX
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeFiles

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// The order of flushes with `.power`: bytes before their name, the new name before the old one is removed, and the
/// name of a folder before its contents are used.
@Suite(.endsHangs)
struct PowerTests {
  /// The calls that change names, and those that flush.
  private static let relevant: Set<FileSystem.Call> = [
    .write, .flush, .flushFolder, .link, .rename, .renameToFree, .unlink, .makeFolder, .removeFolder,
  ]

  private func relevant(_ calls: Calls, after start: Int = 0) -> [FileSystem.Call] {
    calls.made[start...].filter(Self.relevant.contains)
  }

  private func store(_ folder: TemporaryFolder, _ calls: Calls, _ policy: ConflictPolicy = .keepBoth) -> FileStore {
    FileStore(folder.path, onConflict: policy, durability: .power, system: calls.system)
  }

  @Test func theStoreHasItsDurability() {
    #expect((FileStore("/a", durability: .power) as any Storage).durability == .power)
    #expect((FileStore("/a") as any Storage).durability == .process)
  }

  @Test func newFoldersThenBytesThenTheName() async throws {
    let folder = try TemporaryFolder()
    let calls = Calls()
    let partial = try await store(folder, calls).openPartial(key(), isNew: false)
    // Each folder is flushed before the next one is created in it. The first call detects that the folder is missing.
    #expect(relevant(calls) == [.makeFolder, .makeFolder, .flushFolder, .makeFolder, .flushFolder])
    let opened = calls.made.count
    try partial.put([1], at: 0)
    try await partial.synchronize()
    #expect(relevant(calls, after: opened) == [.write, .flush, .flushFolder])
    try partial.put([2], at: 1)
    try await partial.synchronize()
    #expect(relevant(calls, after: opened).dropFirst(3) == [.write, .flush])
    try partial.close()
  }

  @Test func aFailedFlushIsReported() async throws {
    let folder = try TemporaryFolder()
    for call in [FileSystem.Call.flush, .flushFolder] {
      // The folders exist.
      try await FileStore(folder.path).openPartial(key(), isNew: false).close()
      let partial = try await store(folder, Calls { _, made, _ in made == call ? .fail(EIO) : .proceed })
        .openPartial(key(), isNew: false)
      try partial.put([1], at: 0)
      for _ in 0..<2 {
        await #expect { try await partial.synchronize() } throws: { ($0 as? DownloadError)?.code == .storage }
      }
      try partial.close()
    }
  }

  @Test func anAdoptedFileHasItsNameFlushed() async throws {
    let folder = try TemporaryFolder()
    let calls = Calls()
    let partial = try await store(folder, calls).openPartial(key(), isNew: false)
    try await partial.synchronize()
    let before = calls.made.count
    #expect(try partial.adopt(try folder.write([1], to: "x")))
    try await partial.synchronize()
    #expect(relevant(calls, after: before) == [.rename, .flush, .flushFolder])
  }

  /// Publishes a staged file and returns the calls.
  private func publishing(
    _ policy: ConflictPolicy, taken: [UInt8]? = nil, directory: String? = nil, kind: Artifact.Kind = .file,
    _ verdict: @escaping @Sendable (FileSystem.Call, String) -> FileSystem.Verdict = { _, _ in .proceed }
  ) async throws -> [FileSystem.Call] {
    let folder = try TemporaryFolder()
    let plain = FileStore(folder.path)
    if let taken { _ = try folder.write(taken, to: "x") }
    let staged: Artifact
    if kind == .file {
      staged = try await plain.staged([1])
    } else {
      let workspace = try #require(try await plain.workspace(key()))
      _ = try folder.write([1], to: String(workspace.dropFirst(folder.path.count + 1)) + "/out/inner/file")
      staged = Artifact(kind: .directory, location: .path(workspace + "/out"), name: "x")
    }
    let calls = Calls { _, call, path in verdict(call, path) }
    let published = try await store(folder, calls, policy).publish(
      staged, of: nil, at: .init(directory: directory, name: "x"), in: try context())
    #expect(await plain.contains(published))
    #expect(await !plain.contains(staged))
    return relevant(calls)
  }

  @Test func theNewNameIsFlushedBeforeTheOldOneIsRemoved() async throws {
    #expect(try await publishing(.keepBoth) == [.flush, .link, .flushFolder, .unlink, .flushFolder])
    #expect(try await publishing(.fail) == [.flush, .link, .flushFolder, .unlink, .flushFolder])
  }

  @Test(.enabled(if: Ground.hasUnnamedFiles, "needs files without a name"), arguments: [false, true])
  func anOpenFileIsFlushedBeforeItIsLinked(_ isPersisted: Bool) async throws {
    let folder = try TemporaryFolder()
    let calls = Calls()
    let partial = try await store(folder, calls).openPartial(key(), isNew: true)
    try partial.put([1], at: 0)
    if isPersisted { try partial.persist() }
    try partial.finish()
    let written = calls.made.count
    let artifact = try partial.artifact(name: "x", mediaType: nil)
    _ = try await store(folder, calls).publish(artifact, of: partial, at: .init(), in: try context())
    #expect(
      relevant(calls, after: written) == [.flush, .link, .flushFolder] + (isPersisted ? [.unlink, .flushFolder] : []))
    try partial.close()
  }

  @Test func aReplacingFileIsRenamed() async throws {
    for taken in [nil, [9]] as [[UInt8]?] {
      #expect(try await publishing(.replace, taken: taken) == [.flush, .rename, .flushFolder, .flushFolder])
    }
  }

  @Test func withoutHardLinksAnEmptyFileIsReplaced() async throws {
    #expect(
      try await publishing(.keepBoth) { call, _ in call == .link ? .fail(EPERM) : .proceed }
        == [.flush, .link, .renameToFree, .flushFolder, .flushFolder])
  }

  @Test func newFoldersAreFlushedAboveThem() async throws {
    #expect(
      try await publishing(.keepBoth, directory: "a/b")
        == [.makeFolder, .flushFolder, .makeFolder, .flushFolder]
        + [.flush, .link, .flushFolder, .unlink, .flushFolder])
  }

  /// The process that created a folder may end before it is on the disk.
  @Test func foldersThatAnotherProcessCreatesAreFlushed() async throws {
    #expect(
      try await publishing(.keepBoth, directory: "a") { call, _ in
        call == .makeFolder ? .makeAndFail(EEXIST) : .proceed
      } == [.makeFolder, .flushFolder] + [.flush, .link, .flushFolder, .unlink, .flushFolder])
  }

  @Test func treesAreFlushedFromTheLeavesUp() async throws {
    // The file, its folder and the folder above; both folders of the move.
    #expect(
      try await publishing(.keepBoth, kind: .directory)
        == [.flush, .flushFolder, .flushFolder, .renameToFree, .flushFolder, .flushFolder])
    // Where an empty folder has to reserve the name.
    #expect(
      try await publishing(.keepBoth, kind: .directory) { call, _ in
        call == .renameToFree ? .fail(EINVAL) : .proceed
      } == [.flush, .flushFolder, .flushFolder, .renameToFree, .makeFolder, .rename, .flushFolder, .flushFolder])
  }

  /// Two file systems write to the disk in any order.
  @Test func copiesAreFlushedBeforeTheOriginalIsRemoved() async throws {
    let isCopied = Watched(false)
    let once: @Sendable (FileSystem.Call, String) -> FileSystem.Verdict = { call, _ in
      if call == .write { isCopied.update { $0 = true } }
      return !isCopied.value && (call == .link || call == .rename) ? .fail(EXDEV) : .proceed
    }
    #expect(
      try await publishing(.keepBoth, once)
        == [.flush, .link, .write, .flush, .link, .unlink, .flushFolder, .unlink, .flushFolder])
    isCopied.update { $0 = false }
    #expect(
      try await publishing(.replace, once)
        == [.flush, .rename, .write, .flush, .rename, .flushFolder, .unlink, .flushFolder])
  }

  @Test func aReusedFileIsFlushedBeforeTheNewOneIsRemoved() async throws {
    #expect(
      try await publishing(.reuse, taken: [1]) == [.flush, .flush, .flushFolder, .unlink, .flushFolder])
  }

  @Test func bytesInMemoryAreFlushed() async throws {
    let folder = try TemporaryFolder()
    let calls = Calls()
    _ = try await store(folder, calls).publish(
      Artifact(location: .memory([1]), name: "x"), of: nil, at: .init(), in: try context())
    #expect(relevant(calls) == [.write, .flush, .link, .unlink, .flushFolder])
  }

  @Test func theOrderHoldsAfterACrash() async throws {
    let folder = try TemporaryFolder()
    let notes = Notes()
    let staged = try await FileStore(folder.path).staged([1])
    let dying = store(folder, Calls { _, call, _ in call == .flushFolder || call == .unlink ? .fail(EIO) : .proceed })
    await #expect(throws: DownloadError.self) {
      try await dying.publish(staged, of: nil, at: .init(name: "x"), in: try context(notes: notes))
    }
    let calls = Calls()
    let note = try #require(notes.last)
    _ = try await store(folder, calls).publish(staged, of: nil, at: .init(name: "x"), in: try context(prior: note))
    #expect(relevant(calls).filter { $0 != .unlink }.prefix(1) == [.flushFolder])
    #expect(relevant(calls).suffix(2) == [.unlink, .flushFolder])
    #expect(try folder.tree() == ["x": [1]])
    // Without the note the file has both names.
    let second = try await FileStore(folder.path).staged([2])
    _ = try await store(
      folder, Calls { _, call, _ in call == .flushFolder || call == .unlink ? .fail(EIO) : .proceed }
    ).publishIgnoringErrors(second, as: "y")
    let again = Calls()
    _ = try await store(folder, again).publish(second, of: nil, at: .init(name: "y"), in: try context())
    #expect(relevant(again).prefix(2) == [.flush, .flushFolder])
    #expect(relevant(again).suffix(2) == [.unlink, .flushFolder])
    #expect(try folder.tree() == ["x": [1], "y": [2]])
  }
}

extension FileStore {
  fileprivate func publishIgnoringErrors(_ artifact: Artifact, as name: String) async throws -> Artifact? {
    try? await publish(artifact, of: nil, at: .init(name: name), in: try context())
  }
}
