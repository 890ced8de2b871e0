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

/// Claims of owners that cannot be proved alive or gone: they end with their lease.
@Suite(.endsHangs)
struct ClaimLeaseTests: ClaimTests {
  /// Issue 8, defect 3: the claim is not taken over while it is renewed, and it does not last for ever.
  @Test(arguments: unprovable.indices, [false, true])
  func anUnprovableOwnerLosesItsClaimAfterTheLease(_ number: Int, _ asFile: Bool) async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path)
    _ = try await store.staged([1, 2, 3])
    var owner = goneOwner()
    Self.unprovable[number](&owner)
    try leave(owner.text, in: folder, asFile: asFile)
    for age in [nil, 0, PartialClaim.lease - 5, -(PartialClaim.lease - 5)] {
      if let age { try self.age(folder, by: age) }
      await #expect {
        _ = try await store.openPartial(key(), isNew: false)
      } throws: {
        isInUse("on \(owner.host)", "\(PartialClaim.lease) seconds")($0)
      }
      await #expect { try await store.removePartial(key()) } throws: { isInUse()($0) }
      #expect(try await store.partials() == [StoredPartial(key: key(), size: 3, isInUse: true)])
    }
    #expect(try text(folder) == owner.text)
    // The file that the earlier owner has open is not the file of its successor.
    let old = try FileHandle(forUpdating: URL(filePath: folder.path(".downpipe/partials/id.1.part")))
    try age(folder)
    #expect(try await store.partials() == [StoredPartial(key: key(), size: 3, isInUse: false)])
    let partial = try await store.openPartial(key(), isNew: false)
    try old.write(contentsOf: [9, 9])
    try old.close()
    #expect(try partial.read(at: 0, count: 10) == [1, 2, 3])
    try partial.close()
    #expect(try folder.tree() == [".downpipe/partials/id.1.part": [1, 2, 3]])
  }

  /// The clock of the file system was set back.
  @Test func aLeaseFromTheFutureHasExpired() async throws {
    let folder = try TemporaryFolder()
    var owner = goneOwner()
    owner.boot = "another"
    try leave(owner.text, in: folder)
    try age(folder, by: -3600)
    try await FileStore(folder.path).openPartial(key(), isNew: false).close()
    #expect(try claims(folder).isEmpty)
  }

  @Test func heldClaimsAreRenewed() async throws {
    let folder = try TemporaryFolder()
    let partial = try await FileStore(folder.path).openPartial(key(), isNew: false)
    #expect(ClaimRenewal.isRunning)
    try age(folder)
    ClaimRenewal.renewAll()
    let age = try FileSystem.system.status(Entry(folder.path(Self.claimName))).modifiedAt.timeIntervalSinceNow
    #expect(abs(age) < 30)
    // The claim of another owner is not renewed.
    var other = goneOwner()
    other.boot = "another"
    try FileManager.default.removeItem(atPath: folder.path(Self.claimName))
    try leave(other.text, in: folder)
    try self.age(folder)
    ClaimRenewal.renewAll()
    let later = try FileSystem.system.status(Entry(folder.path(Self.claimName))).modifiedAt.timeIntervalSinceNow
    #expect(later < -50)
    try partial.close()
    #expect(try text(folder) == other.text)
  }

  /// A process stopped for longer than its lease, and another machine took its claim over.
  @Test func anOwnerThatReturnsDetectsTheTakeover() async throws {
    let folder = try TemporaryFolder()
    let (store, partial) = (FileStore(folder.path), try await FileStore(folder.path).openPartial(key(), isNew: false))
    try partial.put([1, 2, 3], at: 0)
    var successor = goneOwner()
    successor.boot = "another"
    try FileManager.default.removeItem(atPath: folder.path(Self.claimName))
    try leave(successor.text, in: folder)
    #expect { try partial.persist() } throws: { isInUse("taken over")($0) }
    await #expect { try await partial.synchronize() } throws: { isInUse("taken over")($0) }
    try partial.finish()
    let artifact = try partial.artifact(name: "x", mediaType: nil)
    await #expect {
      _ = try await store.publish(artifact, of: partial, at: .init(), in: try context())
    } throws: { isInUse("taken over")($0) }
    try partial.close()
    #expect(try text(folder) == successor.text)
    #expect(!FileManager.default.fileExists(atPath: folder.path("x")))
  }

  /// A new partial does not need a copy of the earlier file.
  @Test func aNewPartialReplacesTheFileOfAnEarlierOwner() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path)
    _ = try await store.staged([1, 2, 3])
    var owner = goneOwner()
    owner.boot = "another"
    try leave(owner.text, in: folder)
    let partial = try await store.openPartial(key(), isNew: true)
    try partial.put([7], at: 0)
    #expect { try partial.persist() } throws: { isInUse("on \(owner.host)")($0) }
    #expect(try partial.read(at: 0, count: 9) == [7])
    let old = try FileHandle(forUpdating: URL(filePath: folder.path(".downpipe/partials/id.1.part")))
    try age(folder)
    try partial.persist()
    try old.write(contentsOf: [9, 9])
    try old.close()
    try partial.close()
    #expect(try folder.tree() == [".downpipe/partials/id.1.part": [7]])
  }

  /// A later version may have written the text.
  @Test(arguments: [false, true], ["", "host", "a/b/c/d/e/f", "v2 host/1/2/3/4/5/6/7"])
  func aClaimWithUnknownTextIsHeldForTheLease(_ asFile: Bool, _ text: String) async throws {
    if !asFile && text.isEmpty { return }
    let folder = try TemporaryFolder()
    try leave(text, in: folder, asFile: asFile)
    await #expect {
      _ = try await FileStore(folder.path).openPartial(key(), isNew: false)
    } throws: {
      isInUse("an unknown owner", folder.path(Self.claimName))($0)
    }
    #expect(try claims(folder).count == 1)
    try age(folder)
    try await FileStore(folder.path).openPartial(key(), isNew: false).close()
    #expect(try claims(folder).isEmpty)
  }

  @Test func aFolderInThePlaceOfTheClaimStays() async throws {
    let folder = try TemporaryFolder()
    try folder.makeFolder(Self.claimName)
    await #expect { _ = try await FileStore(folder.path).openPartial(key(), isNew: false) } throws: {
      isInUse("unknown")($0)
    }
    #expect(FileManager.default.fileExists(atPath: folder.path(Self.claimName)))
  }

  /// The process that creates the file is still writing it, or has ended.
  @Test(arguments: [[], [0, 0, 0, 10], Array("host/boot/s".utf8)] as [[UInt8]])
  func anIncompleteClaimFileIsHeldForTheLease(_ bytes: [UInt8]) async throws {
    for system in Self.systems {
      let folder = try TemporaryFolder()
      let store = FileStore(folder.path, system: system)
      _ = try folder.write(bytes, to: Self.claimName)
      await #expect { _ = try await store.openPartial(key(), isNew: false) } throws: { isInUse("unknown")($0) }
      #expect(try claims(folder) == ["id.1.part.owner"])
      #expect(try folder.read(Self.claimName) == bytes)
      try age(folder)
      let partial = try await store.openPartial(key(), isNew: false)
      await #expect { _ = try await store.openPartial(key(), isNew: false) } throws: { isInUse("this process")($0) }
      try partial.close()
      #expect(try claims(folder).isEmpty)
    }
  }
}
