import Downpipe
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import MetricsExample

/// The metrics as Prometheus reads them: over a socket.
@Suite(.endsHangs)
struct MetricsExampleTests {
  @Test func theEndpointShowsTheMetrics() async throws {
    let folder = try TemporaryFolder()
    defer { folder.close() }
    let origin = try await ScriptedHTTPServer.start { request in
      request.path == "/missing" ? .status(404) : ScriptedReply(200, body: .bytes([UInt8](repeating: 7, count: 3000)))
    }
    let server = try await DownloadServer(folder: folder.path, port: 0)
    for path in ["/a", "/b", "/missing"] { try await server.downloader.add(origin.url(path)) }
    try await server.downloader.waitUntilIdle()
    // The observer has read all events when the downloader has ended; the endpoint is still there.
    await server.downloader.shutdown()

    let text = try await fetch("/metrics", from: server)
    let lines = text.split(separator: "\n").map(String.init)
    let host = "127.0.0.1:\(origin.port)"
    for line in [
      "# TYPE downpipe_downloads gauge", "downpipe_downloads{state=\"finished\"} 2.0",
      "downpipe_downloads{state=\"failed\"} 1.0", "downpipe_downloads{state=\"waiting\"} 0.0",
      "# TYPE downpipe_received_bytes_total counter", "downpipe_received_bytes_total{host=\"\(host)\"} 6000",
      "downpipe_attempts_total{host=\"\(host)\"} 3",
      "downpipe_failures_total{code=\"httpStatus\",status=\"404\",host=\"\(host)\"} 1",
      "downpipe_ended_total{result=\"finished\",host=\"\(host)\"} 2",
      "# TYPE downpipe_latency_seconds histogram", "downpipe_latency_seconds_count{host=\"\(host)\"} 2",
      "downpipe_latency_seconds_bucket{host=\"\(host)\",le=\"+Inf\"} 2",
    ] {
      #expect(lines.contains(line), "\(line) is missing in\n\(text)")
    }
    // Each line is a comment or a sample of the format's grammar.
    for line in lines {
      #expect(
        line.wholeMatch(of: /# TYPE \w+ (counter|gauge|histogram)|\w+(\{\w+="[^"]*"(,\w+="[^"]*")*\})? \S+/) != nil)
    }
    await server.shutdown()
    await origin.shutdown()
  }

  @Test func otherPathsAreNotFound() async throws {
    let folder = try TemporaryFolder()
    defer { folder.close() }
    let server = try await DownloadServer(folder: folder.path, port: 0)
    await #expect(throws: DownloadError.self) { try await fetch("/", from: server) }
    await server.shutdown()
  }

  private func fetch(_ path: String, from server: DownloadServer) async throws -> String {
    let client = try await Downloader {
      HTTPSource()
      MemoryStore()
    }
    do {
      let file = try await client.add("http://127.0.0.1:\(server.port)\(path)").value
      await client.shutdown()
      return String(decoding: try file.read(first: 1 << 20), as: UTF8.self)
    } catch {
      await client.shutdown()
      throw error
    }
  }
}
