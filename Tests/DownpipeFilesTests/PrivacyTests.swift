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

/// Issue 8, defect 11: unfinished downloads are private, and published ones have the permissions of the umask.
@Suite(.endsHangs)
struct PrivacyTests {
  private func mode(_ path: String) throws -> mode_t { try FileSystem.system.status(Entry(path)).permissions }

  /// The permissions of a new file in this process.
  private func ordinary(_ folder: TemporaryFolder) throws -> mode_t {
    let file = try FileSystem.system.open(Entry(folder.path("ordinary")), O_CREAT | O_WRONLY)
    defer {
      try? FileSystem.system.close(file)
      unlink(folder.path("ordinary"))
    }
    return try FileSystem.system.status(file).permissions
  }

  @Test(arguments: Ground.systems.indices)
  func unfinishedDownloadsArePrivate(_ system: Int) async throws {
    let folder = try TemporaryFolder()
    let noLinks = Calls { _, call, path in
      call == .makeLink ? .fail(EPERM) : Ground.systems[system].intercept?(call, path) ?? .proceed
    }
    for system in [Ground.systems[system], noLinks.system] {
      let store = FileStore(folder.path("root"), system: system)
      let workspace = try #require(try await store.workspace(key()))
      for isNew in [true, false] {
        let partial = try await store.openPartial(key(), isNew: isNew)
        try partial.put([1], at: 0)
        try await partial.synchronize()
        #expect(try mode(folder.path("root/.downpipe/partials/id.1.part")) == 0o600)
        let claim = try FileSystem.system.status(Entry(folder.path("root/.downpipe/partials/id.1.part.owner")))
        #expect(claim.kind == .link || claim.permissions == 0o600)
        try partial.close()
      }
      #expect(try mode(workspace) == 0o700)
      for name in ["", "/partials", "/work"] { #expect(try mode(folder.path("root/.downpipe\(name)")) == 0o700) }
      #expect(try mode(folder.path("root")) != 0o700)
    }
  }

  @Test func foldersOfEarlierVersionsBecomePrivate() async throws {
    let folder = try TemporaryFolder()
    try folder.makeFolder(".downpipe/partials")
    chmod(folder.path(".downpipe"), 0o777)
    _ = try await FileStore(folder.path).publishHeld([1], name: "x")
    #expect(try mode(folder.path(".downpipe")) == 0o700)
  }

  @Test(arguments: Ground.systems.indices, [false, true])
  func publishedFilesHaveThePermissionsOfTheUmask(_ system: Int, _ isPersisted: Bool) async throws {
    let folder = try TemporaryFolder()
    let ordinary = try ordinary(folder)
    #expect(ordinary != 0o600)
    let store = FileStore(folder.path, system: Ground.systems[system])
    for policy in [ConflictPolicy.keepBoth, .replace] {
      let store = FileStore(folder.path, onConflict: policy, system: Ground.systems[system])
      _ = try await store.publishHeld([1], name: "x") { if isPersisted { try $0.persist() } }
      #expect(try mode(folder.path("x")) == ordinary)
    }
    // A copy on another file system, and a copy of a partial that was replaced.
    let isFirst = Atomic(true)
    let isFar = FileStore(
      folder.path,
      system: Calls { _, call, path in
        call == .link && path == "far" && isFirst.exchange(false, ordering: .relaxed)
          ? .fail(EXDEV) : Ground.systems[system].intercept?(call, path) ?? .proceed
      }.system)
    _ = try await isFar.publishHeld([1], name: "far") { if isPersisted { try $0.persist() } }
    #expect(try mode(folder.path("far")) == ordinary)
    _ = try await store.publishHeld([1], name: "replaced") { partial in
      try partial.persist()
      unlink(folder.path(".downpipe/partials/id.1.part"))
    }
    #expect(try mode(folder.path("replaced")) == ordinary)
  }

  /// A step can move the file of the partial to its destination.
  @Test(arguments: Ground.systems.indices)
  func filesMovedByStepsHaveThePermissionsOfTheUmask(_ system: Int) async throws {
    let folder = try TemporaryFolder()
    let ordinary = try ordinary(folder)
    let store = FileStore(folder.path, system: Ground.systems[system])
    for isEarly in [false, true] {
      let partial = try await store.openPartial(key(), isNew: true)
      try partial.put([1], at: 0)
      if isEarly { try partial.persist() }
      try partial.finish()
      try partial.persist()
      let artifact = try partial.artifact(name: "x", mediaType: nil)
      let moved = try await MoveInto(folder.path("moved")).process(artifact, in: try context())
      try partial.close()
      #expect(try mode(moved.path ?? "") == ordinary)
    }
    // A file that a step created keeps its permissions.
    let workspace = try #require(try await store.workspace(key()))
    try Data([1]).write(to: URL(filePath: workspace + "/out"))
    chmod(workspace + "/out", 0o640)
    let artifact = Artifact(location: .path(workspace + "/out"), name: "out")
    _ = try await store.publish(artifact, of: nil, at: .init(), in: try context())
    #expect(try mode(folder.path("out")) == 0o640)
  }
}
