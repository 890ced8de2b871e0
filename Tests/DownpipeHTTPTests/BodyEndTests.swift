#if LIBCURL
  import DownpipeCore
  import DownpipeHTTP
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Testing

  /// What libcurl tells of a body only at its end, over real sockets.
  @Suite(.endsHangs)
  struct BodyEndTests {
    // MARK: Trailers

    private static let digest = FileDigest(.sha256, bytes: Array(0..<32))
    private static let field = "sha-256=:\(Data(digest.bytes).base64EncodedString()):"

    /// The end of a chunked body of one of three sizes: with its head, held, and pushed.
    private func end(of size: Int, _ trailer: String, from tested: TestedSource = .curl) async throws -> Body.End {
      let body = String(repeating: "x", count: size)
      let chunk = size > 0 ? "\(String(size, radix: 16))\r\n\(body)\r\n" : ""
      return try await withScriptedServer { _ in
        ScriptedReply([
          .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), .send("\(chunk)0\r\n\(trailer)\r\n"),
        ])
      } _: { server in
        try await withRunning(tested.source()) { source in
          let collector = Collector()
          let end = try await source.open(SourceRequest(url: server.url())).body.forEachChunk { collector.append($0) }
          #expect(collector.bytes.count == size)
          return end
        }
      }
    }

    @Test("a Repr-Digest in a trailer is reported", arguments: [0, 10, 100_000, 1_000_000])
    func reprDigest(size: Int) async throws {
      #expect(try await end(of: size, "Repr-Digest: \(Self.field)\r\n") == Body.End(digests: [Self.digest]))
      #expect(try await end(of: size, "X-A: 1\r\nCONTENT-digest:\(Self.field)\r\n").digests == [Self.digest])
    }

    @Test(
      "other trailers say nothing",
      arguments: ["", "ETag: \"1\"\r\n", "Repr-Digest: sha-256=:AAAA:\r\n", "x-amz-checksum-sha256: AAAA\r\n"])
    func otherTrailers(trailer: String) async throws {
      #expect(try await end(of: 10, trailer) == Body.End())
    }

    @Test("a digest of the header is not one of the trailer")
    func header() async throws {
      try await withScriptedServer { _ in
        ScriptedReply([
          .send("HTTP/1.1 200 OK\r\nRepr-Digest: \(Self.field)\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
        ])
      } _: { server in
        try await withRunning { source in
          let reply = try await source.open(SourceRequest(url: server.url()))
          #expect(reply.digests == [Self.digest])
          #expect(try await reply.body.forEachChunk { _ in } == Body.End())
        }
      }
    }

    // MARK: Ends of TLS

    private func end(_ answer: TLSServer.Answer) async throws -> Body.End {
      let server = try await TLSServer.start(answer)
      defer { server.stop() }
      return try await withRunning(TestedSource.curl.trustingSource) { source in
        let collector = Collector()
        let end = try await source.open(SourceRequest(url: server.url)).body.forEachChunk { collector.append($0) }
        let isWhole = collector.bytes == Array(TLSServer.content.prefix(answer.count))
        #expect(isWhole)
        return end
      }
    }

    @Test(
      "a body that ends with its connection is confirmed by the closure alert only",
      arguments: [0, 10, 300_000], ["TLSv1_2", "TLSv1_3"])
    func closed(size: Int, version: String) async throws {
      let cut = TLSServer.Answer(count: size, sendsAlert: false, version: version)
      #expect(try await end(cut) == Body.End(isUnconfirmed: true))
      let whole = TLSServer.Answer(count: size, sendsAlert: true, version: version)
      #expect(try await end(whole) == Body.End())
    }

    @Test("a body with a length or with chunks needs no alert", arguments: [true, false])
    func framed(sendsAlert: Bool) async throws {
      let answers = [
        TLSServer.Answer(
          head: "HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n", count: 300_000, sendsAlert: sendsAlert),
        TLSServer.Answer(
          head: "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 10\r\n\r\n", count: 10, sendsAlert: sendsAlert),
        TLSServer.Answer(
          head: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n186a0\r\n", count: 100_000,
          after: "\r\n0\r\n\r\n", sendsAlert: sendsAlert),
      ]
      for answer in answers {
        let server = try await TLSServer.start(answer)
        defer { server.stop() }
        try await withRunning(TestedSource.curl.trustingSource) { source in
          let end = try await source.open(SourceRequest(url: server.url)).body.forEachChunk { _ in }
          #expect(end == Body.End())
        }
      }
    }

    @Test("without TLS there is no alert")
    func plain() async throws {
      try await withScriptedServer { _ in
        ScriptedReply([.send("HTTP/1.1 200 OK\r\n\r\nhello"), .close])
      } _: { server in
        try await withRunning { source in
          let end = try await source.open(SourceRequest(url: server.url())).body.forEachChunk { _ in }
          #expect(end == Body.End())
        }
      }
    }

    // MARK: Downloads

    private func download(_ answers: (TLSServer.Answer, TLSServer.Answer)) async throws -> (
      bytes: [UInt8]?, notices: [DownloadError.Code]
    ) {
      let server = try await TLSServer.start(answers.0, answers.1)
      defer { server.stop() }
      var configuration = HTTPSource.Configuration()
      configuration.trust(TestCertificate.certificate)
      let (storage, observer) = (FakeStorage(), RecordingObserver())
      let downloader = try await Downloader {
        HTTPSource(configuration)
        FakeRetryPolicy { _ in .resume(after: .zero) }
        storage
        observer
      }
      let artifact = try await downloader.add(DownloadRequest(server.url, id: "a")).value
      await downloader.shutdown()
      let notices = observer.events(of: "a").compactMap { event -> DownloadError.Code? in
        switch event {
        case .refused(let error), .attemptFailed(let error): error.code
        default: nil
        }
      }
      return (storage.bytes(of: artifact), notices)
    }

    @Test("a body that was cut over TLS is not published", arguments: [10, 100_000])
    func cutDownload(count: Int) async throws {
      let result = try await download(
        (.init(count: count, sendsAlert: false), .init(count: 300_000, sendsAlert: true)))
      let isWhole = result.bytes == TLSServer.content
      #expect(isWhole)
      #expect(result.notices.first == .lengthMismatch && !result.notices.contains(.unconfirmedEnd))
    }

    @Test("the same bytes twice are the file of a server that never sends the alert")
    func comparedDownload() async throws {
      let answer = TLSServer.Answer(count: 300_000, sendsAlert: false)
      let result = try await download((answer, answer))
      let isWhole = result.bytes == TLSServer.content
      #expect(isWhole)
      #expect(result.notices == [.comparedEnd])
    }
  }
#endif
