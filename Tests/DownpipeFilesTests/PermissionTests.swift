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

/// Read-only file systems and folders, real ones where this process has the rights to create them.
@Suite(.endsHangs)
struct PermissionTests {
  private func isRefused(_ words: String...) -> (any Error) -> Bool {
    { error in
      guard let error = error as? DownloadError else { return false }
      return error.code == .permission && words.allSatisfy(error.message.contains)
    }
  }

  private func everythingIsRefused(_ store: FileStore, _ staged: Artifact, _ advice: String) async throws {
    await #expect { _ = try await store.openPartial(key(), isNew: false) } throws: { isRefused(advice)($0) }
    await #expect { _ = try await store.openPartial(key("new"), isNew: false) } throws: { isRefused(advice)($0) }
    await #expect { try await store.removePartial(key()) } throws: { isRefused(advice)($0) }
    await #expect { _ = try await store.workspace(key()) } throws: { isRefused(advice)($0) }
    await #expect {
      try await store.publish(staged, of: nil, at: .init(name: "x"), in: try context())
    } throws: {
      isRefused(advice)($0)
    }
    await #expect {
      try await store.publish(staged, of: nil, at: .init(directory: "a", name: "x"), in: try context())
    } throws: {
      isRefused(advice)($0)
    }
    // Reading is allowed.
    #expect(try await store.partials() == [StoredPartial(key: key(), size: 3, isInUse: false)])
    #expect(try await store.availableBytes() ?? 0 > 0)
    #expect(await store.contains(staged))
  }

  @Test(.enabled(if: SmallMount.isPossible, "needs the right to mount"))
  func readOnlyFileSystems() async throws {
    let folder = try TemporaryFolder()
    let mount = try SmallMount(folder.path("small"))
    defer { mount.unmount() }
    let store = FileStore(mount.path)
    let staged = try await store.staged([1, 2, 3])
    let open = try await store.openPartial(key("open"), isNew: false)
    try open.close()
    try await store.removePartial(key("open"))
    // With a claim of a process that has ended.
    var gone = ProcessOwner.new()
    gone.end()
    gone.start -= 1
    try FileManager.default.createSymbolicLink(
      atPath: mount.path + "/.downpipe/partials/id.1.part.owner", withDestinationPath: gone.text)
    try mount.makeReadOnly()
    try await everythingIsRefused(store, staged, "mounted read-only")
  }

  @Test(.disabled(if: geteuid() == 0, "the administrator may do everything"))
  func foldersOfOtherUsers() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path("root"))
    let staged = try await store.staged([1, 2, 3])
    let closed = [folder.path("root"), folder.path("root/.downpipe"), folder.path("root/.downpipe/partials")]
    for path in closed { chmod(path, 0o500) }
    defer { for path in closed { chmod(path, 0o700) } }
    try await everythingIsRefused(store, staged, "permissions")
  }

  @Test(arguments: [EACCES, EROFS])
  func missingPermissionIsNotMistakenForMissingLinks(_ number: CInt) async throws {
    let folder = try TemporaryFolder()
    let calls = Calls { _, call, _ in call == .makeLink ? .fail(number) : .proceed }
    await #expect {
      _ = try await FileStore(folder.path, system: calls.system).openPartial(key(), isNew: false)
    } throws: {
      isRefused(folder.path)($0)
    }
    #expect(calls.made == [.makeLink])
  }
}
