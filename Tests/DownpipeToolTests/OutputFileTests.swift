import ChildPipe
import Foundation
import HangLimit
import Testing

@testable import DownpipeTool

@Suite(.endsHangs)
struct OutputFileTests {
  private let pipe: ChildPipe
  /// Never closed: the thread of an abandoned write keeps using the number.
  private let writer: Int32
  /// More than a pipe takes.
  private static let long = String(repeating: "x", count: 4 << 20)

  init() throws {
    pipe = try ChildPipe()
    // As the tool does: the write reports a closed pipe.
    signal(SIGPIPE, SIG_IGN)
    writer = fcntl(pipe.fileHandleForWriting.fileDescriptor, F_DUPFD_CLOEXEC, 0)
  }

  /// Runs blocking work on a thread of its own: both ends of a pipe may wait, and the pool has one thread a core.
  private func onThread<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
      Thread.detachNewThread { continuation.resume(with: Result { try work() }) }
    }
  }

  @Test("A write waits for its reader and is complete")
  func complete() async throws {
    let output = OutputFile(descriptor: writer, deadline: WriteDeadline())
    let reader = pipe.fileHandleForReading
    async let count = onThread {
      var count = 0
      while count < Self.long.utf8.count { count += reader.availableData.count }
      return count
    }
    try await onThread { try output.write(Self.long) }
    #expect(try await count == Self.long.utf8.count)
  }

  @Test("After the deadline, a write without a reader is abandoned, and later writes fail at once")
  func abandoned() async throws {
    let deadline = WriteDeadline()
    let output = OutputFile(descriptor: writer, deadline: deadline)
    let start = ContinuousClock.now
    deadline.start(at: start - .seconds(1))
    await #expect(throws: OutputFile.Abandoned.self) { try await onThread { try output.write(Self.long) } }
    #expect(throws: OutputFile.Abandoned.self) { try output.write("x") }
    try pipe.fileHandleForReading.close()
  }

  @Test("The deadline ends a write that already waits")
  func abandonedMeanwhile() async throws {
    let deadline = WriteDeadline()
    let output = OutputFile(descriptor: writer, deadline: deadline)
    let write = Task { try await onThread { try output.write(Self.long) } }
    // Something is in the pipe: the write has begun.
    let reader = pipe.fileHandleForReading
    #expect(try await onThread { try reader.read(upToCount: 1) } == Data("x".utf8))
    deadline.start(at: .now)
    await #expect(throws: OutputFile.Abandoned.self) { try await write.value }
    try reader.close()
  }

  @Test("A closed pipe is an error of its own")
  func gone() throws {
    try pipe.fileHandleForReading.close()
    let output = OutputFile(descriptor: writer, deadline: WriteDeadline())
    #expect(throws: OutputFile.BrokenPipe.self) { try output.write("x") }
  }

  @Test("The first signal sets the deadline, and each write has some time")
  func deadline() {
    let deadline = WriteDeadline()
    let start = ContinuousClock.now
    #expect(deadline.end(ofWriteFrom: start) == nil)
    deadline.start(at: start)
    deadline.start(at: start + .seconds(9))
    #expect(deadline.end(ofWriteFrom: start) == start + WriteDeadline.grace)
    #expect(deadline.end(ofWriteFrom: start + .seconds(9)) == start + .seconds(9) + WriteDeadline.least)
    #expect(WriteDeadline.grace + WriteDeadline.least < .seconds(1), "the tool ends within a second of the signal")
  }
}
