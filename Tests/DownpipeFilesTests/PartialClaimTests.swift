import DownpipeCore
import DownpipeOwner
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
struct PartialClaimTests {
  private static let claimName = ".downpipe/partials/id.1.part.owner"

  /// File systems: as it is, and without symbolic links.
  static let systems: [FileSystem] = [.system, Calls.failing([.makeLink], with: EPERM)]

  private func isInUse(_ words: String...) -> (any Error) -> Bool {
    { error in
      guard let error = error as? DownloadError else { return false }
      return error.code == .inUse && words.allSatisfy(error.message.contains)
    }
  }

  /// Leaves a claim, as a link or as a file.
  private func leave(_ text: String, in folder: TemporaryFolder, asFile: Bool = false) throws {
    try folder.makeFolder(".downpipe/partials")
    if asFile {
      _ = try folder.write(Array(text.utf8) + [10], to: Self.claimName)
    } else {
      try FileManager.default.createSymbolicLink(atPath: folder.path(Self.claimName), withDestinationPath: text)
    }
  }

  private func claims(_ folder: TemporaryFolder) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: folder.path(".downpipe/partials")).filter {
      $0.contains(PartialClaim.suffix)
    }
  }

  /// The record of somebody who is not there any more.
  private func goneOwner() -> ProcessOwner {
    var owner = ProcessOwner.new()
    owner.end()
    owner.start -= 1
    return owner
  }

  @Test(arguments: 0..<2)
  func aPartialHasOneWriterAtATime(_ system: Int) async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path, system: Self.systems[system])
    let first = try await store.openPartial(key())
    let claim = folder.path(Self.claimName)
    for other in [store, FileStore(folder.path)] {
      await #expect {
        _ = try await other.openPartial(key())
      } throws: {
        isInUse("another download of this process", "\(getpid())", "wait", "remove \(claim)")($0)
      }
    }
    try first.put([1], at: 0)
    _ = try await store.openPartial(key("id", 2))
    try first.close()
    try first.close()
    let second = try await store.openPartial(key())
    // A second closing of the first must not give away what is another one's by now.
    try first.close()
    await #expect { _ = try await store.openPartial(key()) } throws: { isInUse()($0) }
    #expect(try second.read(at: 0, count: 2) == [1])
    try second.close()
    #expect(try claims(folder).isEmpty)
  }

  /// Longer ones cost four times as much on common file systems.
  @Test func textsAreShort() {
    #expect(Claimants.text(of: 100_000).utf8.count <= 59)
    #expect(Claimants.text(of: 1) != Claimants.text(of: 2))
  }

  /// What each component of a text proves when it is another one than this process has.
  @Test(
    arguments: [
      (0, "elsewhere.12345678", false), (1, "before", true), (1, "", false), (2, "else", false), (2, "", false),
      (4, "1", true), (5, "other", false), (6, "0", true), (6, "?", false), (3, "x", false), (4, "-1", false),
    ] as [(Int, String, Bool)])
  func aDifferenceProves(_ component: Int, _ other: String, _ isGone: Bool) async throws {
    let folder = try TemporaryFolder()
    let partial = try await FileStore(folder.path).openPartial(key())
    let target = try FileSystem.system.target(ofLink: Entry(folder.path(Self.claimName)))
    let text = String(decoding: target.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    #expect(!ClaimRecord(text: text).isGone)
    var parts = text.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
    parts[component] = other
    #expect(ClaimRecord(text: parts.joined(separator: "/")).isGone == isGone)
    try partial.close()
    #expect(ClaimRecord(text: text).isGone)
  }

  @Test func lettingGoOfAPartialFreesIt() async throws {
    let folder = try TemporaryFolder()
    for _ in 0..<3 { _ = try await FileStore(folder.path).openPartial(key()) }
    #expect(try claims(folder).isEmpty)
  }

  /// Until its entry is gone, the claim is nobody else's: what is unlinked would be theirs.
  @Test func aClaimEndsWithItsEntry() async throws {
    let folder = try TemporaryFolder()
    let partial = folder.path(".downpipe/partials/id.1.part")
    let attempts = Watched(0)
    let calls = Calls { _, call, path in
      if call == .unlink, path == partial + PartialClaim.suffix {
        attempts.update { $0 += 1 }
        #expect(throws: DownloadError.self) {
          try PartialClaim.take(partial, for: 0, system: .system).release()
        }
      }
      return .proceed
    }
    try await FileStore(folder.path, system: calls.system).openPartial(key()).close()
    #expect(attempts.value == 1)
    #expect(try claims(folder).isEmpty)
  }

  @Test func whatCannotBeOpenedIsNotHeld() async throws {
    let folder = try TemporaryFolder()
    await #expect(throws: DownloadError.self) {
      _ = try await FileStore(folder.path, system: Calls.failing([.open], with: EMFILE)).openPartial(key())
    }
    #expect(try claims(folder).isEmpty)
    // A claim that cannot be removed does not outlive its holder either.
    let store = FileStore(folder.path, system: Calls.failing([.unlink], with: EIO))
    try await store.openPartial(key()).close()
    #expect(try !claims(folder).isEmpty)
    try await FileStore(folder.path).openPartial(key()).close()
    #expect(try claims(folder).isEmpty)
  }

  @Test(arguments: [false, true])
  func aLivingProcessKeepsItsClaimAndADeadOneLosesItAtOnce(_ asFile: Bool) async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path)
    _ = try await store.staged([1, 2, 3])
    let process = Process()
    process.executableURL = URL(filePath: "/bin/cat")
    let input = Pipe()
    process.standardInput = input
    process.standardOutput = FileHandle.nullDevice
    try process.run()
    var owner = ProcessOwner.new()
    owner.end()
    owner.process = process.processIdentifier
    owner.start = try #require(ProcessOwner.startTime(of: process.processIdentifier))
    try leave(owner.text, in: folder, asFile: asFile)

    await #expect {
      _ = try await store.openPartial(key())
    } throws: {
      isInUse("the process \(owner.process) on \(owner.host)", "remove ")($0)
    }
    await #expect { try await store.removePartial(key()) } throws: { isInUse("\(owner.process)")($0) }
    #expect(try await store.partials() == [StoredPartial(key: key(), size: 3, isInUse: true)])

    kill(owner.process, SIGKILL)
    process.waitUntilExit()
    #expect(try await store.partials() == [StoredPartial(key: key(), size: 3, isInUse: false)])
    let partial = try await store.openPartial(key())
    #expect(try partial.read(at: 0, count: 10) == [1, 2, 3])
    #expect(try claims(folder) == ["id.1.part.owner"])
    await #expect { _ = try await store.openPartial(key()) } throws: { isInUse("this process")($0) }
    try partial.close()
    #expect(try claims(folder).isEmpty)
  }

  @Test(arguments: [false, true], ["", "host", "a/b/c/d/e/f", "v2 host/1/2/3/4/5/6/7"])
  func whatIsNotUnderstoodIsNotTakenOver(_ asFile: Bool, _ text: String) async throws {
    if !asFile && text.isEmpty { return }
    let folder = try TemporaryFolder()
    try leave(text, in: folder, asFile: asFile)
    await #expect {
      _ = try await FileStore(folder.path).openPartial(key())
    } throws: {
      isInUse("somebody unknown", "remove \(folder.path(Self.claimName))")($0)
    }
    #expect(try claims(folder).count == 1)
  }

  @Test func otherMachinesAreNeverTakenOverFrom() async throws {
    let folder = try TemporaryFolder()
    var owner = goneOwner()
    owner.host = "elsewhere"
    try leave(owner.text, in: folder)
    await #expect {
      _ = try await FileStore(folder.path).openPartial(key())
    } throws: {
      isInUse("on elsewhere")($0)
    }
  }

  @Test func anotherThingInItsPlaceIsLeftAlone() async throws {
    let folder = try TemporaryFolder()
    try folder.makeFolder(Self.claimName)
    await #expect { _ = try await FileStore(folder.path).openPartial(key()) } throws: { isInUse("unknown")($0) }
    #expect(try folder.tree().isEmpty)
  }

  /// A file that was never written whole is somebody's who is about to, or who has died.
  @Test(arguments: [[], [0, 0, 0, 10], Array("host/boot/s".utf8)] as [[UInt8]])
  func unfinishedFilesAreTakenOverOnceTheyAreOld(_ bytes: [UInt8]) async throws {
    for system in Self.systems {
      let folder = try TemporaryFolder()
      let store = FileStore(folder.path, system: system)
      let path = try folder.write(bytes, to: Self.claimName)
      await #expect { _ = try await store.openPartial(key()) } throws: { isInUse("a moment ago")($0) }
      #expect(try claims(folder) == ["id.1.part.owner"])
      #expect(try folder.read(Self.claimName) == bytes)
      // Its own file system's clock counts, not ours: the age is what lies between two of its times.
      let then = Date(timeIntervalSinceNow: -Double(ClaimRecord.patience) - 2)
      try FileManager.default.setAttributes([.modificationDate: then], ofItemAtPath: path)
      let partial = try await store.openPartial(key())
      await #expect { _ = try await store.openPartial(key()) } throws: { isInUse("this process")($0) }
      try partial.close()
      #expect(try claims(folder).isEmpty)
    }
  }

  @Test func fileSystemsWithoutLinksGetFiles() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path, system: Self.systems[1])
    let partial = try await store.openPartial(key())
    let text = String(decoding: try folder.read(Self.claimName), as: UTF8.self)
    #expect(text.hasSuffix("\n") && text.contains("/\(getpid())/"))
    try partial.close()
    // Half of one is not left lying.
    let failing = Calls { _, call, _ in call == .makeLink ? .fail(EPERM) : call == .write ? .fail(ENOSPC) : .proceed }
    await #expect {
      _ = try await FileStore(folder.path, system: failing.system).openPartial(key())
    } throws: {
      ($0 as? DownloadError)?.code == .noSpace
    }
    #expect(try claims(folder).isEmpty)
  }

  @Test func aCallThatIsMadeTwiceIsNoConflict() async throws {
    let folder = try TemporaryFolder()
    // The second call of a network file system finds what the first one made.
    for failing in [FileSystem.Call.makeLink, .rename] {
      if failing == .rename { try leave(goneOwner().text, in: folder) }
      let isFirst = Atomic(true)
      let calls = Calls { _, call, _ in
        guard call == failing, isFirst.exchange(false, ordering: .relaxed) else { return .proceed }
        return .makeAndFail(failing == .rename ? ENOENT : EEXIST)
      }
      let partial = try await FileStore(folder.path, system: calls.system).openPartial(key())
      #expect(calls.made.contains(failing))
      await #expect { _ = try await FileStore(folder.path).openPartial(key()) } throws: { isInUse("this process")($0) }
      try partial.close()
      #expect(try claims(folder).isEmpty)
    }
  }

  @Test func removingTakesTheClaimFirst() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path)
    let partial = try await store.openPartial(key())
    try partial.put([1], at: 0)
    await #expect {
      try await FileStore(folder.path).removePartial(key())
    } throws: {
      isInUse("this process")($0)
    }
    #expect(try partial.artifact(name: "x", mediaType: nil).size == .known(1))
    // One's own.
    try await store.removePartial(key())
    #expect(throws: DownloadError.self) { try partial.artifact(name: "x", mediaType: nil) }
    await #expect { _ = try await store.openPartial(key()) } throws: { isInUse("this process")($0) }
    try partial.close()
    #expect(try folder.tree().isEmpty)

    _ = try await store.staged([1])
    try leave(goneOwner().text, in: folder)
    try await store.removePartial(key())
    #expect(try folder.tree().isEmpty)
  }

  @Test func claimsWithoutPartialsAreRemoved() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path)
    let long = DownloadID(String(repeating: "x", count: 255))
    let prefix = PathText.split(try PartialName.path(of: key(long))).folder
    try folder.makeFolder(".downpipe/partials/" + prefix)
    let gone = goneOwner().text
    var other = goneOwner()
    other.host = "elsewhere"
    for name in [
      "id.1.part.owner", "a.2.part.owner", "a.2.part.owner.0123456789abcdef",
      try PartialName.path(of: key(long)) + ".owner", "b.1.part.owner.0123456789abcdef",
    ] {
      try FileManager.default.createSymbolicLink(
        atPath: folder.path(".downpipe/partials/" + name), withDestinationPath: gone)
    }
    try FileManager.default.createSymbolicLink(
      atPath: folder.path(".downpipe/partials/c.1.part.owner"), withDestinationPath: other.text)
    let strangers = [".owner", "notes.owner", "x.part.owner", "d.1.part.owner.txt"]
    for name in strangers { _ = try folder.write([1], to: ".downpipe/partials/" + name) }
    let open = try await store.openPartial(key("open"))
    #expect(try await store.partials() == [StoredPartial(key: key("open"), size: 0, isInUse: true)])
    try open.close()
    let left = try folder.tree().keys.map { $0.dropFirst(".downpipe/partials/".count) }
    #expect(Set(left) == Set((strangers + ["open.1.part", "c.1.part.owner/"]).map { $0[...] }))
  }

  /// A claim of one that is gone is wanted by many at once: exactly one gets it, each time.
  @Test(arguments: 0..<2)
  func manySuccessorsAreOne(_ system: Int) async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path, system: Self.systems[system])
    for round in 0..<150 {
      try leave(goneOwner().text, in: folder, asFile: round.isMultiple(of: 2))
      let everybodyHasTried = Watched(0)
      let winners = try await withThrowingTaskGroup(of: Bool.self) { group in
        for _ in 0..<8 {
          group.addTask {
            let partial: (any Partial)?
            do {
              partial = try await store.openPartial(key())
            } catch let error as DownloadError where error.code == .inUse {
              partial = nil
            }
            everybodyHasTried.update { $0 += 1 }
            // Nobody closes before all have tried.
            await everybodyHasTried.wait { $0 == 8 }
            try partial?.close()
            return partial != nil
          }
        }
        return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
      }
      // Past the time limit nobody waits for the others any more.
      try Task.checkCancellation()
      #expect(winners == 1, "round \(round)")
      #expect(try claims(folder).isEmpty, "round \(round)")
    }
  }

  /// As if a minute had passed since somebody died while writing a claim.
  private func ageUnfinishedClaims(_ folder: TemporaryFolder) throws {
    for name in try claims(folder) {
      let path = folder.path(".downpipe/partials/" + name)
      guard try ClaimRecord.read(path, system: .system)?.unfinishedSince != nil else { continue }
      let then = Date(timeIntervalSinceNow: -Double(ClaimRecord.patience) - 2)
      try FileManager.default.setAttributes([.modificationDate: then], ofItemAtPath: path)
    }
  }

  private struct Writers: Sendable {
    var now = 0
    var most = 0
    var openings = 0
  }

  /// The same while the winners come and go, and some die on the way, each at another call.
  @Test(arguments: 0..<2)
  func nobodyEverWritesBesideAnotherOne(_ system: Int) async throws {
    let folder = try TemporaryFolder()
    let writers = Watched(Writers())
    try await withThrowingTaskGroup(of: Void.self) { group in
      for worker in 0..<6 {
        group.addTask {
          for round in 0..<120 {
            // In three of four rounds the file system fails from some call on, at closing too: the claim stays.
            let last = round.isMultiple(of: 4) ? Int.max : (round &+ worker &* 7) % 12
            let calls = Calls { number, call, path in
              // Half a file would have to be waited for.
              if number > last, call != .close, call != .write { return .fail(EIO) }
              return system == 1 && call == .makeLink ? .fail(EPERM) : .proceed
            }
            do {
              let partial = try await FileStore(folder.path, system: calls.system).openPartial(key())
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
    #expect(writers.value.openings > 20)
    let store = FileStore(folder.path)
    try await store.openPartial(key()).close()
    try await store.removePartial(key())
    #expect(try await store.partials().isEmpty)
    #expect(try folder.tree().isEmpty)
  }

  /// Taking over dies at each of its calls in turn: the next one gets the partial, and nobody else beside it.
  @Test(arguments: 0..<2, 0..<3)
  func everyCallOfATakeoverMayBeTheLast(_ system: Int, _ deadBefore: Int) async throws {
    for last in 0... {
      let folder = try TemporaryFolder()
      _ = try await FileStore(folder.path).staged([1, 2, 3])
      try leave(goneOwner().text, in: folder, asFile: system == 1)
      func dying(after last: Int) -> FileStore {
        FileStore(
          folder.path,
          system: Calls { number, call, _ in
            if number > last, call != .close { return .fail(EIO) }
            return system == 1 && call == .makeLink ? .fail(EPERM) : .proceed
          }.system)
      }
      // Some have died before: with their link made, and not yet in its place.
      for number in 0..<deadBefore {
        let calls = Calls { _, call, _ in
          call == .rename ? .fail(EIO) : system == 1 && call == .makeLink ? .fail(EPERM) : .proceed
        }
        _ = try? await FileStore(folder.path, system: calls.system).openPartial(key())
        #expect(try claims(folder).count == number + 2)
      }
      let survivor = try? await dying(after: last).openPartial(key())
      let next = FileStore(folder.path)
      try ageUnfinishedClaims(folder)
      if survivor != nil {
        await #expect { _ = try await next.openPartial(key()) } throws: { isInUse("this process")($0) }
        // It opened the partial with its last call, and lived.
        try survivor?.close()
      }
      let partial = try await next.openPartial(key())
      await #expect { _ = try await next.openPartial(key()) } throws: { isInUse("this process")($0) }
      #expect(try partial.read(at: 0, count: 10) == [1, 2, 3])
      try partial.close()
      try await next.removePartial(key())
      #expect(try await next.partials().isEmpty)
      #expect(try folder.tree().isEmpty, "dead after call \(last)")
      if survivor != nil, last > 40 { return }
    }
  }
}
