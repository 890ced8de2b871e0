import DownpipeTesting
import Foundation
import HangLimit
import Testing

@_spi(Ledger) @testable import DownpipeCore

@Suite(.endsHangs)
struct LeftoversTests {
  @Test("Keys and artifacts are kept as they were, for any number of records and any text")
  func notesAreKept() async throws {
    let fixture = try await RunFixture()
    let removals = RemovedDownloads(of: fixture.context.hub, withFiles: true)
    var keys: [PartialKey] = []
    var artifacts: [StoredArtifact] = []
    var ids: [DownloadID] = []
    for index in 0..<2_500 {
      var record = try fixture.record(DownloadID(index % 7 == 0 ? "größer \(index) 🚀" : "\(index)"))
      record.generation = .max - Int64(index)
      if index % 3 == 0 {
        record.phase = index % 2 == 0 ? .finished : .failed
        record.steps.artifact = StoredArtifact(
          kind: index % 4 == 0 ? .directory : .file, path: index % 5 == 0 ? nil : "日本/\(index)",
          name: index % 9 == 0 ? "" : "n\(index)", size: index % 8 == 0 ? nil : Int64(index), mediaType: nil,
          modifiedAt: index % 10 == 0 ? nil : Date(timeIntervalSince1970: Double(index) / 3))
        // Of a failed download, only a file with a time is in its place.
        if let artifact = record.steps.artifact,
          record.phase == .finished || (artifact.kind == .file && artifact.modifiedAt != nil)
        {
          artifacts.append(artifact)
          ids.append(record.id)
        }
      }
      keys.append(record.partialKey)
      removals.note(record)
    }
    let taken = removals.taken()
    #expect(taken.count == 2_500 && taken.watched.isEmpty)
    #expect(taken.pages.count == 3)
    #expect(taken.pages.flatMap(\.keys) == keys)
    #expect(taken.pages.flatMap { $0.artifacts.map(\.artifact) } == artifacts)
    #expect(taken.pages.flatMap { $0.artifacts.map(\.id) } == ids)
    #expect(removals.taken().count == 0)
  }

  @Test func artifactsAreNotedOnlyOnRequest() async throws {
    let fixture = try await RunFixture()
    let removals = RemovedDownloads(of: fixture.context.hub, withFiles: false)
    var record = try fixture.record("a")
    record.phase = .finished
    record.steps.artifact = StoredArtifact(kind: .file, path: "a", name: "a", size: 1, mediaType: nil)
    removals.note(record)
    let taken = removals.taken()
    #expect(taken.pages.allSatisfy(\.artifacts.isEmpty) && taken.pages.flatMap(\.keys) == [record.partialKey])
  }
}
