import DownpipeCore
import DownpipePOSIX
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeFiles

/// A download that is fetched again replaces its own artifact, under every conflict policy.
@Suite(.endsHangs)
struct ReplacingOwnFileTests {
  private func publish(
    _ bytes: [UInt8], replacing earlier: Artifact?, name: String = "film", isHeld: Bool, in store: FileStore
  ) async throws -> Artifact {
    let destination = DownloadRequest.Destination(name: name)
    let context = ProcessingContext(
      request: try DownloadRequest("https://example.org/film", id: "id", destination: destination), workspace: nil,
      replaces: earlier)
    guard isHeld else {
      return try await store.publish(try await store.staged(bytes), of: nil, at: destination, in: context)
    }
    let partial = try await store.openPartial(key(), isNew: true)
    try partial.put(bytes, at: 0)
    try partial.finish()
    let artifact = try partial.artifact(name: name, mediaType: nil)
    let published = try await store.publish(artifact, of: partial, at: destination, in: context)
    try partial.close()
    return published
  }

  @Test(arguments: ConflictPolicy.allCases, [true, false])
  func itsOwnFileIsNoConflict(_ policy: ConflictPolicy, isHeld: Bool) async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path, onConflict: policy)
    let old = try await publish([1], replacing: nil, isHeld: isHeld, in: store)
    let new = try await publish([2, 3], replacing: old, isHeld: isHeld, in: store)
    #expect(new.path == old.path && new.size == .known(2))
    #expect(try folder.tree() == ["film": [2, 3]])
  }

  @Test(arguments: [true, false]) func aNumberedNameIsKept(isHeld: Bool) async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path, onConflict: .keepBoth)
    try folder.write([9], to: "film")
    let old = try await publish([1], replacing: nil, isHeld: isHeld, in: store)
    #expect(old.name == "film (1)")
    let new = try await publish([2], replacing: old, isHeld: isHeld, in: store)
    #expect(new.name == "film (1)")
    #expect(try folder.tree() == ["film": [9], "film (1)": [2]])
  }

  @Test(arguments: [true, false]) func aFileThatWasChangedSinceIsNotReplaced(isHeld: Bool) async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path, onConflict: .keepBoth)
    let old = try await publish([1], replacing: nil, isHeld: isHeld, in: store)
    try folder.write([7, 7], to: "film")
    let new = try await publish([2], replacing: old, isHeld: isHeld, in: store)
    #expect(new.name == "film (1)")
    #expect(try folder.tree() == ["film": [7, 7], "film (1)": [2]])
  }

  @Test("What is in a folder may be the user's by now: it stays")
  func anEarlierFolderStays() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path, onConflict: .keepBoth)
    var old: Artifact?
    for byte: UInt8 in [1, 2] {
      let workspace = try #require(try await store.workspace(key()))
      try FileManager.default.createDirectory(atPath: workspace + "/out", withIntermediateDirectories: true)
      try Data([byte]).write(to: URL(filePath: workspace + "/out/a\(byte)"))
      let context = ProcessingContext(
        request: try DownloadRequest("https://example.org/film", id: "id"), workspace: workspace, replaces: old)
      old = try await store.publish(
        Artifact(kind: .directory, location: .path(workspace + "/out"), name: "album"), of: nil,
        at: DownloadRequest.Destination(), in: context)
    }
    #expect(try folder.tree() == ["album/a1": [1], "album (1)/a2": [2]])
  }

  @Test("A file that was there before the download is not its own", arguments: [true, false])
  func aReusedFileStays(isHeld: Bool) async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path, onConflict: .reuse)
    try folder.write([1], to: "film")
    let old = try await publish([1], replacing: nil, isHeld: isHeld, in: store)
    #expect(old.isReused && old.path == folder.path("film"))
    let new = try await publish([2], replacing: old, isHeld: isHeld, in: store)
    #expect(!new.isReused)
    try await store.remove(old)
    #expect(try folder.tree() == ["film": [1], "film (1)": [2]])
    let request = try DownloadRequest("https://example.org/film", id: "id")
    #expect(try await store.existing(for: request)?.isReused == true)
  }

  @Test func moveIntoReplacesItsOwnFile() async throws {
    let (folder, target) = (try TemporaryFolder(), try TemporaryFolder())
    let store = FileStore(folder.path)
    let step = MoveInto(target.path)
    var old: Artifact?
    for byte: UInt8 in [1, 2] {
      let context = ProcessingContext(
        request: try DownloadRequest("https://example.org/film", id: "id"), workspace: nil, replaces: old)
      old = try await step.process(try await store.staged([byte], name: "film"), in: context)
    }
    #expect(try target.tree() == ["film": [2]])
  }
}
