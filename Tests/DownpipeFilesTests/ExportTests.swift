import DownpipeCore
import DownpipeTesting
import Foundation
import Synchronization
import Testing

@testable import DownpipeFiles

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// The first bytes of an unfinished download in a file of their own.
@Suite(.timeLimit(.minutes(1)))
struct ExportTests {
  @Test func anOpenPartialIsExported() async throws {
    let folder = try TemporaryFolder()
    // Named or not yet.
    for isNew in [true, false] {
      for durability in [Durability.process, .power] {
        let store = FileStore(folder.path("root"), durability: durability)
        let partial = try await store.openPartial(key(), isNew: isNew)
        let bytes = DownloadFixtures.pattern(size: 2_500_000)
        try partial.put(bytes, at: 0)
        let file = folder.path("\(isNew) \(durability)")
        try await partial.export(to: file, count: 2_400_001)
        let isEqual = try folder.read("\(isNew) \(durability)") == Array(bytes[..<2_400_001])
        #expect(isEqual)
        try partial.close()
        try await store.removePartial(key())
      }
    }
  }

  @Test(arguments: [FileSystem.Call.write, .flush, .close])
  func aFailedExportLeavesNothing(_ failing: FileSystem.Call) async throws {
    let folder = try TemporaryFolder()
    let armed = Atomic(false)
    let calls = Calls { _, call, _ in
      armed.load(ordering: .relaxed) && call == failing ? .fail(ENOSPC) : .proceed
    }
    let store = FileStore(folder.path("root"), durability: .power, system: calls.system)
    let partial = try await store.openPartial(key(), isNew: true)
    try partial.put(someBytes, at: 0)
    armed.store(true, ordering: .relaxed)
    await #expect { try await partial.export(to: folder.path("out"), count: 1000) } throws: {
      ($0 as? DownloadError)?.code == .noSpace
    }
    armed.store(false, ordering: .relaxed)
    #expect(try folder.contents().allSatisfy { $0.hasPrefix("root") })
    try partial.close()
  }

  @Test func aCancelledExportLeavesNothing() async throws {
    let folder = try TemporaryFolder()
    let partial = try await FileStore(folder.path).openPartial(key(), isNew: false)
    try partial.put(someBytes, at: 0)
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      try await partial.export(to: folder.path("out"), count: 1000)
    }
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(!FileManager.default.fileExists(atPath: folder.path("out")))
  }
}
