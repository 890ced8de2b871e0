import DownpipeChecksum
import DownpipeCore
import DownpipeMetalink
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// Requests for the files of a document.
@Suite(.endsHangs)
struct MetalinkRequestsTests {
  private func document(_ files: String) throws -> MetalinkDocument {
    try MetalinkDocument(parsing: Array(MetalinkDocumentTests.version4(files).utf8))
  }

  private let urls = """
    <url priority="3">http://plain.test/f</url><url priority="1">ftp://ftp.test/f</url>
    <url priority="2">https://u:p@secret.test/f</url><url priority="4">https://b.test/f</url>
    <url priority="4">https://c.test/f</url><url priority="5">https://b.test/f</url>
    """

  @Test func parts() throws {
    let hash = "<hash type=\"sha-256\">\(MetalinkDocumentTests.sha256)</hash>"
    let document = try document("<file name=\"a/b/c: d.iso\"><size>12</size>\(hash)\(urls)</file>")
    let requests = try document.requests(in: "iso") { request, file in
      #expect(file.size == 12)
      request.tags = ["x"]
    }
    let request = try #require(requests.first)
    #expect(requests.count == 1)
    #expect(request.url.absoluteString == "http://plain.test/f")
    #expect(request.mirrors.map(\.absoluteString) == ["https://b.test/f", "https://c.test/f"])
    #expect(request.expectedSize == .known(12) && request.tags == ["x"] && request.headers.isEmpty)
    #expect(request.expectedDigests.map(\.hex) == [MetalinkDocumentTests.sha256])
    #expect(request.destination == .init(directory: "iso/a/b", name: "c- d.iso"))
    #expect(request.isNamedByServer)
  }

  @Test("the strongest digests of pieces are used")
  func pieces() throws {
    func list(_ type: String, _ hash: String, _ count: Int) -> String {
      "<pieces length=\"10\" type=\"\(type)\">" + String(repeating: "<hash>\(hash)</hash>", count: count) + "</pieces>"
    }
    let (strong, weak) = (MetalinkDocumentTests.sha256, MetalinkDocumentTests.sha1)
    for (text, algorithm) in [
      (list("sha-1", weak, 2) + list("sha-256", strong, 2), DigestAlgorithm.sha256),
      (list("sha-1", weak, 2) + list("odd", strong, 3), .sha1), ("", nil),
    ] {
      let request = try document("<file name=\"a\"><size>12</size>\(text)\(urls)</file>").requests().first
      #expect(request?.pieces?.algorithm == algorithm)
      #expect(request?.pieces.map { $0.length == 10 && $0.count == 2 } ?? true)
    }
  }

  @Test("a document from https leaves it for http only where a digest proves the bytes")
  func insecureURLs() throws {
    let secure = try #require(URL(string: "https://example.org/a.meta4"))
    let plain = try #require(URL(string: "http://example.org/a.meta4"))
    let hash = "<hash type=\"sha-256\">\(MetalinkDocumentTests.sha256)</hash>"
    let weak = "<hash type=\"sha-1\">\(MetalinkDocumentTests.sha1)</hash>"
    for (digest, from, first) in [
      (hash, secure, "plain.test"), (weak, secure, "b.test"), ("", secure, "b.test"), ("", plain, "plain.test"),
    ] {
      let request = try document("<file name=\"a\">\(digest)\(urls)</file>").requests(from: from).first
      #expect(request?.url.host() == first)
    }
  }

  @Test func noUsableURL() throws {
    let document = try document("<file name=\"a\"><url>ftp://a.test/f</url></file>")
    let error = #expect(throws: DownloadError.self) { try document.requests() }
    #expect(error?.code == .invalidMetalink)
    #expect(try document.requests(accepting: { $0.scheme == "ftp" }).count == 1)
    // Nothing is left of it.
    #expect(throws: DownloadError.self) { try document.requests(skipping: { _ in }) }
    let more = try self.document(
      "<file name=\"a\"><url>ftp://a.test/f</url></file><file name=\"b\"><url>http://a.test/f</url></file>")
    var skipped: [String?] = []
    #expect(try more.requests(skipping: { skipped.append($0.name) }).map(\.destination.name) == ["b"])
    #expect(skipped == ["a"])
  }

  @Test("a file that is left out is an error, unless the caller takes it")
  func leftOut() throws {
    let document = try document(
      "<file name=\"a\"><hash>00</hash>\(urls)</file><file name=\"b\">\(urls)</file><file name=\"../c\">\(urls)</file>")
    let error = #expect(throws: DownloadError.self) { try document.requests() }
    #expect(error?.code == .invalidMetalink && error?.message.contains("“a”") == true)
    var skipped: [String?] = []
    #expect(try document.requests(skipping: { skipped.append($0.name) }).map(\.destination.name) == ["b"])
    #expect(skipped == ["a", "../c"])
    let empty = #expect(throws: DownloadError.self) { try self.document("").requests(skipping: { _ in }) }
    #expect(empty?.code == .invalidMetalink)
  }

  @Test func namesThatHide() throws {
    let document = try document("<file name=\".hidden/.downpipe/con\"><url>http://a.test/f</url></file>")
    let destination = try #require(try document.requests().first).destination
    #expect(destination == .init(directory: "hidden/downpipe", name: "_con"))
  }

  @Test("a file is downloaded from the next mirror when the best one has another")
  func download() async throws {
    let bytes = DownloadFixtures.pattern(size: 100_000)
    var computation = try DigestComputation(.sha256)
    computation.update(bytes.span.bytes)
    let document = try document(
      """
      <file name="x/film.mkv"><size>\(bytes.count)</size><hash type="sha-256">\(computation.finalize().hex)</hash>
      <url priority="1">https://a.test/f</url><url priority="2">https://b.test/f</url></file>
      """)
    let (a, b) = (try #require(URL(string: "https://a.test/f")), try #require(URL(string: "https://b.test/f")))
    let source = FakeSource([a: [.init(bytes.reversed())], b: [.init(bytes)]])
    let storage = FakeStorage()
    let downloader = try await Downloader(options: DownloaderOptions(time: VirtualTime())) {
      source
      storage
      VerifyChecksum()
    }
    for request in try document.requests() {
      let artifact = try await downloader.add(request).value
      #expect(storage.bytes(of: artifact) == bytes && artifact.name == "film.mkv")
    }
    #expect(source.requests.map(\.url) == [a, b])
    await downloader.shutdown()
  }
}
