import DownpipeCore
import Foundation
import HangLimit
import Testing

@Suite(.endsHangs)
struct CompanionFileTests {
  @Test(arguments: [
    (".sha256", "https://a.test/x/film.mkv", "https://a.test/x/film.mkv.sha256"),
    (".sha256", "https://a.test/film.mkv?sig=1#part", "https://a.test/film.mkv.sha256"),
    ("SHA256SUMS", "https://a.test/x/film.mkv?x=/y", "https://a.test/x/SHA256SUMS"),
    ("SHA256SUMS", "https://u:p@a.test:8443/x/f%2Fg", "https://u:p@a.test:8443/x/SHA256SUMS"),
    ("sums for a?b#c%", "https://a.test/f", "https://a.test/sums%20for%20a%3Fb%23c%25"),
    ("grün", "https://a.test/f", "https://a.test/gr%C3%BCn"), (".sig", "file:///srv/f.iso", "file:///srv/f.iso.sig"),
    ("f", "https://a.test/f", "https://a.test/f"),
  ])
  func beside(_ name: String, _ download: String, _ expected: String) throws {
    let url = try #require(URL(string: download))
    #expect(try CompanionFile.beside(name).url(beside: url).absoluteString == expected)
  }

  @Test(arguments: ["", ".", "..", "../SUMS", "a/b", "a\\b", "a\nb", String(repeating: "a", count: 256)])
  func names(_ name: String) throws {
    let url = try #require(URL(string: "https://a.test/f"))
    let error = #expect(throws: DownloadError.self) { try CompanionFile.beside(name).url(beside: url) }
    #expect(error?.code == .invalidPipeline)
  }

  @Test(arguments: ["https://a.test", "https://a.test/", "https://a.test/x/", "data:,x", "https://a.test/?f"])
  func noFileName(_ text: String) throws {
    let url = try #require(URL(string: text))
    let error = #expect(throws: DownloadError.self) { try CompanionFile.beside(".sig").url(beside: url) }
    #expect(error?.code == .processing)
    #expect(CompanionFile.fileName(of: url) == nil)
  }

  @Test func others() throws {
    let url = try #require(URL(string: "https://u:p@b.test/s?token=secret"))
    let file = CompanionFile.at(url)
    #expect(try file.url(beside: #require(URL(string: "https://a.test/"))) == url)
    #expect(file.name == nil && CompanionFile.beside("x").name == "x")
    #expect(!file.description.contains("secret") && CompanionFile.beside("x").description == "x")
    #expect(CompanionFile.fileName(of: try #require(URL(string: "https://a.test/x/a%20b?c/d"))) == "a b")
    #expect(CompanionFile.fileName(of: try #require(URL(string: "https://a.test/%E9"))) == nil)
  }
}
