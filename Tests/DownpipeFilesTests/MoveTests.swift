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

/// Moving and renaming a published artifact.
@Suite(.endsHangs)
struct MoveTests {
  typealias Ground = PublishCrashTests.Ground

  struct Scenario: Sendable, CustomTestStringConvertible {
    var policy: ConflictPolicy
    var kind: Artifact.Kind
    var ground: Ground
    var durability: Durability
    var isTaken: Bool
    var testDescription: String { "\(policy) \(kind) \(ground) \(durability) \(isTaken ? "taken" : "free")" }
  }

  static let scenarios: [Scenario] = {
    var all: [Scenario] = []
    for policy in ConflictPolicy.allCases {
      for kind in [Artifact.Kind.file, .directory] {
        for ground in Ground.allCases where ground != .otherFileSystem || SmallMount.isPossible {
          // Trees take long, and most of their calls are tested with the first publication.
          if kind == .directory, ground == .otherFileSystem || policy == .fail { continue }
          for isTaken in policy == .fail ? [false] : [false, true] {
            all.append(Scenario(policy: policy, kind: kind, ground: ground, durability: .power, isTaken: isTaken))
          }
        }
      }
    }
    return all
  }()

  private let bytes = Array("moved".utf8)
  private let old = Array("old".utf8)

  @Test(arguments: scenarios)
  func movingSurvivesAnEndAtEachCall(_ scenario: Scenario) async throws {
    for last in 1... {
      let folder = try TemporaryFolder()
      let mount = scenario.ground == .otherFileSystem ? try SmallMount(folder.path("root/there")) : nil
      defer { mount?.unmount() }
      let root = folder.path("root")
      let first = try await publishFirst(scenario, folder)
      if scenario.isTaken {
        _ = try folder.write(old, to: scenario.kind == .file ? "root/there/x.bin" : "root/there/x.bin/old")
      }
      let notes = Notes()
      let isDead = Atomic(false)
      let calls = Calls { number, call, path in
        if number > last { isDead.store(true, ordering: .relaxed) }
        if number > last, call != .close { return .fail(EIO) }
        return scenario.ground.verdict(call, path)
      }
      let destination = DownloadRequest.Destination(directory: "there", name: "x.bin")
      let dying = FileStore(root, onConflict: scenario.policy, durability: scenario.durability, system: calls.system)
      let dyingContext = ProcessingContext(
        request: try DownloadRequest("http://a/b", id: "id", destination: destination), workspace: nil
      ) { note in
        if isDead.load(ordering: .relaxed) { throw SystemError(EIO) }
        notes.keep(note)
      }
      _ = try? await dying.publish(first, of: nil, at: destination, in: dyingContext)
      let again = FileStore(
        root, onConflict: scenario.policy, durability: scenario.durability,
        system: Calls { _, call, path in scenario.ground.verdict(call, path) }.system)
      for round in 0..<2 {
        let moved = try await again.publish(
          first, of: nil, at: destination, in: try context(destination: destination, prior: notes.last, notes: notes))
        try check(scenario, folder, moved, "dead after call \(last), round \(round)")
      }
      if !isDead.load(ordering: .relaxed) { return }
    }
  }

  private func publishFirst(_ scenario: Scenario, _ folder: TemporaryFolder) async throws -> Artifact {
    let store = FileStore(folder.path("root"))
    let destination = DownloadRequest.Destination(directory: "here/inner", name: "first.bin")
    if scenario.kind == .file {
      return try await store.publish(
        try await store.staged(bytes), of: nil, at: destination, in: try context(destination: destination))
    }
    let workspace = try #require(try await store.workspace(key()))
    try FileManager.default.createDirectory(atPath: workspace + "/out", withIntermediateDirectories: true)
    try Data(bytes).write(to: URL(filePath: workspace + "/out/new"))
    let staged = Artifact(kind: .directory, location: .path(workspace + "/out"), name: "out")
    let first = try await store.publish(
      staged, of: nil, at: destination, in: try context(destination: destination))
    try await store.removePartial(key())
    return first
  }

