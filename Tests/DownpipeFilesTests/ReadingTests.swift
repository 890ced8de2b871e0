import DownpipeCore
import DownpipeFiles
import DownpipePOSIX
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// Reading the first bytes of an artifact, and removing its folder.
@Suite(.endsHangs)
struct ReadingTests {
  @Test func theFirstBytesOfFilesAndOfMemory() throws {
    let folder = try TemporaryFolder()
    let path = try folder.write([1, 2, 3, 4], to: "file")
    for artifact in [
      Artifact(location: .path(path), name: "file"), Artifact(location: .memory([1, 2, 3, 4]), name: "file"),
    ] {
      #expect(try artifact.read(first: 2) == [1, 2])
      #expect(try artifact.read(first: .max) == [1, 2, 3, 4])
      #expect(try artifact.read(first: 0) == [] && artifact.read(first: -1) == [])
    }
    for missing in [folder.path, folder.path("nothing")] {
      #expect { try Artifact(location: .path(missing), name: "x").read(first: 1) } throws: {
        ($0 as? DownloadError)?.code == .storage
      }
    }
  }

  @Test func removingTheLastFileRemovesItsFolders() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path)
    let first = try await store.publish([1], directory: "show/season", name: "a")
    let second = try await store.publish([2], id: "2", directory: "show/season", name: "b")
    let other = try await store.publish([3], id: "3", directory: "show", name: "c")
    try await store.remove(first)
    #expect(try folder.tree() == ["show/season/b": [2], "show/c": [3]])
    try await store.remove(second)
    #expect(try folder.tree() == ["show/c": [3]])
    try await store.remove(other)
    #expect(try folder.tree().isEmpty)
    try await store.remove(other)
    #expect(FileManager.default.fileExists(atPath: folder.path), "the root stays")
  }

  @Test func publishingAndRemovingAtTheSameTime() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<8 {
        group.addTask {
          for _ in 0..<50 {
            let artifact = try await store.publishHeld(
              [1], id: DownloadID("\(number)"), directory: "a/b", name: "\(number)")
            try await store.remove(artifact)
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(try folder.tree().isEmpty)
  }
}
