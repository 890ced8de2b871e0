import Downpipe
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import ExpiringLinks

/// The example with small files and a test clock: a link delivers 300,000 bytes before it expires.
@Suite(.endsHangs)
struct ExpiringLinksTests {
  private static let film = ScriptedContent.pattern(size: 1_000_000, seed: 8)
  private static let speed = 100_000

  private let clock = TestTime()
  private var time: ServerTime { clock.serverTime }

  private func host(_ name: String, _ film: ScriptedContent = film, etag: String?, _ refusal: CDN.Refusal)
    async throws -> CDN
  {
    try await CDN.start(name, film: film, etag: etag, speed: Self.speed, refusal: refusal, time: time)
  }

  @Test("the film is byte-identical across hosts, and expired links lose no bytes", arguments: ["\"v1\"", nil])
  func acrossHosts(etag: String?) async throws {
    let folder = try TemporaryFolder()
    let east = try await host("east", etag: etag, .forbidden)
    let west = try await host("west", etag: etag, .logInPage)
    let links = LinkService(
      [
        .init(host: east, form: .stated, seconds: 3), .init(host: west, form: .hidden, seconds: 3),
        .init(host: east, form: .hidden, seconds: 3), .init(host: west, form: .hidden, seconds: 60),
      ], now: time.now)
    let status = try await FilmDownload.run(into: folder.path, links: links, time: time, watchedBy: clock)

    #expect(try folder.read("film.mkv") == Self.film.allBytes)
    #expect(await links.count == 4)
    #expect(clock.refreshes == 3)
    // Each link resumes where the last one expired. An entity tag of one host says nothing about another host: 64 KiB
    // are transferred again and compared.
    let overlap: Int64 = 65_536
    #expect(status.bytesFetched == 1_000_000 + 3 * overlap)
    let second = 300_000 - overlap
    let third = second + 300_000 - overlap
    let fourth = third + 300_000 - overlap
    // The first link states its expiry, so it is not requested again; the third is requested and answered with 403.
    #expect(east.server.requests.map { $0.range?.start } == [nil, third, fourth])
    // The second leads to the log-in page.
    #expect(west.server.requests.map(\.path) == ["/film.mkv", "/film.mkv", "/login", "/film.mkv"])
    #expect(west.server.requests.map { $0.range?.start } == [second, third, third, fourth])
    await east.server.shutdown()
    await west.server.shutdown()
  }

  @Test("a fresh link at the same host resumes, with and without an entity tag", arguments: ["\"v1\"", nil])
  func sameHost(etag: String?) async throws {
    let folder = try TemporaryFolder()
    let east = try await host("east", etag: etag, .forbidden)
    let links = LinkService(
      [.init(host: east, form: .stated, seconds: 3), .init(host: east, form: .hidden, seconds: 60)], now: time.now)
    let status = try await FilmDownload.run(into: folder.path, links: links, time: time, watchedBy: clock)
    #expect(try folder.read("film.mkv") == Self.film.allBytes)
    #expect(clock.refreshes == 1)
    #expect(status.bytesFetched == 1_000_000 + 65_536)
    await east.server.shutdown()
  }

  /// It counts as expired, and the next one leads to the film.
  @Test("a fresh link to another film is refused, and no bytes are mixed", arguments: ["\"v2\"", nil])
  func anotherFilm(etag: String?) async throws {
    let folder = try TemporaryFolder()
    let other = ScriptedContent.pattern(size: 1_000_000, seed: 9)
    let east = try await host("east", etag: etag == nil ? nil : "\"v1\"", .forbidden)
    let west = try await host("west", other, etag: etag, .forbidden)
    let links = LinkService(
      [.init(host: east, form: .stated, seconds: 3), .init(host: west, form: .hidden, seconds: 60)], now: time.now)
    _ = try await FilmDownload.run(into: folder.path, links: links, time: time, watchedBy: clock)
    #expect(try folder.read("film.mkv") == Self.film.allBytes)
    #expect(clock.refreshes > 1)
    await east.server.shutdown()
    await west.server.shutdown()
  }

  @Test("links that are issued expired do not cause endless attempts")
  func deadOnArrival() async throws {
    let folder = try TemporaryFolder()
    let east = try await host("east", etag: nil, .forbidden)
    let links = LinkService([.init(host: east, form: .hidden, seconds: 0)], now: time.now)
    await #expect(throws: DownloadError.self) {
      try await FilmDownload.run(into: folder.path, links: links, time: time, watchedBy: clock)
    }
    #expect(await links.count == 4)
    #expect(east.server.activity.requestCount == 4)
    await east.server.shutdown()
  }

  /// The file on the server changes with each request: bytes of an earlier download would be seen.
  @Test("delete and download again the same item many times, safely")
  func again() async throws {
    let folder = try TemporaryFolder()
    let gates = (1...20).map { _ in ServerGate() }
    let server = try await ScriptedHTTPServer.start { request in
      let film = ScriptedContent.pattern(size: 300_000, seed: UInt64(request.number))
      let reply = ScriptedReply.file(film, etag: "\"\(request.number)\"", for: request)
      return request.number > 20 ? reply : reply.held(at: gates[request.number - 1], after: 200_000)
    }
    let downloader = try await Downloader {
      HTTPSource()
      FileStore(folder.path)
    }
    let request = DownloadRequest(server.url("/film.mkv"), id: "film")
    for (number, gate) in gates.enumerated() {
      #expect(try await downloader.add(request).isNew)
      // At different moments: before and after bytes have been sent.
      if number % 2 == 0 { await gate.arrivals(1) } else { try await server.until { $0.requestCount == number + 1 } }
      #expect(try await downloader.remove("film"))
    }
    _ = try await downloader.add(request).value
    #expect(try folder.read("film.mkv") == ScriptedContent.pattern(size: 300_000, seed: 21).allBytes)
    #expect(server.requests.allSatisfy { $0.range == nil })
    await downloader.shutdown()
    for gate in gates { gate.open() }
    await server.shutdown()
  }

  @Test("a link with a changed expiry is invalid")
  func signature() {
    let signer = LinkSigner()
    let expiry = Date(timeIntervalSince1970: 1_769_860_800)
    for form in [LinkSigner.Form.stated, .hidden] {
      let link = signer.sign("/film.mkv", until: expiry, form)
      #expect(signer.expiry(of: link) == expiry)
      #expect(signer.expiry(of: link.replacingOccurrences(of: "1769860800", with: "1769860801")) == nil)
      #expect(signer.expiry(of: link.replacingOccurrences(of: "film", with: "song")) == nil)
      #expect(LinkSigner().expiry(of: link) == nil)
    }
  }
}