  private func check(_ scenario: Scenario, _ folder: TemporaryFolder, _ moved: Artifact, _ when: String) throws {
    let keepsOld = scenario.isTaken && scenario.policy != .replace
    let isFile = scenario.kind == .file
    let name = !keepsOld ? "x.bin" : isFile ? "x (1).bin" : "x.bin (1)"
    #expect(moved.name == name, "\(when)")
    #expect(moved.path == folder.path("root/there/" + name), "\(when)")
    var expected = ["root/there/" + name + (isFile ? "" : "/new"): bytes]
    if keepsOld { expected["root/there/x.bin" + (isFile ? "" : "/old")] = old }
    // The folders of the old name were removed.
    #expect(try folder.tree() == expected, "\(when)")
  }

  @Test func anEqualFileIsReused() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path, onConflict: .reuse)
    let first = try await store.publish(bytes, name: "a")
    let second = try await store.publish(bytes, id: "2", directory: "b", name: "a")
    var moved = try await store.publish(first, of: nil, at: .init(directory: "b", name: "a"), in: try context())
    #expect(moved.isReused)
    moved.isReused = false
    #expect(moved == second)
    #expect(try folder.tree() == ["b/a": bytes])
  }

  @Test func aNumberFromAConflictIsKept() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path)
    let first = try await store.publish([1], name: "x.gz")
    let second = try await store.publish([2], id: "2", name: "x.gz")
    #expect(second.name == "x (1).gz")
    let destination = DownloadRequest.Destination(name: "x.gz")
    #expect(try await store.publish(second, of: nil, at: destination, in: try context(id: "2")) == second)
    try await store.remove(first)
    let third = try await store.publish(second, of: nil, at: destination, in: try context(id: "2"))
    #expect(third.name == "x.gz")
    #expect(try folder.tree() == ["x.gz": [2]])
  }

  @Test(arguments: ["changed", "replaced", "removed"])
  func aChangedArtifactIsNotMoved(_ change: String) async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path)
    let first = try await store.publish(bytes, name: "a")
    try FileManager.default.removeItem(atPath: folder.path("a"))
    if change != "removed" { _ = try folder.write(change == "changed" ? bytes + [1] : bytes, to: "a") }
    let before = try folder.tree()
    await #expect {
      try await store.publish(first, of: nil, at: .init(name: "b"), in: try context())
    } throws: { ($0 as? DownloadError)?.code == .storage }
    #expect(try folder.tree() == before)
  }

  @Test func anotherFileWithTheOldNameIsNotRemovedAfterACrash() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path)
    let first = try await store.publish(bytes, name: "a")
    let notes = Notes()
    let moved = try await store.publish(first, of: nil, at: .init(name: "b"), in: try context(notes: notes))
    _ = try folder.write([7], to: "a")
    let again = try await store.publish(first, of: nil, at: .init(name: "b"), in: try context(prior: notes.last))
    #expect(again == moved)
    #expect(try folder.tree() == ["a": [7], "b": bytes])
  }

  @Test func aFolderIsNotMovedIntoItself() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path)
    _ = try folder.write(bytes, to: "album/a")
    let album = Artifact(kind: .directory, location: .path(folder.path("album")), name: "album")
    await #expect {
      try await store.publish(album, of: nil, at: .init(directory: "album/inner", name: "x"), in: try context())
    } throws: { ($0 as? DownloadError)?.code == .unsafePath }
    #expect(try folder.tree() == ["album/a": bytes])
  }

  @Test func anArtifactOutsideOfTheRootIsRenamedInItsFolder() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path("root"))
    let staged = try await store.staged(bytes)
    let film = try await MoveInto(folder.path("films")).process(staged, in: try context())
    try await store.removePartial(key())
    let moved = try await store.publish(film, of: nil, at: .init(directory: "b", name: "c"), in: try context())
    #expect(moved.path == folder.path("films/c"))
    #expect(try folder.tree("films") == ["films/c": bytes])
    #expect(try folder.tree("root") == ["root/": []])
  }
}
