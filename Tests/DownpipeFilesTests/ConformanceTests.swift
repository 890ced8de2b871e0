import DownpipeCore
import DownpipeFiles
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@Suite(.endsHangs)
struct ConformanceTests {
  @Test(arguments: [
    (ConflictPolicy.keepBoth, StorageConformance.Conflict.keepsBoth), (.replace, .replaces), (.fail, .fails),
    (.reuse, .reuses),
  ])
  func fileStoreConforms(_ policy: ConflictPolicy, _ conflict: StorageConformance.Conflict) async throws {
    let folder = try TemporaryFolder()
    try await StorageConformance(FileStore(folder.path, onConflict: policy), onConflict: conflict).run()
    try await StorageConformance(
      FileStore(folder.path("power"), onConflict: policy, durability: .power), onConflict: conflict
    ).run()
  }

  @Test func wrappedStoresConform() async throws {
    let folder = try TemporaryFolder()
    let base = FileStore(folder.path)
    try await StorageConformance(Wrapper(base: Wrapper(base: base)), wrapping: base, onConflict: .keepsBoth).run()
  }

  private struct Wrapper: StorageWrapper {
    let base: any Storage
  }

  @Test func aWrapperForwardsAllRequirements() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path, durability: .power)
    let wrapper = Wrapper(base: store)
    #expect(try wrapper.location == store.location && wrapper.location != nil)
    #expect(wrapper.durability == .power && wrapper.name == "FileStore" && wrapper.id == "FileStore")
    #expect(wrapper.summary == store.summary)
    #expect(try await wrapper.partials() == [])
    #expect(try await wrapper.availableBytes() != nil)
    #expect(throws: DownloadError.self) { try wrapper.check(.init(name: "..")) }
  }

  @Test func fileSourceConforms() async throws {
    let folder = try TemporaryFolder()
    let content = DownloadFixtures.pattern(size: 2_000_003)
    let path = try folder.write(content, to: "a file ä.bin")
    try await SourceConformance(
      FileSource(), url: URL(filePath: path), content: content,
      missingURL: URL(filePath: folder.path("missing"))
    ).run()
  }

  @Test func moveIntoConforms() async throws {
    let folder = try TemporaryFolder()
    try await PostProcessorConformance(
      MoveInto(folder.path("moved")), .init(Array("bytes".utf8), named: "a.txt"),
      and: .init(Array("other bytes".utf8), named: "b.txt"),
      excluding: [
        .init("input-is-kept", because: "it moves its input"),
        .init("output-is-in-the-workspace", because: "the folder it moves into is the point"),
      ]
    ).run()
  }
}
