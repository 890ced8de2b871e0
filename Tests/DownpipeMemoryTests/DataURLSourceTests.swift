import DownpipeCore
import DownpipeFiles
import DownpipeMemory
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@Suite(.endsHangs)
struct DataURLSourceTests {
  private func open(_ text: String, range: RequestedRange? = nil) async throws -> SourceReply {
    let url = try #require(URL(string: text))
    #expect(DataURLSource().accepts(url))
    return try await DataURLSource().open(SourceRequest(url: url, range: range))
  }

  @Test("It keeps the contract of sources")
  func conforms() async throws {
    let content = DownloadFixtures.pattern(size: 40_000)
    let url = try #require(
      URL(string: "data:application/octet-stream;base64,\(Data(content).base64EncodedString())"))
    try await SourceConformance(DataURLSource(), url: url, content: content).run()
  }

  @Test(
    arguments: [
      ("data:,", "", "text/plain;charset=US-ASCII"),
      ("DATA:,A%20brief%20note", "A brief note", "text/plain;charset=US-ASCII"),
      ("data:text/html,%3Cp%3E,a#part", "<p>,a", "text/html"),
      ("data:;charset=utf-8,%C3%A4", "ä", "text/plain;charset=utf-8"),
      ("data:;base64,SGVsbG8", "Hello", "text/plain;charset=US-ASCII"),
      ("data:image/png;BASE64,SGVs%0AbG8%3D", "Hello", "image/png"), ("data:a/b;base64,", "", "a/b"),
      ("data:base64,SGVsbG8=", "SGVsbG8=", "base64"),
    ])
  func content(_ text: String, _ expected: String, _ type: String) async throws {
    let reply = try await open(text)
    #expect(String(decoding: try await reply.bytes(), as: UTF8.self) == expected)
    #expect(reply.mediaType == type && reply.length == .known(Int64(expected.utf8.count)))
    #expect(reply.coverage == .whole && reply.validator?.isStrong == true)
  }

  @Test(arguments: [
    "data:text/plain", "data:;base64,A", "data:;base64,A*==", "data:;base64,=AAA",
  ])
  func damaged(_ text: String) async throws {
    let url = try #require(URL(string: text, encodingInvalidCharacters: false))
    await #expect {
      try await DataURLSource().open(SourceRequest(url: url))
    } throws: { ($0 as? DownloadError)?.code == .unsupportedURL }
  }

  @Test func aDownloadOfADataURL() async throws {
    let downloader = try await Downloader {
      DataURLSource()
      MemoryStore()
    }
    let file = try await downloader.add("data:text/plain,hello").value
    #expect(try file.read(first: 100) == Array("hello".utf8))
    #expect(file.name == "data")
    await downloader.shutdown()
  }
}
