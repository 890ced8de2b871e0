import ChildPipe
import DownpipeCore
import DownpipePOSIX
import DownpipeTesting
import Foundation
import HangLimit
import Synchronization
import Testing

@testable import DownpipeFiles

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Taking over abandoned claims, by several processes at once and with failing calls.
@Suite(.endsHangs)
struct ClaimTakeoverTests: ClaimTests {
  @Test(arguments: [false, true])
  func aRunningProcessKeepsItsClaimAndAnEndedOneLosesItAtOnce(_ asFile: Bool) async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path)
    _ = try await store.staged([1, 2, 3])
    let process = Process()
    process.executableURL = URL(filePath: "/bin/cat")
    let input = try ChildPipe()
    process.standardOutput = FileHandle.nullDevice
    try process.run(input: input)
    defer { withExtendedLifetime(input) {} }
    var owner = ProcessOwner.new()
    owner.end()
    owner.process = process.processIdentifier
    owner.start = try #require(ProcessOwner.startTime(of: process.processIdentifier))
    try leave(owner.text, in: folder, asFile: asFile)

    await #expect {
      _ = try await store.openPartial(key(), isNew: false)
    } throws: {
      isInUse("the process \(owner.process) on \(owner.host)", "end it")($0)
    }
    await #expect { try await store.removePartial(key()) } throws: { isInUse("\(owner.process)")($0) }
    #expect(try await store.partials() == [StoredPartial(key: key(), size: 3, isInUse: true)])
    // A stopped process cannot renew its claim, and can continue later.
    kill(owner.process, SIGSTOP)
    try age(folder, by: 10 * PartialClaim.lease)
    await #expect { _ = try await store.openPartial(key(), isNew: false) } throws: { isInUse("\(owner.process)")($0) }

    kill(owner.process, SIGKILL)
    process.waitUntilExit()
    #expect(try await store.partials() == [StoredPartial(key: key(), size: 3, isInUse: false)])
    let partial = try await store.openPartial(key(), isNew: false)
    #expect(try partial.read(at: 0, count: 10) == [1, 2, 3])
    #expect(try claims(folder) == ["id.1.part.owner"])
    await #expect { _ = try await store.openPartial(key(), isNew: false) } throws: { isInUse("this process")($0) }
    try partial.close()
    #expect(try claims(folder).isEmpty)
  }

  /// Without a lock on the folder two processes may remove the same claim, so the new owner gets a copy of the file
  /// even if the earlier owner is provably gone.
  @Test(arguments: [true, false])
  func withoutLocksATakeoverCopiesTheFile(_ hasLocks: Bool) async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path, system: hasLocks ? .system : Calls.failing([.lock], with: EBADF))
    let path = try #require(try await store.staged([1, 2, 3]).path)
    let before = try FileSystem.system.status(Entry(path))
    try leave(goneOwner().text, in: folder)
    let old = try FileHandle(forUpdating: URL(filePath: path))
    let partial = try await store.openPartial(key(), isNew: false)
    try old.write(contentsOf: [9])
    try old.close()
    #expect(try FileSystem.system.status(Entry(path)).isSame(as: before) == hasLocks)
    #expect(try partial.read(at: 0, count: 10) == [hasLocks ? 9 : 1, 2, 3])
    try partial.close()
    #expect(try folder.tree().count == 1)
  }

  /// Several openings find the same abandoned claim at once. One of them gets it.
  @Test(arguments: 0..<2)
  func oneOfManySuccessorsGetsTheClaim(_ system: Int) async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path, system: Self.systems[system])
    for round in 0..<150 {
      try leave(goneOwner().text, in: folder, asFile: round.isMultiple(of: 2))
      let attempts = Watched(0)
      let winners = try await withThrowingTaskGroup(of: Bool.self) { group in
        for _ in 0..<8 {
          group.addTask {
            let partial: (any Partial)?
            do {
              partial = try await store.openPartial(key(), isNew: false)
            } catch let error as DownloadError where error.code == .inUse {
              partial = nil
            }
            attempts.update { $0 += 1 }
            // The claim is held until all have tried.
            await attempts.wait { $0 == 8 }
            try partial?.close()
            return partial != nil
          }
        }
        return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
      }
      // After the time limit of the test the waits above end early.
      try Task.checkCancellation()
      #expect(winners == 1, "round \(round)")
      #expect(try claims(folder).isEmpty, "round \(round)")
    }
  }

  private struct Writers: Sendable {
    var now = 0
    var most = 0
    var openings = 0
  }

  /// Openings take and release the claim in turn, and some end at a failing call.
  @Test(arguments: 0..<2)
  func aPartialNeverHasTwoWriters(_ system: Int) async throws {
    let folder = try TemporaryFolder()
    let writers = Watched(Writers())
    try await withThrowingTaskGroup(of: Void.self) { group in
      for worker in 0..<6 {
        group.addTask {
          for round in 0..<120 {
            // In three of four rounds the file system fails from some call on, also at closing, so that the claim
            // stays.
            let last = round.isMultiple(of: 4) ? Int.max : (round &+ worker &* 7) % 12
            let calls = Calls { number, call, path in
              // An incomplete claim file would hold the partial for the lease.
              if number > last, call != .close, call != .write { return .fail(EIO) }
              return system == 1 && call == .makeLink ? .fail(EPERM) : .proceed
            }
            do {
              let partial = try await FileStore(folder.path, system: calls.system).openPartial(key(), isNew: false)
              writers.update { writers in
                writers.now += 1
                writers.openings += 1
                writers.most = max(writers.most, writers.now)
              }
              await Task.yield()
              writers.update { $0.now -= 1 }
              try partial.close()
            } catch let error as DownloadError where [.inUse, .storage].contains(error.code) {}
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(writers.value.most == 1)
    // How many get the claim is up to chance.
    #expect(writers.value.openings > 2)
    let store = FileStore(folder.path)
    try await store.openPartial(key(), isNew: false).close()
    try await store.removePartial(key())
    #expect(try await store.partials() == [])
    #expect(try folder.tree().isEmpty)
  }

  /// A takeover ends at each of its calls in turn. Then one successor gets the partial.
  @Test(arguments: 0..<2, [false, true])
  func aTakeoverSurvivesAnEndAtEachCall(_ system: Int, _ isProved: Bool) async throws {
    for last in 0... {
      let folder = try TemporaryFolder()
      _ = try await FileStore(folder.path).staged([1, 2, 3])
      var owner = goneOwner()
      if !isProved { owner.boot = "another" }
      try leave(owner.text, in: folder, asFile: system == 1)
      try age(folder)
      let hasDied = Atomic(false)
      let dying = FileStore(
        folder.path,
        system: Calls { number, call, _ in
          if number > last, call != .close {
            hasDied.store(true, ordering: .relaxed)
            return .fail(EIO)
          }
          return system == 1 && call == .makeLink ? .fail(EPERM) : .proceed
        }.system)
      let survivor = try? await dying.openPartial(key(), isNew: false)
      let next = FileStore(folder.path)
      if survivor != nil {
        await #expect { _ = try await next.openPartial(key(), isNew: false) } throws: { isInUse("this process")($0) }
        // It opened the partial with its last call.
        try survivor?.close()
      }
      try age(folder)
      let partial = try await next.openPartial(key(), isNew: false)
      await #expect { _ = try await next.openPartial(key(), isNew: false) } throws: { isInUse("this process")($0) }
      #expect(try partial.read(at: 0, count: 10) == [1, 2, 3])
      try partial.close()
      #expect(try await next.partials()?.map(\.key) == [key()])
      try await next.removePartial(key())
      #expect(try folder.tree().isEmpty, "dead after call \(last)")
      if !hasDied.load(ordering: .relaxed) { return }
    }
  }
}
