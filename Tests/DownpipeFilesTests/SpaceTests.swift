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

@Suite(.endsHangs)
struct SpaceTests {
  @Test func aMissingRootHasTheFreeSpaceOfTheFolderAboveIt() async throws {
    let folder = try TemporaryFolder()
    let calls = Calls()
    let store = FileStore(folder.path("a/b/c"), system: calls.system)
    #expect(try await store.availableBytes() ?? 0 > 0)
    #expect(calls.made == [.space, .space, .space, .space])
    #expect(try folder.contents().isEmpty)
  }

  @Test(.enabled(if: SmallMount.isPossible, "needs the right to mount"))
  func writtenBytesReduceTheFreeSpace() async throws {
    let folder = try TemporaryFolder()
    let mount = try SmallMount(folder.path("small"))
    defer { mount.unmount() }
    let store = FileStore(mount.path)
    let before = try #require(try await store.availableBytes())
    #expect(before > 900_000 && before <= 1 << 20)
    _ = try await store.staged([UInt8](repeating: 1, count: 400_000))
    let after = try #require(try await store.availableBytes())
    #expect(before - after >= 400_000 && after > 400_000)
  }

  @Test(arguments: [(EACCES, DownloadError.Code.permission), (EIO, .storage), (ENOTDIR, .permission)])
  func failuresHaveTheirCode(_ number: CInt, _ code: DownloadError.Code) async throws {
    await #expect {
      try await FileStore("/tmp", system: Calls.failing([.space], with: number)).availableBytes()
    } throws: {
      ($0 as? DownloadError)?.code == code
    }
  }

  @Test func theSearchForAFolderEndsAtTheTop() async throws {
    await #expect(throws: DownloadError.self) {
      try await FileStore("/tmp/a", system: Calls.failing([.space], with: ENOENT)).availableBytes()
    }
  }
}
