import ChildPipe
import Dispatch
import DownpipeTesting
import Foundation
import Synchronization
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

extension EndToEnd {
  /// The reader of the output does not read: a signal still ends the tool in good order.
  @Suite struct StuckOutputTests {
    enum Stuck: CaseIterable { case output, errors }

    /// A pipe of one page that is never read.
    private final class FullPipe: Sendable {
      let reader: Int32
      let writer: FileHandle

      init() throws {
        let pipe = try ChildPipe()
        writer = pipe.fileHandleForWriting
        reader = fcntl(pipe.fileHandleForReading.fileDescriptor, F_DUPFD_CLOEXEC, 0)
        #if canImport(Glibc)
          // F_SETPIPE_SZ; Swift does not import the constant of fcntl-linux.h.
          _ = fcntl(reader, 1031, 4096)
        #endif
      }

      deinit { close(reader) }

      /// Returns once there is no room for another line, of which none is longer than a kilobyte: the writer waits.
      func waitUntilFull() async {
        await withCheckedContinuation { continuation in
          Thread.detachNewThread { [reader] in
            var count: Int32 = 0
            while ioctl(reader, UInt(FIONREAD), &count) == 0, count <= 3 << 10 { usleep(1000) }
            continuation.resume()
          }
        }
      }
    }

    @Test(arguments: Stuck.allCases)
    func aSignalEndsTheTool(_ stuck: Stuck) async throws {
      let held = ServerGate()
      let content = ScriptedContent.pattern(size: 1 << 20)
      let server = try await ScriptedHTTPServer.start { request in
        .file(content, etag: "\"v1\"", for: request).held(at: held, after: 100_000)
      }
      let folder = try TemporaryFolder()
      let long = String(repeating: "x", count: 100)
      // Given when the transfer has begun: a full pipe may hold up what the tool has not begun.
      let list = try ChildPipe()
      let pipe = try FullPipe()
      let process = Process()
      process.executableURL = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
        .appending(path: "downpipe")
      process.arguments =
        ["get", "-i", "-", "-d", folder.path("out")] + (stuck == .output ? ["--json"] : ["-q"])
      process.standardInput = list.fileHandleForReading
      process.standardOutput = stuck == .output ? pipe.writer : FileHandle.nullDevice
      process.standardError = stuck == .errors ? pipe.writer : FileHandle.nullDevice
      let ending = AsyncStream<Int32>.makeStream()
      let isOver = Mutex(false)
      process.terminationHandler = { process in
        isOver.withLock { $0 = true }
        ending.continuation.yield(process.terminationStatus)
      }
      try process.run()
      let id = process.processIdentifier
      try list.fileHandleForWriting.write(contentsOf: Data("\(server.url("/film"))\n".utf8))
      try await server.until { $0.bytesSent >= 100_000 }
      let invalid = (0..<100).map { "http://\(long)[\($0)\n" }
      try list.fileHandleForWriting.write(contentsOf: Data(invalid.joined().utf8))
      await pipe.waitUntilFull()

      kill(id, SIGTERM)
      // A tool that waits for its reader would never end. How long it waits is tested with its writes.
      DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(Command.hangLimit)) {
        if isOver.withLock({ !$0 }) { kill(id, SIGKILL) }
      }
      var status: Int32?
      for await value in ending.stream {
        status = value
        break
      }
      #expect(status == 130)

      let listed = try await Command.downpipe(["list", "-d", folder.path("out"), "--json"]).run()
      #expect(listed.toolLines.map(\.state) == ["waiting"], "the transfer stopped in good order: \(listed.everything)")
      held.open()
      await server.shutdown()
    }
  }
}
