#if LIBCURL
  import DownpipeChecksum
  import DownpipeCore
  import DownpipeFileTransfer
  import DownpipeFiles
  import DownpipeHTTP
  import DownpipeScheduling
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Synchronization
  import Testing

  /// Whole downloads: what lands on the disk when servers break off, change files and ignore ranges.
  @Suite("Downloads by FTP and SFTP", .endsHangs, .serialized)
  struct EngineTests {
    private static let size = 6_000_000
    private static let content = DownloadFixtures.pattern(size: size)
    private static let other = DownloadFixtures.pattern(size: size, seed: 2)

    /// Downloads a file into a new folder.
    private func download(
      _ url: URL, from source: FileTransferSource, connections: Segmented.Connections = 1, digest: FileDigest? = nil,
      _ observer: RecordingObserver = RecordingObserver()
    ) async throws -> [UInt8] {
      let folder = try TemporaryFolder()
      var options = DownloaderOptions()
      options.checkpoints = CheckpointPolicy(bytes: 256 << 10, interval: .seconds(1))
      let downloader = try await Downloader(options: options) {
        source
        HTTPSource { $0.proxy = .none }
        Segmented(connections: connections, minimumSize: 1)
        Limits(concurrent: 4, perHost: 8)
        Retry(.constant(.milliseconds(10), attempts: 6))
        FileStore(folder.path)
        VerifyChecksum()
        observer
      }
      return try await withCleanup {
        await downloader.shutdown()
      } _: {
        var request = DownloadRequest(url, id: "file")
        if let digest { request.expectedDigests = [digest] }
        let artifact = try await downloader.add(request).value
        return try artifact.readBytes()
      }
    }

    private func scripted(_ configure: (inout ScriptedFTPServer.Script) -> Void) throws -> ScriptedFTPServer {
      var script = ScriptedFTPServer.Script()
      script.content = Self.content
      configure(&script)
      return try ScriptedFTPServer(script)
    }

    private var plain: FileTransferSource {
      FileTransferSource {
        $0.proxy = .none
        $0.encryption = .none
      }
    }

    /// A server that breaks its first body off, and changes its script then.
    private func breaking(
      at count: Int, _ change: @escaping @Sendable (inout ScriptedFTPServer.Script) -> Void = { _ in },
      _ configure: (inout ScriptedFTPServer.Script) -> Void = { _ in }
    ) throws -> ScriptedFTPServer {
      let box = Mutex<ScriptedFTPServer?>(nil)
      let holder = Holder(box)
      let server = try scripted { script in
        script.pausesAfter = count
        script.breaksAtPause = true
        script.atPause = {
          holder.server.withLock { server in
            server?.change { script in
              script.pausesAfter = nil
              change(&script)
            }
            // Once, and no cycle of references is left.
            server = nil
          }
        }
        configure(&script)
      }
      holder.server.withLock { $0 = server }
      return server
    }

    private final class Holder: Sendable {
      let server: Mutex<ScriptedFTPServer?>
      init(_ server: consuming Mutex<ScriptedFTPServer?>) { self.server = server }
    }

    @Test("A download with a checksum", arguments: ServerKind.allCases)
    func checksum(_ kind: ServerKind) async throws {
      let server = try await kind.start()
      try server.add("file.bin", Array("abc".utf8))
      let digest = try #require(
        FileDigest(.sha256, hex: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"))
      let bytes = try await download(try server.url("file.bin"), from: server.source, digest: digest)
      #expect(bytes == Array("abc".utf8))
      try server.add("file.bin", Array("abd".utf8))
      await #expect(throws: DownloadError.self) {
        try await download(try server.url("file.bin"), from: server.source, digest: digest)
      }
    }

    @Test("A server that is killed in the middle", arguments: ServerKind.allCases)
    func killed(_ kind: ServerKind) async throws {
      let server = try await kind.start()
      let content = DownloadFixtures.pattern(size: 40_000_000)
      try server.add("file.bin", content)
      let observer = RecordingObserver()
      let killing = Task {
        await observer.wait { events in
          events.contains { if case .progress(let progress) = $0.kind { progress.received > 1_000_000 } else { false } }
        }
        server.server.killAll()
      }
      let isEqual = try await download(try server.url("file.bin"), from: server.source, observer) == content
      #expect(isEqual)
      await killing.value
    }

    @Test func aDownloadResumesBehindABreak() async throws {
      let server = try breaking(at: 3_000_000)
      defer { server.end() }
      let observer = RecordingObserver()
      let isEqual = try await download(try server.url(), from: plain, observer) == Self.content
      #expect(isEqual)
      #expect(server.commands.filter { $0.hasPrefix("REST") } == ["REST \(3_000_000 - 65_536)"])
      #expect(
        observer.events(of: "file").contains { if case .started(_, let from) = $0 { from == 3_000_000 } else { false } }
      )
    }

    /// Nothing of the old file is in the new one, which is taken only if a later time says so.
    @Test(
      "A file that changes during a break, with the same size", arguments: [true, false], [nil, "20251122110000", ""])
    func changed(_ hasNewTime: Bool, _ time: String?) async throws {
      let server = try breaking(
        at: 3_000_000,
        { script in
          script.content = Self.other
          if hasNewTime { script.replies["MDTM"] = "213 20210101000000\r\n" }
        },
        { script in
          if let time { script.replies["MDTM"] = time.isEmpty ? "500 unknown\r\n" : "213 \(time)\r\n" }
        })
      defer { server.end() }
      if hasNewTime, time == nil {
        let isEqual = try await download(try server.url(), from: plain) == Self.other
        #expect(isEqual)
      } else {
        let error = await #expect(throws: DownloadError.self) { try await download(try server.url(), from: plain) }
        #expect(error?.code == .contentChanged)
      }
    }

    @Test(
      "A file that becomes shorter or longer during a break, and has no later time, is refused",
      arguments: [2_000_000, 3_000_000, 7_000_000])
    func resized(_ size: Int) async throws {
      let content = DownloadFixtures.pattern(size: size, seed: 3)
      let server = try breaking(at: 3_000_000, { $0.content = content })
      defer { server.end() }
      let error = await #expect(throws: DownloadError.self) { try await download(try server.url(), from: plain) }
      #expect(error?.code == .contentChanged)
    }

    @Test("A server that accepts REST and ignores it", arguments: [1, 4] as [Segmented.Connections])
    func ignoredRest(_ connections: Segmented.Connections) async throws {
      let server = try breaking(at: 3_000_000, { _ in }, { $0.seeks = false })
      defer { server.end() }
      let isEqual = try await download(try server.url(), from: plain, connections: connections) == Self.content
      #expect(isEqual)
    }

    @Test("A server that refuses REST", arguments: [1, 4] as [Segmented.Connections])
    func refusedRest(_ connections: Segmented.Connections) async throws {
      let server = try breaking(at: 3_000_000, { _ in }, { $0.replies["REST"] = "502 unknown\r\n" })
      defer { server.end() }
      let isEqual = try await download(try server.url(), from: plain, connections: connections) == Self.content
      #expect(isEqual)
    }

    /// A truncated file would look complete.
    @Test func aSizeThatIsTooSmallPublishesNothing() async throws {
      let server = try scripted { $0.size = 5_000_000 }
      defer { server.end() }
      let error = await #expect(throws: DownloadError.self) { try await download(try server.url(), from: plain) }
      #expect(error?.code == .sizeChanged)
    }

    @Test("Several connections to one file", arguments: ServerKind.allCases)
    func segments(_ kind: ServerKind) async throws {
      let server = try await kind.start()
      let content = DownloadFixtures.pattern(size: 48_000_000)
      try server.add("file.bin", content)
      let observer = RecordingObserver()
      let isEqual =
        try await download(try server.url("file.bin"), from: server.source, connections: 4, observer) == content
      #expect(isEqual)
      #expect(server.server.connectionCount > 1)
    }

    @Test func redirectsFromHTTPAreRefused() async throws {
      let ftp = try scripted { _ in }
      defer { ftp.end() }
      let target = ftp.text()
      try await withScriptedServer { _ in
        ScriptedReply(302, ["Location": target])
      } _: { server in
        let error = await #expect(throws: DownloadError.self) { try await download(server.url("/file"), from: plain) }
        #expect(error?.code == .unsupportedURL)
      }
      #expect(ftp.commands.isEmpty)
    }
  }
#endif
