import Dispatch
import DownpipeCore
import Foundation
import Synchronization

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// A finished file that was handed to a reply.
///
/// It is deleted once it has been read to its end or discarded. A storage may also move it away. When the last
/// reference goes and none of that has happened, it stays for the next opening.
final class InboxFile: Sendable {
  let path: String
  private let onRelease: @Sendable (_ isConsumed: Bool) -> Void
  private let isConsumed = Atomic(false)
  private let isCancelled = Atomic(false)
  private let isRead = Atomic(false)

  /// Chunks of the size that the storage writes well.
  static let chunkSize = 256 << 10

  init(_ path: String, onRelease: @escaping @Sendable (_ isConsumed: Bool) -> Void) {
    self.path = path
    self.onRelease = onRelease
  }

  deinit { onRelease(isConsumed.load(ordering: .acquiring)) }

  /// The file is not wanted any more: it goes when nobody holds it.
  func discard() {
    isConsumed.store(true, ordering: .releasing)
    isCancelled.store(true, ordering: .relaxed)
  }

  /// How many bytes it has.
  /// - Throws: ``DownloadError`` with `.storage` when it is gone.
  func size() throws(DownloadError) -> Int64 {
    var status = stat()
    guard lstat(path, &status) == 0 else { throw failure("found") }
    return Int64(status.st_size)
  }

  /// The file as the body of a reply.
  var body: Body {
    Body(file: path, discard: { self.discard() }, push: { try await self.push(to: $0) })
  }

  private func push(to sink: @escaping ChunkSink) async throws {
    guard !isRead.exchange(true, ordering: .relaxed), !isConsumed.load(ordering: .acquiring) else {
      throw DownloadError(.cancelled, "the reply was discarded or has been read already")
    }
    try await withTaskCancellationHandler {
      try Task.checkCancellation()
      try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
        // Files block, and so may a sink; the threads of Swift's concurrency must not.
        DispatchQueue.global().async { continuation.resume(with: Result { try self.pour(into: sink) }) }
      }
    } onCancel: {
      isCancelled.store(true, ordering: .relaxed)
    }
  }

  private func pour(into sink: ChunkSink) throws {
    let descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
    guard descriptor >= 0 else { throw failure("opened") }
    defer { close(descriptor) }
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.chunkSize, alignment: 16)
    defer { buffer.deallocate() }
    while true {
      if isCancelled.load(ordering: .relaxed) { throw CancellationError() }
      let count = Self.readBytes(descriptor, buffer)
      guard count >= 0 else { throw failure("read") }
      guard count > 0 else { break }
      try sink(RawSpan(_unsafeBytes: UnsafeRawBufferPointer(rebasing: buffer[..<count])))
    }
    isConsumed.store(true, ordering: .releasing)
  }

  private static func readBytes(_ descriptor: CInt, _ buffer: UnsafeMutableRawBufferPointer) -> Int {
    while true {
      let count = read(descriptor, buffer.baseAddress, buffer.count)
      if count >= 0 || errno != EINTR { return count }
    }
  }

  private func failure(_ action: String) -> DownloadError {
    DownloadError(
      [EMFILE, ENFILE].contains(errno) ? .tooManyOpenFiles : .storage,
      "the finished file \(path) cannot be \(action): \(String(cString: strerror(errno)))")
  }
}
