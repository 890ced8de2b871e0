import Foundation
import Testing

@testable import DownpipeTool

@Suite(.timeLimit(.minutes(1)))
struct OutputFileTests {
  private let pipe = Pipe()
  /// Never closed: a write that was given up goes on with the number, which must not become another file's.
  private let writer: Int32
  /// More than a pipe holds.
  private static let long = String(repeating: "x", count: 4 << 20)

  init() {
    // As the tool does: the write that fails tells.
    signal(SIGPIPE, SIG_IGN)
    writer = dup(pipe.fileHandleForWriting.fileDescriptor)
  }

  /// Runs what blocks on a thread of its own: the pool has one a core, and both ends of a pipe may wait.
  private func onThread<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
      Thread.detachNewThread { continuation.resume(with: Result { try work() }) }
    }
  }

  @Test("A write waits for its reader, and is complete")
  func complete() async throws {
    let output = OutputFile(descriptor: writer, patience: Patience())
    let reader = pipe.fileHandleForReading
    async let count = onThread {
      var count = 0
      while count < Self.long.utf8.count { count += reader.availableData.count }
      return count
    }
    try await onThread { try output.write(Self.long) }
    #expect(try await count == Self.long.utf8.count)
  }

  @Test("Once the process is to end, a write to a reader that has stopped is given up, and those that follow at once")
  func abandoned() async throws {
    let patience = Patience()
    let output = OutputFile(descriptor: writer, patience: patience)
    let start = ContinuousClock.now
    patience.limit(from: start - .seconds(1))
    await #expect(throws: OutputFile.Abandoned.self) { try await onThread { try output.write(Self.long) } }
    #expect(throws: OutputFile.Abandoned.self) { try output.write("x") }
    try pipe.fileHandleForReading.close()
  }

  @Test("A write that waits already is given up, too")
  func abandonedMeanwhile() async throws {
    let patience = Patience()
    let output = OutputFile(descriptor: writer, patience: patience)
    let write = Task { try await onThread { try output.write(Self.long) } }
    // Something is in the pipe: the write has begun.
    let reader = pipe.fileHandleForReading
    #expect(try await onThread { try reader.read(upToCount: 1) } == Data("x".utf8))
    patience.limit(from: .now)
    await #expect(throws: OutputFile.Abandoned.self) { try await write.value }
    try reader.close()
  }

  @Test("A reader that is gone is told apart")
  func gone() throws {
    try pipe.fileHandleForReading.close()
    let output = OutputFile(descriptor: writer, patience: Patience())
    #expect(throws: OutputFile.BrokenPipe.self) { try output.write("x") }
  }

  @Test("The first signal sets the end, and each write has some time")
  func patience() {
    let patience = Patience()
    let start = ContinuousClock.now
    #expect(patience.end(ofWriteBegunAt: start) == nil)
    patience.limit(from: start)
    patience.limit(from: start + .seconds(9))
    #expect(patience.end(ofWriteBegunAt: start) == start + Patience.grace)
    #expect(patience.end(ofWriteBegunAt: start + .seconds(9)) == start + .seconds(9) + Patience.least)
  }
}
