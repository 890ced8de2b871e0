import DownpipeCore
import DownpipeMemory
import DownpipeTesting
import HangLimit
import Testing

@Suite(.endsHangs)
struct ConformanceTests {
  @Test(arguments: [
    (ConflictPolicy.keepBoth, StorageConformance.Conflict.keepsBoth), (.replace, .replaces), (.fail, .fails),
    (.reuse, .reuses),
  ])
  func memoryStoreConforms(_ policy: ConflictPolicy, _ conflict: StorageConformance.Conflict) async throws {
    let exclusions = [
      ConformanceExclusion(
        "conflict", because: "the rule compares locations, and the location of an artifact in memory is its bytes")
    ]
    try await StorageConformance(
      MemoryStore(onConflict: policy), onConflict: conflict, excluding: policy == .replace ? exclusions : []
    ).run()
  }

  @Test func wrappedStoresConform() async throws {
    let base = MemoryStore()
    try await StorageConformance(Wrapper(base: Wrapper(base: base)), wrapping: base, onConflict: .keepsBoth).run()
  }

  private struct Wrapper: StorageWrapper {
    let base: any Storage
  }

  @Test("a storage that does not find the bytes of its artifacts is noticed")
  func bytesAreFound() async throws {
    struct Forgetful: StorageWrapper {
      let base: any Storage
      func published(_ described: Artifact) -> Artifact? { nil }
    }
    await #expect {
      try await StorageConformance(Forgetful(base: MemoryStore()), onConflict: .keepsBoth).run()
    } throws: {
      ($0 as? ConformanceFailure)?.brokenRules.map(\.rule) == ["bytes-in-memory"]
    }
  }
}
