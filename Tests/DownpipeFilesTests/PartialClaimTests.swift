import DownpipeCore
import DownpipePOSIX
import DownpipeTesting
import Foundation
import HangLimit
import Synchronization
import Testing

@testable import DownpipeFiles

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Holding, releasing and removing claimed partials.
@Suite(.endsHangs)
struct PartialClaimTests: ClaimTests {
  @Test(arguments: 0..<2)
  func aPartialHasOneWriterAtATime(_ system: Int) async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path, system: Self.systems[system])
    let first = try await store.openPartial(key(), isNew: false)
    for other in [store, FileStore(folder.path)] {
      await #expect {
        _ = try await other.openPartial(key(), isNew: false)
      } throws: {
        isInUse("another download of this process", "\(getpid())", "wait")($0)
      }
    }
    try first.put([1], at: 0)
    _ = try await store.openPartial(key("id", 2), isNew: false)
    try first.close()
    try first.close()
    let second = try await store.openPartial(key(), isNew: false)
    // Closing the first one again must not release the claim of the second one.
    try first.close()
    await #expect { _ = try await store.openPartial(key(), isNew: false) } throws: { isInUse()($0) }
    #expect(try second.read(at: 0, count: 2) == [1])
    try second.close()
    #expect(try claims(folder).isEmpty)
  }

  @Test func theLastReferenceReleasesTheClaim() async throws {
    let folder = try TemporaryFolder()
    for _ in 0..<3 { _ = try await FileStore(folder.path).openPartial(key(), isNew: false) }
    #expect(try claims(folder).isEmpty)
  }

  /// If another owner could take the claim before the entry is removed, its entry would be removed.
  @Test func aClaimIsHeldUntilItsEntryIsRemoved() async throws {
    let folder = try TemporaryFolder()
    let partial = folder.path(".downpipe/partials/id.1.part")
    let attempts = Watched(0)
    let calls = Calls { _, call, path in
      if call == .unlink, path == partial + PartialClaim.suffix {
        attempts.update { $0 += 1 }
        #expect(throws: DownloadError.self) {
          try PartialClaim.take(partial, keepingBytes: true, durability: .process, system: .system).release()
        }
      }
      return .proceed
    }
    try await FileStore(folder.path, system: calls.system).openPartial(key(), isNew: false).close()
    #expect(attempts.value == 1)
    #expect(try claims(folder).isEmpty)
  }

  @Test func aPartialThatCannotBeOpenedIsNotHeld() async throws {
    let folder = try TemporaryFolder()
    await #expect(throws: DownloadError.self) {
      _ = try await FileStore(folder.path, system: Calls.failing([.open], with: EMFILE)).openPartial(
        key(), isNew: false)
    }
    #expect(try claims(folder).isEmpty)
    // A claim whose entry cannot be removed ends with its owner.
    let store = FileStore(folder.path, system: Calls.failing([.unlink], with: EIO))
    try await store.openPartial(key(), isNew: false).close()
    #expect(try !claims(folder).isEmpty)
    try await FileStore(folder.path).openPartial(key(), isNew: false).close()
    #expect(try claims(folder).isEmpty)
  }

  @Test func claimsAreFilesWithoutSymbolicLinks() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path, system: Self.systems[1])
    let partial = try await store.openPartial(key(), isNew: false)
    let text = String(decoding: try folder.read(Self.claimName), as: UTF8.self)
    #expect(text.hasSuffix("\n") && text.contains("/\(getpid())/"))
    try partial.close()
    // An incomplete claim is removed.
    let failing = Calls { _, call, _ in call == .makeLink ? .fail(EPERM) : call == .write ? .fail(ENOSPC) : .proceed }
    await #expect {
      _ = try await FileStore(folder.path, system: failing.system).openPartial(key(), isNew: false)
    } throws: {
      ($0 as? DownloadError)?.code == .noSpace
    }
    #expect(try claims(folder).isEmpty)
  }

  @Test func aRepeatedCallIsNotAConflict() async throws {
    let folder = try TemporaryFolder()
    // A network file system repeats the call, which finds the result of the first one.
    for failing in [FileSystem.Call.makeLink, .unlink] {
      if failing == .unlink { try leave(goneOwner().text, in: folder) }
      let isFirst = Atomic(true)
      let calls = Calls { _, call, _ in
        guard call == failing, isFirst.exchange(false, ordering: .relaxed) else { return .proceed }
        return .makeAndFail(failing == .unlink ? ENOENT : EEXIST)
      }
      let partial = try await FileStore(folder.path, system: calls.system).openPartial(key(), isNew: false)
      #expect(calls.made.contains(failing))
      await #expect { _ = try await FileStore(folder.path).openPartial(key(), isNew: false) } throws: {
        isInUse("this process")($0)
      }
      try partial.close()
      #expect(try claims(folder).isEmpty)
    }
  }

  /// Issue 8, defect 18: not by another process, and not by another store of this process.
  @Test(arguments: [false, true])
  func aPartialThatAnotherStoreHoldsIsNotRemoved(_ hasPartial: Bool) async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path)
    let partial = try await store.openPartial(key(), isNew: false)
    if hasPartial { try partial.put([1], at: 0) }
    let workspace = try #require(try await store.workspace(key()))
    await #expect { try await FileStore(folder.path).removePartial(key()) } throws: { isInUse("this process")($0) }
    #expect(FileManager.default.fileExists(atPath: workspace))
    #expect(try partial.size() == (hasPartial ? 1 : 0))
    try partial.close()
    try leave(goneOwner().text, in: folder)
    try await store.removePartial(key())
    #expect(try folder.tree().isEmpty)
    #expect(!FileManager.default.fileExists(atPath: workspace))
  }

  /// The store that has the claim removes the partial without taking it again.
  @Test func theOwnerCanRemoveItsPartial() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path)
    for isNew in [false, true] {
      let partial = try await store.openPartial(key(), isNew: isNew)
      try partial.put([1], at: 0)
      try partial.persist()
      let workspace = try #require(try await store.workspace(key()))
      try await store.removePartial(key())
      #expect(!FileManager.default.fileExists(atPath: workspace))
      await #expect { _ = try await store.openPartial(key(), isNew: false) } throws: { isInUse("this process")($0) }
      try partial.close()
      #expect(try folder.tree().isEmpty)
    }
    // After a takeover the partial belongs to the other owner.
    let partial = try await store.openPartial(key(), isNew: false)
    try partial.put([1], at: 0)
    try FileManager.default.removeItem(atPath: folder.path(Self.claimName))
    try leave("another owner", in: folder)
    await #expect { try await store.removePartial(key()) } throws: { isInUse("taken over")($0) }
    try partial.close()
    #expect(try folder.read(".downpipe/partials/id.1.part") == [1])
  }

  @Test func claimsWithoutPartialsAreRemoved() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path)
    let long = DownloadID(String(repeating: "x", count: 255))
    let prefix = PathText.split(try PartialName.path(of: key(long))).folder
    try folder.makeFolder(".downpipe/partials/" + prefix)
    let gone = goneOwner().text
    var other = goneOwner()
    other.host = "elsewhere"
    for name in ["id.1.part.owner", "a.2.part.owner", try PartialName.path(of: key(long)) + ".owner"] {
      try FileManager.default.createSymbolicLink(
        atPath: folder.path(".downpipe/partials/" + name), withDestinationPath: gone)
    }
    _ = try folder.write([1], to: ".downpipe/partials/b.1.part.copy")
    other.boot = "another"
    try FileManager.default.createSymbolicLink(
      atPath: folder.path(".downpipe/partials/c.1.part.owner"), withDestinationPath: other.text)
    let strangers = [".owner", "notes.owner", "x.part.owner", "d.1.part.owner.txt", "x.copy"]
    for name in strangers { _ = try folder.write([1], to: ".downpipe/partials/" + name) }
    let open = try await store.openPartial(key("open"), isNew: false)
    try open.put([1], at: 0)
    #expect(try await store.partials() == [StoredPartial(key: key("open"), size: 1, isInUse: true)])
    try open.close()
    let left = try folder.tree().keys.map { $0.dropFirst(".downpipe/partials/".count) }
    #expect(Set(left) == Set((strangers + ["open.1.part", "c.1.part.owner/"]).map { $0[...] }))
  }
}
