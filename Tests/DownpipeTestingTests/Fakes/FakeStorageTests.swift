import DownpipeCore
import DownpipeTesting
import HangLimit
import Testing

@Suite(.endsHangs)
struct FakeStorageTests {
  private let key = PartialKey(id: "a", generation: 1)

  @Test func failsTheCallsItIsToldTo() async throws {
    let storage = FakeStorage()
    let full = DownloadError(.noSpace, "full")
    storage.fail(.write, at: 2, times: 2, with: full)
    let partial = try await storage.openPartial(key, isNew: false)
    try partial.put([1], at: 0)
    #expect(throws: full) { try partial.put([2], at: 1) }
    #expect(throws: full) { try partial.put([2], at: 1) }
    try partial.put([4], at: 1)
    #expect(storage.partials[key] == [1, 4])
    #expect(storage.calls.map(\.operation) == [.openPartial, .write, .write, .write, .write])
    #expect(storage.calls.map(\.range) == [nil, 0..<1, 1..<2, 1..<2, 1..<2])
  }

  @Test(arguments: FakeStorage.Operation.allCases)
  func everyOperationCanFail(_ operation: FakeStorage.Operation) async throws {
    let folder = try TemporaryFolder()
    defer { folder.close() }
    let storage = FakeStorage(workspaces: folder.path)
    storage.fail(operation, times: .max, with: DownloadError(.storage, "no"))
    let failed = await #expect(throws: DownloadError.self) {
      let partial = try await storage.openPartial(key, isNew: false)
      try partial.put([1, 2], at: 0)
      _ = try partial.read(at: 0, count: 1)
      try partial.truncate(to: 1)
      try partial.persist()
      try await partial.synchronize()
      try partial.close()
      let context = ProcessingContext(
        request: try DownloadRequest("https://example.org/a"), workspace: try await storage.workspace(key))
      let artifact = try await storage.publish(
        try partial.artifact(name: "a", mediaType: nil), of: nil, at: .init(), in: context)
      try await storage.remove(artifact)
      try await storage.removePartial(key)
    }
    #expect(failed?.message == "no")
    #expect(storage.calls.last?.operation == operation)
  }

  @Test func powerLossTakesWhatWasNotSynchronised() async throws {
    let storage = FakeStorage()
    let partial = try await storage.openPartial(key, isNew: false)
    try partial.put([1, 2], at: 0)
    try await partial.synchronize()
    try partial.put([3, 4], at: 2)
    storage.losePower()
    #expect(throws: DownloadError.self) { try partial.put([5], at: 4) }
    #expect(storage.partials[key] == [1, 2])
    #expect(storage.openPartials == 0)
    #expect(try await storage.openPartial(key, isNew: false).size() == 2)
  }

  @Test func anEarlierOpeningCannotWriteIntoALaterOne() async throws {
    let storage = FakeStorage()
    let stale = try await storage.openPartial(key, isNew: false)
    try await storage.removePartial(key)
    let present = try await storage.openPartial(key, isNew: false)
    #expect(throws: DownloadError.self) { try stale.put([1], at: 0) }
    try present.put([2], at: 0)
    #expect(storage.partials[key] == [2])
  }

  @Test func aNewPartialIsLostUnlessItWasPersisted() async throws {
    for isPersisted in [false, true] {
      let storage = FakeStorage()
      let partial = try await storage.openPartial(key, isNew: true)
      try partial.put([1], at: 0)
      if isPersisted { try partial.persist() }
      try partial.finish()
      #expect(throws: DownloadError.self) { try partial.put([2], at: 1) }
      #expect(try partial.artifact(name: "a", mediaType: nil).location == .memory([1]))
      try partial.close()
      #expect(storage.partials[key] == (isPersisted ? [1] : nil))
      #expect(storage.openPartials == 0)
    }
  }

  @Test(arguments: [Int64(-1), .max, 1 << 40])
  func positionsAreBounded(_ offset: Int64) async throws {
    let partial = try await FakeStorage().openPartial(key, isNew: false)
    #expect(throws: DownloadError.self) { try partial.put([1], at: offset) }
    #expect(throws: DownloadError.self) { try partial.truncate(to: offset) }
    #expect(try partial.size() == 0)
  }

  @Test func keepsBothUnderNumbers() async throws {
    let storage = FakeStorage(onConflict: .keepBoth)
    let context = ProcessingContext(request: try DownloadRequest("https://example.org/a"), workspace: nil)
    for byte in [1, 2, 3] as [UInt8] {
      _ = try await storage.publish(
        Artifact(location: .memory([byte]), name: "a"), of: nil, at: .init(directory: "d"), in: context)
    }
    #expect(storage.published == ["d/a": [1], "d/2 a": [2], "d/3 a": [3]])
  }
}
