import DownpipePOSIX
import DownpipeTesting
import Foundation
import HangLimit
import Synchronization
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

@Suite(.endsHangs)
struct OpenFileTests {
  private let content = DownloadFixtures.pattern(size: 1000)

  private func isOpen(_ descriptor: CInt) -> Bool { fcntl(descriptor, F_GETFD) >= 0 }

  @Test func theLastReferenceClosesTheDescriptor() throws {
    let folder = try TemporaryFolder()
    let path = try folder.write(content, to: "file")
    let closed = Atomic(0)
    let system = FileSystem { call, _ in
      if call == .close { closed.add(1, ordering: .relaxed) }
      return .proceed
    }
    do {
      let file = try OpenFile(reading: path, system: system)
      #expect(isOpen(file.descriptor))
      #expect(try file.status().size == 1000)
    }
    #expect(closed.load(ordering: .relaxed) == 1)
    do {
      let file = try OpenFile(reading: path, system: system)
      try file.close()
      try file.close()
    }
    #expect(closed.load(ordering: .relaxed) == 2, "closing is done once")
  }

  @Test func closingReportsErrorsOnce() throws {
    let folder = try TemporaryFolder()
    let path = try folder.write(content, to: "file")
    let file = try OpenFile(reading: path, system: FileSystem { call, _ in call == .close ? .fail(EIO) : .proceed })
    #expect(throws: SystemError(EIO)) { try file.close() }
    try file.close()
  }

  /// Signals interrupt calls, and the system moves fewer bytes than requested.
  @Test func interruptedAndShortCallsContinue() throws {
    let folder = try TemporaryFolder()
    let calls = Atomic(0)
    let system = FileSystem { call, _ in
      guard call == .read || call == .write else { return .proceed }
      return calls.add(1, ordering: .relaxed).newValue.isMultiple(of: 2) ? .fail(EINTR) : .atMost(7)
    }
    let path = folder.path("file")
    let file = try OpenFile(Entry(path), O_RDWR | O_CREAT, system: system)
    try file.write(content.span.bytes, at: 0)
    #expect(try file.read(2000, at: 0) == content)
    #expect(calls.load(ordering: .relaxed) > 500)
    try file.close()
    #expect(try folder.read("file") == content)
  }

  @Test(arguments: [1, 300, 500, 1000, 4096])
  func blocksCoverTheFile(_ size: Int) throws {
    let folder = try TemporaryFolder()
    let file = try OpenFile(reading: try folder.write(content, to: "file"))
    for range in [0..<1000, 0..<Int64.max, 100..<999, 500..<500, 999..<2000] as [Range<Int64>] {
      var bytes: [UInt8] = []
      let count = try file.forEachBlock(of: size, in: range) { block, offset in
        #expect(offset == range.lowerBound + Int64(bytes.count) && block.byteCount <= size)
        block.withUnsafeBytes { bytes += $0 }
        return true
      }
      let expected = Array(content[Int(range.lowerBound)..<Int(min(1000, range.upperBound))])
      #expect(bytes == expected && count == Int64(expected.count))
    }
    var blocks = 0
    try file.forEachBlock(of: size) { _, _ in
      blocks += 1
      return false
    }
    #expect(blocks == 1)
  }

  @Test func aFIFOWithoutAWriterDoesNotBlock() throws {
    let folder = try TemporaryFolder()
    #expect(mkfifo(folder.path("fifo"), 0o600) == 0)
    #expect(try OpenFile(reading: folder.path("fifo")).status().kind == .other)
  }

  @Test func aLinkIsFollowedUnlessRefused() throws {
    let folder = try TemporaryFolder()
    let path = try folder.write(content, to: "file")
    try FileManager.default.createSymbolicLink(atPath: folder.path("link"), withDestinationPath: path)
    #expect(try OpenFile(reading: folder.path("link")).status().size == 1000)
    #expect(throws: SystemError.self) { try OpenFile(reading: folder.path("link"), followingLink: false) }
    #expect(try OpenFile.ifPresent(Entry(folder.path("missing")), O_RDONLY) == nil)
    // C would cut the path at the NUL and open the file.
    #expect(throws: SystemError(EINVAL)) { try OpenFile(reading: path + "\u{0}.txt") }
  }
}

@Suite(.endsHangs)
struct BlockingThreadsTests {
  @Test func resultsAndErrorsAreReturned() async throws {
    #expect(try await BlockingThreads.run { _ in 7 } == 7)
    await #expect(throws: SystemError(EIO)) { try await BlockingThreads.run { _ in throw SystemError(EIO) } }
  }

  /// More copies than Dispatch has threads for one priority. They run in a process of their own, since no other test
  /// could use these threads meanwhile.
  @Test func urgentWorkDoesNotWaitForOrdinaryWork() async {
    await #expect(processExitsWith: .success) {
      // The time limit of the suite does not end this process.
      DispatchQueue.global(qos: .userInteractive).asyncAfter(deadline: .now() + 300) { exit(EXIT_FAILURE) }
      let gate = DispatchSemaphore(value: 0)
      let begun = Watched(0)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<600 {
          group.addTask {
            begun.update { $0 += 1 }
            try await BlockingThreads.run { _ in
              gate.wait()
              gate.signal()
            }
          }
        }
        await begun.wait { $0 == 600 }
        #expect(try await BlockingThreads.run(.urgent) { _ in 7 } == 7)
        gate.signal()
        try await group.waitForAll()
      }
    }
  }

  @Test func cancellingTheTaskReachesTheWork() async throws {
    let hasStarted = Watched(false)
    let task = Task {
      try await BlockingThreads.run { cancellation in
        hasStarted.update { $0 = true }
        while !cancellation.isCancelled { sched_yield() }
        try cancellation.check()
      }
    }
    await hasStarted.wait { $0 }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
  }
}
