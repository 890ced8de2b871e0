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

@Suite(.timeLimit(.minutes(1)))
struct FilePartialTests {
  private func partial(
    _ folder: TemporaryFolder, _ system: FileSystem = .system, durability: Durability = .process
  ) async throws -> any FileAdoptingPartial {
    let partial = try await FileStore(folder.path, durability: durability, system: system).openPartial(key())
    return try #require(partial as? any FileAdoptingPartial)
  }

  @Test func shortAndInterruptedCallsAreGoneOnWith() async throws {
    let folder = try TemporaryFolder()
    let calls = Calls { number, call, _ in
      guard call == .write || call == .read else { return .proceed }
      return number.isMultiple(of: 3) ? .fail(EINTR) : .atMost(997)
    }
    let partial = try await partial(folder, calls.system)
    try partial.put(someBytes, at: 5)
    #expect(try partial.read(at: 5, count: someBytes.count) == someBytes)
    #expect(try partial.size() == Int64(someBytes.count) + 5)
    #expect(calls.made.count { $0 == .write } > 70)
  }

  @Test func writesThatTakeNothingEnd() async throws {
    let folder = try TemporaryFolder()
    let partial = try await partial(folder, Calls { _, call, _ in call == .write ? .atMost(0) : .proceed }.system)
    #expect { try partial.put([1], at: 0) } throws: { ($0 as? DownloadError)?.code == .storage }
  }

  @Test(arguments: [(ENOSPC, DownloadError.Code.noSpace), (EIO, .storage), (EROFS, .permission)])
  func failedCallsHaveTheirCode(_ number: CInt, _ code: DownloadError.Code) async throws {
    let folder = try TemporaryFolder()
    let calls: Set<FileSystem.Call> = [.write, .read, .truncate, .flush, .close]
    let armed = Atomic(false)
    let faults = Calls { _, call, _ in
      armed.load(ordering: .relaxed) && calls.contains(call) ? .fail(number) : .proceed
    }
    let partial = try await partial(folder, faults.system, durability: .power)
    let hasCode: (any Error) -> Bool = { ($0 as? DownloadError)?.code == code }
    try partial.put([1, 2, 3], at: 0)
    armed.store(true, ordering: .relaxed)
    #expect { try partial.put([4], at: 3) } throws: { hasCode($0) }
    #expect { try partial.read(at: 0, count: 1) } throws: { hasCode($0) }
    #expect { try partial.truncate(to: 0) } throws: { hasCode($0) }
    await #expect { try await partial.synchronize() } throws: { hasCode($0) }
    #expect { try partial.close() } throws: { hasCode($0) }
    try partial.close()
    #expect(try folder.read(".downpipe/partials/id.1.part") == [1, 2, 3])
  }

  @Test(.enabled(if: SmallMount.isPossible, "needs the right to mount"))
  func fullDisksKeepWhatArrived() async throws {
    let folder = try TemporaryFolder()
    let mount = try SmallMount(folder.path("small"))
    defer { mount.unmount() }
    let store = FileStore(mount.path)
    let partial = try await store.openPartial(key())
    let chunk = [UInt8](repeating: 7, count: 100_000)
    var error: DownloadError?
    var written: Int64 = 0
    for _ in 0..<20 {
      do {
        try partial.put(chunk, at: written)
        written += Int64(chunk.count)
      } catch let failure as DownloadError {
        error = failure
        break
      }
    }
    #expect(error?.code == .noSpace)
    #expect(written >= 800_000)
    #expect(try partial.read(at: written - 1, count: 1) == [7])
    try partial.close()
    try await store.removePartial(key())
  }

  @Test func hostileOffsetsAreErrors() async throws {
    let folder = try TemporaryFolder()
    let partial = try await partial(folder)
    for offset in [-1, Int64.min, .max, .max - 1] {
      #expect(throws: DownloadError.self) { try partial.put([1, 2], at: offset) }
    }
    #expect(throws: DownloadError.self) { try partial.truncate(to: -1) }
    try partial.put([1, 2], at: 0)
    #expect(try partial.read(at: 0, count: .max) == [1, 2])
    #expect(try partial.read(at: .max, count: .max) == [])
    #expect(try partial.read(at: 1, count: -1) == [])
    #expect(try partial.size() == 2)
  }

  @Test func closedPartialsRefuseEverything() async throws {
    let folder = try TemporaryFolder()
    let partial = try await partial(folder, durability: .power)
    try partial.close()
    #expect(throws: DownloadError.self) { try partial.put([1], at: 0) }
    #expect(throws: DownloadError.self) { try partial.size() }
    #expect(throws: DownloadError.self) { try partial.adopt(folder.path) }
    await #expect(throws: DownloadError.self) { try await partial.synchronize() }
  }

  @Test func onlyPowerFlushesDataThenName() async throws {
    let folder = try TemporaryFolder()
    for durability in [Durability.process, .power] {
      let calls = Calls()
      let partial = try await partial(folder, calls.system, durability: durability)
      let opened = calls.made.count
      try await partial.synchronize()
      try await partial.synchronize()
      let flushes = calls.made[opened...].count { $0 == .flush }
      // The data each time, the folder once.
      #expect(flushes == (durability == .power ? 3 : 0))
    }
  }

  @Test func adoptingTakesTheFileOver() async throws {
    let folder = try TemporaryFolder()
    let partial = try await partial(folder)
    try partial.put(otherBytes, at: 0)
    let permissions = try FileSystem.system.status(Entry(folder.path(".downpipe/partials/id.1.part"))).permissions
    let file = try folder.write(someBytes, to: "from transport")
    chmod(file, 0o600)
    #expect(try partial.adopt(file))
    #expect(try partial.read(at: 0, count: .max) == someBytes)
    try partial.put([9], at: Int64(someBytes.count))
    try partial.close()
    #expect(try folder.tree() == [".downpipe/partials/id.1.part": someBytes + [9]])
    #expect(try FileSystem.system.status(Entry(folder.path(".downpipe/partials/id.1.part"))).permissions == permissions)
  }

  @Test func filesOfAnotherFileSystemAreNotAdopted() async throws {
    let folder = try TemporaryFolder()
    let file = try folder.write(someBytes, to: "from transport")
    let partial = try await partial(folder, Calls.failing([.rename], with: EXDEV))
    try partial.put([1], at: 0)
    #expect(try !partial.adopt(file))
    #expect(try partial.read(at: 0, count: 10) == [1])
    #expect(try folder.read("from transport") == someBytes)
    #expect(try !partial.adopt(folder.path))
    #expect(throws: DownloadError.self) { try partial.adopt(folder.path("missing")) }
  }
}
