import Downpipe
import DownpipeTesting
import Foundation
import Testing

extension EndToEnd {
  /// A transfer below the minimum speed fails and is retried. Server and sockets are real, time is virtual.
  @Suite(.serialized) struct MinimumSpeedTests {
    @Test func aTransferBelowTheMinimumSpeedIsRetried() async throws {
      let content = ScriptedContent.pattern(size: 300_000)
      let stopped = ServerGate()
      let trickle = ServerGate()
      defer {
        stopped.open()
        trickle.open()
      }
      let server = try await ScriptedHTTPServer.start { request in
        let reply = ScriptedReply.file(content, etag: "\"v1\"", for: request)
        guard request.number == 1 else { return reply }
        return ScriptedReply(
          [.head(200, ["Content-Length": "\(content.size)", "ETag": "\"v1\""]), .content(content, 0..<100)]
            + (100..<200).flatMap { [.hold(trickle), .content(content, $0..<$0 + 1)] } + [.hold(stopped)])
      }
      let folder = try TemporaryFolder()
      let time = VirtualTime()
      let downloader = try await Downloader(
        options: DownloaderOptions(
          time: time, minimumSpeed: MinimumSpeed(bytesPerSecond: 10, over: .seconds(60)))
      ) {
        HTTPSource()
        FileStore(folder.path("out"))
        SQLiteLedger(folder.path("ledger"))
      }
      let download = try await downloader.add(DownloadRequest(server.url("/film")))
      try await server.until { $0.bytesSent > 100 }
      trickle.open()
      // Each step takes as long as the next wait of the engine: windows, leases, the back-off before attempt two.
      while server.activity.requestCount < 2 { await time.advanceToNextSleeper() }
      let artifact = try await download.value
      let isIdentical = try [UInt8](Data(contentsOf: #require(artifact.url))) == content.allBytes
      #expect(isIdentical)
      #expect(server.requests.count == 2)
      let elapsed = time.now
      #expect(elapsed >= .seconds(60), "the download failed after \(elapsed)")
      await downloader.shutdown()
      await server.shutdown()
    }
  }
}
