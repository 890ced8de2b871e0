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

@Suite(.endsHangs)
struct FilePartialTests {
  private func partial(
    _ folder: TemporaryFolder, _ system: FileSystem = .system, durability: Durability = .process
  ) async throws -> any Partial {
    try await FileStore(folder.path, durability: durability, system: system).openPartial(key(), isNew: false)
  }

  @Test func shortAndInterruptedCallsContinue() async throws {
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

  @Test func writesThatAcceptNoBytesFail() async throws {
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
  func aFullDiskKeepsTheReceivedBytes() async throws {
    let folder = try TemporaryFolder()
    let mount = try SmallMount(folder.path("small"))
    defer { mount.unmount() }
    let store = FileStore(mount.path)
    let partial = try await store.openPartial(key(), isNew: false)
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

  @Test func callsOnAClosedPartialFail() async throws {
    let folder = try TemporaryFolder()
    let partial = try await partial(folder, durability: .power)
    try partial.close()
    #expect(throws: DownloadError.self) { try partial.put([1], at: 0) }
    #expect(throws: DownloadError.self) { try partial.size() }
    #expect(throws: DownloadError.self) { try partial.adopt(folder.path) }
    await #expect(throws: DownloadError.self) { try await partial.synchronize() }
  }

  @Test func onlyPowerFlushesDataThenName() async throws {
    for durability in [Durability.process, .power] {
      let folder = try TemporaryFolder()
      let calls = Calls()
      let partial = try await partial(folder, calls.system, durability: durability)
      // An empty partial has nothing to flush.
      try await partial.synchronize()
      try partial.put([1], at: 0)
      let opened = calls.made.count
      try await partial.synchronize()
      try await partial.synchronize()
      // The data is flushed each time, the folder once.
      let flushes = calls.made[opened...].filter { $0 == .flush || $0 == .flushFolder }
      #expect(flushes == (durability == .power ? [.flush, .flushFolder, .flush] : []))
    }
  }

  @Test func anAdoptedFileBecomesThePartial() async throws {
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

  @Test(arguments: [0, 1, 65_535, 65_536, 65_537, 70_000])
  func marksAreOfTheLastBlock(_ end: Int64) async throws {
    let folder = try TemporaryFolder()
    let partial = try await partial(folder)
    try partial.put(someBytes, at: 0)
    let mark = try #require(try partial.mark(endingAt: end))
    #expect(mark.range == max(0, end - 65_536)..<end)
    #expect(mark.digest.algorithm == .crc32 && mark.digest.bytes.count == 4)
    #expect(try partial.matches(mark))
    // A changed bit is detected at both ends of the block, and ignored outside of it.
    for position in Set([mark.range.lowerBound, end - 1]) where mark.range.contains(position) {
      let byte = someBytes[Int(position)]
      try partial.put([byte ^ 1], at: position)
      #expect(try !partial.matches(mark))
      try partial.put([byte], at: position)
      #expect(try partial.matches(mark))
    }
    if mark.range.lowerBound > 0 {
      try partial.put([~someBytes[Int(mark.range.lowerBound - 1)]], at: mark.range.lowerBound - 1)
      #expect(try partial.matches(mark))
    }
    try partial.truncate(to: max(0, end - 1))
    #expect(try partial.matches(mark) == (end == 0))
    #expect(throws: DownloadError.self) { try partial.mark(endingAt: 70_001) }
  }

  @Test func hostileMarksDoNotMatch() async throws {
    let folder = try TemporaryFolder()
    let partial = try await partial(folder)
    try partial.put(someBytes, at: 0)
    let mark = try #require(try partial.mark(endingAt: 70_000))
    for range in [-5..<10, Int64.min / 2..<0, 0..<Int64.max, 69_999..<70_001, 0..<2 << 20] as [ByteRange] {
      #expect(try !partial.matches(BlockMark(range: range, digest: mark.digest)))
    }
    for bytes in [[], [0, 0, 0, 0], mark.digest.bytes + [0], mark.digest.bytes.reversed()] as [[UInt8]] {
      #expect(try !partial.matches(BlockMark(range: mark.range, digest: FileDigest(.crc32, bytes: bytes))))
    }
    #expect(try partial.mark(endingAt: -1)?.range == 0..<0)
    try partial.close()
    #expect(throws: DownloadError.self) { try partial.mark(endingAt: 1) }
    #expect(throws: DownloadError.self) { try partial.matches(mark) }
  }

  @Test func marksAreCRC32() async throws {
    let folder = try TemporaryFolder()
    let partial = try await partial(folder)
    try partial.put(Array("123456789".utf8), at: 0)
    // The check value of CRC-32/ISO-HDLC, as in the trailer of gzip (RFC 1952).
    #expect(try partial.mark(endingAt: 9)?.digest == FileDigest(.crc32, bytes: [0xCB, 0xF4, 0x39, 0x26]))
    #expect(try partial.mark(endingAt: 0)?.digest == FileDigest(.crc32, bytes: [0, 0, 0, 0]))
  }

  /// Earlier versions marked blocks with SHA-256.
  @Test func onlyMarksOfEarlierVersionsMatchWithoutACheck() async throws {
    let folder = try TemporaryFolder()
    let partial = try await partial(folder)
    try partial.put(someBytes, at: 0)
    func matches(_ algorithm: DigestAlgorithm, _ range: ByteRange) throws -> Bool {
      try partial.matches(BlockMark(range: range, digest: FileDigest(algorithm, bytes: [1, 2, 3])))
    }
    for range in [0..<65_536, 69_999..<70_001, 0..<(1 << 20), 5..<5] as [ByteRange] {
      #expect(try matches(.sha256, range), "\(range)")
      for algorithm in [.md5, DigestAlgorithm("blake3"), .crc32] { #expect(try !matches(algorithm, range)) }
    }
    // A damaged ledger can contain any range.
    for range in [-5..<10, 0..<(1 << 20) + 1, 0..<Int64.max] as [ByteRange] {
      for algorithm in [.sha256, .md5, DigestAlgorithm("blake3")] { #expect(try !matches(algorithm, range)) }
    }
  }

  @Test func copyingReadsInPieces() async throws {
    let folder = try TemporaryFolder()
    let bytes = DownloadFixtures.pattern(size: 3_000_000)
    let file = try folder.write(bytes, to: "file")
    let partial = try await partial(folder)
    #expect(try await partial.copy(file, count: 2_500_000) == 2_500_000)
    #expect(try partial.read(at: 0, count: .max) == Array(bytes[..<2_500_000]))
    #expect(try await partial.copy(file, count: -1) == 0)
    #expect(try partial.size() == 0)
    #expect(try folder.read("file") == bytes)
  }

  @Test func copyingAnythingButAFileFailsAndKeepsTheBytes() async throws {
    let folder = try TemporaryFolder()
    let partial = try await partial(folder)
    try partial.put([1], at: 0)
    let link = folder.path("link")
    try FileManager.default.createSymbolicLink(
      atPath: link, withDestinationPath: try folder.write(someBytes, to: "file"))
    let pipe = folder.path("pipe")
    mkfifo(pipe, 0o600)
    for path in [link, pipe, folder.path, folder.path("missing"), "/dev/zero"] {
      await #expect(throws: DownloadError.self) { try await partial.copy(path, count: 10) }
    }
    #expect(try partial.read(at: 0, count: 10) == [1])
  }

  @Test func aPartialCopiedIntoItselfIsTruncated() async throws {
    let folder = try TemporaryFolder()
    let partial = try await partial(folder)
    try partial.put(someBytes, at: 0)
    #expect(try await partial.copy(folder.path(".downpipe/partials/id.1.part"), count: 100) == 100)
    #expect(try partial.read(at: 0, count: .max) == Array(someBytes[..<100]))
  }

  @Test func copyingAFileThatShrinksEndsAtItsEnd() async throws {
    let folder = try TemporaryFolder()
    let file = try folder.write(DownloadFixtures.pattern(size: 3_000_000), to: "file")
    let reads = Atomic(0)
    let calls = Calls { _, call, _ in
      // Before the second block.
      if call == .read, reads.add(1, ordering: .relaxed).newValue == 2 { _ = truncate(file, 1_500_000) }
      return .proceed
    }
    let partial = try await partial(folder, calls.system)
    #expect(try await partial.copy(file, count: 3_000_000) == 1_500_000)
    #expect(try partial.size() == 1_500_000)
  }

  @Test func copyingCanBeCancelledAndFail() async throws {
    let folder = try TemporaryFolder()
    let file = try folder.write(someBytes, to: "file")
    let partial = try await partial(folder)
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await partial.copy(file, count: 70_000)
    }
    await #expect(throws: CancellationError.self) { try await task.value }
    try partial.close()
    await #expect(throws: DownloadError.self) { try await partial.copy(file, count: 1) }
    let full = try await FileStore(folder.path, system: Calls.failing([.write], with: ENOSPC)).openPartial(
      key(), isNew: false)
    await #expect {
      _ = try await full.copy(file, count: 10)
    } throws: {
      ($0 as? DownloadError)?.code == .noSpace
    }
  }

  // MARK: Other programs

  @Test(
    "a file that another program has cut is not written to: it would have zeros in front", arguments: [true, false])
  func cutByAnotherProgram(isNew: Bool) async throws {
    let folder = try TemporaryFolder()
    let partial = try await FileStore(folder.path).openPartial(key(), isNew: isNew)
    try partial.put(someBytes, at: 0)
    // With missing bytes before them, as the bytes of a second connection are.
    try partial.put(someBytes, at: 1 << 20)
    try partial.persist()
    let path = try #require(try partial.artifact(name: "a", mediaType: nil).path)
    #expect(truncate(path, 100) == 0)
    let isStorage: (any Error) -> Bool = { error in
      let error = error as? DownloadError
      return error?.code == .storage && error?.message.contains("another program has cut") == true
    }
    #expect { try partial.put([1], at: 200) } throws: { isStorage($0) }
    await #expect { try await partial.synchronize() } throws: { isStorage($0) }
    #expect(try partial.size() == 100)
    // Truncated by its owner, it is usable again.
    try partial.truncate(to: 0)
    try partial.put([1], at: 0)
    try partial.close()
  }

  @Test("a hard link in the place of a partial is not written through", arguments: [true, false])
  func aHardLink(isCut: Bool) async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path)
    let partial = try await store.openPartial(key(), isNew: false)
    try partial.put([1, 2, 3], at: 0)
    let path = try #require(try partial.artifact(name: "a", mediaType: nil).path)
    try partial.close()
    let other = try folder.write(Array("another file".utf8), to: "other")
    try FileManager.default.removeItem(atPath: path)
    try FileManager.default.linkItem(atPath: other, toPath: path)
    let linked = try await store.openPartial(key(), isNew: false)
    if isCut { try linked.truncate(to: 4) } else { try linked.put([9], at: 7) }
    #expect(try Data(contentsOf: URL(filePath: other)) == Data("another file".utf8))
    #expect(try linked.read(at: 0, count: 100) == Array((isCut ? "anot" : "another\tfile").utf8))
    try linked.close()
    #expect(try Data(contentsOf: URL(filePath: path)) == Data((isCut ? "anot" : "another\tfile").utf8))
    try await store.removePartial(key())
    #expect(FileManager.default.fileExists(atPath: other))
    #expect(try folder.tree().count == 1)
  }

  @Test("a process that ended between the two names of a published file: the partial is read, and published once")
  func bothNames() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path)
    let notes = Notes()
    let first = try await store.openPartial(key(), isNew: false)
    try first.put(someBytes, at: 0)
    try first.finish()
    let staged = try first.artifact(name: "file.bin", mediaType: nil)
    // A process that ends after the link makes no further call but closing.
    let isDead = Atomic(false)
    let dying = FileStore(
      folder.path,
      system: Calls { _, call, _ in
        if isDead.load(ordering: .relaxed), call != .close { return .fail(EIO) }
        if call == .link { isDead.store(true, ordering: .relaxed) }
        return .proceed
      }.system)
    _ = try? await dying.publish(staged, of: nil, at: .init(name: "file.bin"), in: context(notes: notes))
    try first.close()
    let path = try #require(staged.path)
    let names = try FileManager.default.attributesOfItem(atPath: path)[.referenceCount] as? Int
    #expect(names == 2)
    let again = try await store.openPartial(key(), isNew: false)
    #expect(try again.read(at: 0, count: someBytes.count) == someBytes)
    let published = try await store.publish(
      staged, of: again, at: .init(name: "file.bin"), in: context(prior: notes.last))
    try again.close()
    #expect(published.path == folder.path("file.bin"))
    #expect(try published.readBytes() == someBytes)
    #expect(!FileManager.default.fileExists(atPath: path))
  }
}
