import Downpipe
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import CustomStages

/// `SplitParts` and `JoinParts`.
@Suite(.endsHangs)
struct PartTests {
  private func context(_ folder: TemporaryFolder) throws -> ProcessingContext {
    try FileManager.default.createDirectory(atPath: folder.path("work"), withIntermediateDirectories: true)
    return ProcessingContext(request: try DownloadRequest("data:,"), workspace: folder.path("work"))
  }

  private func join(_ parts: [String: [UInt8]]) async throws -> (name: String, bytes: [UInt8]) {
    let folder = try TemporaryFolder()
    try FileManager.default.createDirectory(atPath: folder.path("in"), withIntermediateDirectories: true)
    for (name, bytes) in parts { try folder.write(bytes, to: "in/\(name)") }
    let output = try await JoinParts().process(Directory(path: folder.path("in"), name: "in"), in: context(folder))
    return (output.name, try folder.read("work/joined"))
  }

  @Test(arguments: [
    (0, ["f.001"]), (3, ["f.001"]), (4, ["f.001"]), (5, ["f.001", "f.002"]), (9, ["f.001", "f.002", "f.003"]),
  ])
  func filesAreSplit(_ size: Int, _ names: [String]) async throws {
    let folder = try TemporaryFolder()
    let bytes = DownloadFixtures.pattern(size: size)
    let file = File(path: try folder.write(bytes, to: "f"), name: "f")
    let parts = try await SplitParts(bytes: 4).process(file, in: context(folder))
    #expect(parts.name == "f")
    #expect(try FileManager.default.contentsOfDirectory(atPath: parts.path ?? "").sorted() == names)
    let all = try names.flatMap { try folder.read("work/parts/" + $0) }
    #expect(all == bytes)
    #expect(try folder.read("work/parts/f.001").count == min(4, size))
    // And back.
    let whole = try await JoinParts().process(parts, in: context(folder))
    #expect(whole.name == "f")
    #expect(try folder.read("work/joined") == bytes)
  }

  @Test func tooManyPartsAreRefused() async throws {
    let folder = try TemporaryFolder()
    let file = File(path: try folder.write(DownloadFixtures.pattern(size: 1000), to: "f"), name: "f")
    let context = try context(folder)
    for bytes: Int64 in [1, 0, -1] {
      await #expect(throws: DownloadError.self) { try await SplitParts(bytes: bytes).process(file, in: context) }
    }
    #expect(try folder.contents() == ["f", "work"])
    #expect(PartNumber.suffix(7) == ".007" && PartNumber.suffix(999) == ".999")
  }

  @Test func partsAreJoinedInTheirOrder() async throws {
    let joined = try await join(["a.mkv.002": [3], "a.mkv.001": [1, 2], "a.mkv.003": []])
    #expect(joined.name == "a.mkv" && joined.bytes == [1, 2, 3])
  }

  @Test(arguments: [
    [], ["a.002"], ["a.001", "a.003"], ["a.001", "b.002"], ["a.001", "b.001"], ["a.001", "readme"], [".001"],
    ["a.001", "a.2"],
  ])
  func missingAndOtherFilesAreRefused(_ names: [String]) async throws {
    await #expect(throws: DownloadError.self) {
      try await join(Dictionary(uniqueKeysWithValues: names.map { ($0, [1]) }))
    }
  }

  @Test func linksAreRefused() async throws {
    let folder = try TemporaryFolder()
    try folder.write([1], to: "in/a.001")
    try FileManager.default.createSymbolicLink(atPath: folder.path("in/a.002"), withDestinationPath: "/etc/passwd")
    let context = try context(folder)
    await #expect(throws: DownloadError.self) {
      try await JoinParts().process(Directory(path: folder.path("in"), name: "in"), in: context)
    }
    #expect(try folder.contents().contains("work/joined") == false)
  }

  @Test func splitPartsKeepsTheContract() async throws {
    let bytes = DownloadFixtures.pattern(size: 200_000)
    func example(_ name: String) -> PostProcessorConformance.Example {
      .init { folder in
        Artifact(location: .path(try folder.write(bytes, to: name)), name: name)
      } verify: { output in
        let parts = try FileManager.default.contentsOfDirectory(atPath: output.path ?? "").sorted()
        try #require(parts == ["\(name).001", "\(name).002", "\(name).003"])
        let found = try parts.flatMap { [UInt8](try Data(contentsOf: URL(filePath: "\(output.path ?? "")/\($0)"))) }
        try #require(found == bytes)
      }
    }
    try await PostProcessorConformance(SplitParts(bytes: 70_000), example("a"), and: example("b")).run()
  }

  @Test func joinPartsKeepsTheContract() async throws {
    func example(_ parts: [String: [UInt8]], _ whole: [UInt8]) -> PostProcessorConformance.Example {
      .init { folder in
        for (name, bytes) in parts { try folder.write(bytes, to: "in/\(name)") }
        return Artifact(kind: .directory, location: .path(folder.path("in")), name: "in")
      } verify: { output in
        try #require([UInt8](try Data(contentsOf: URL(filePath: output.path ?? ""))) == whole)
      }
    }
    try await PostProcessorConformance(
      JoinParts(), example(["a.001": [1, 2], "a.002": [3]], [1, 2, 3]), and: example(["b.001": [4]], [4]),
      bad: example(["c.002": [4]], [])
    ).run()
  }
}
