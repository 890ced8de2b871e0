import DownpipeTesting
import Foundation
import HangLimit
import Testing

@_spi(Ledger) @testable import DownpipeCore

/// The companions of artifacts in records.
@Suite(.endsHangs)
struct ArtifactCompanionTests {
  private let storage = FakeStorage()
  private let published = StoredArtifact(
    kind: .file, path: "a/b.jpg", name: "b.jpg", size: 3, mediaType: nil, modifiedAt: Date(timeIntervalSince1970: 1),
    companions: [.init(suffix: ".t.png", size: 2, modifiedAt: Date(timeIntervalSince1970: 2))])

  @Test("Beside its artifact, a companion is recorded without its path")
  func beside() throws {
    let artifact = try storage.artifact(from: published)
    #expect(artifact.companions.map(\.path) == ["/fake-storage/a/b.jpg.t.png"])
    #expect(artifact.companionFiles.map(\.name) == ["b.jpg.t.png"])
    #expect(StoredArtifact(artifact, in: storage) == published)
  }

  @Test("In the workspace, a companion is recorded with its path")
  func staged() throws {
    let file = File(path: "/work/b.jpg", name: "b.jpg").withCompanion(at: "/fake-storage/x", suffix: "-2")
    let stored = StoredArtifact(file.artifact, in: storage)
    #expect(stored.companions == [.init(suffix: "-2", path: "x")])
    #expect(try storage.artifact(from: stored) == file.artifact)
  }

  @Test("A suffix that no step can have recorded is left out", arguments: ["", "x", "./../x", ".a/b", ".\n"])
  func unsafe(suffix: String) throws {
    var stored = published
    stored.companions[0].suffix = suffix
    #expect(try storage.artifact(from: stored).companions.isEmpty)
  }

  @Test("A record of an earlier version has no companions, and one without companions is written as before")
  func json() throws {
    let text = #"{"isReused":false,"kind":"file","name":"b","path":"a"}"#
    let old = try JSONDecoder().decode(StoredArtifact.self, from: Data(text.utf8))
    #expect(old == StoredArtifact(kind: .file, path: "a", name: "b", size: nil, mediaType: nil))
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    #expect(String(decoding: try encoder.encode(old), as: UTF8.self) == text)
    let copy = try JSONDecoder().decode(StoredArtifact.self, from: encoder.encode(published))
    #expect(copy == published)
  }

  @Test("A download that is removed leaves the files of its companions to be deleted, too")
  func removed() throws {
    var record = DownloadRecord(
      request: try DownloadRequest("https://example.org/b.jpg", id: "a"), generation: 1, arrival: 0, rank: Rank(),
      createdAt: Date(timeIntervalSince1970: 0))
    record.phase = .finished
    record.steps.artifact = published
    let left = LedgerDeletion(record, record.artifactsToDelete, at: nil)
    let copy = LedgerDeletion(stored: try left.content, number: 0, location: nil)
    #expect(copy == left && copy.artifacts.flatMap(\.files).map(\.path) == ["a/b.jpg", "a/b.jpg.t.png"])
  }

  @Test("A fetch that has replaced the file keeps the companions in mind that it has not replaced")
  func dropped() throws {
    var record = DownloadRecord(
      request: try DownloadRequest("https://example.org/b.jpg", id: "a"), generation: 1, arrival: 0, rank: Rank(),
      createdAt: Date(timeIntervalSince1970: 0))
    record.earlierArtifact = published
    record.steps.artifact = published
    record.steps.artifact?.companions = [.init(suffix: ".small.png")]
    record.dropSteps()
    #expect(record.earlierArtifact?.companions.map(\.suffix) == [".small.png", ".t.png"])
  }
}
