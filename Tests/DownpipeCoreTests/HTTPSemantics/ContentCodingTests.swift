import DownpipeCore
import Foundation
import HangLimit
import Testing

/// Whether the coded bytes are the file.
@Suite(.endsHangs)
struct ContentCodingTests {
  struct Case: Sendable, CustomTestStringConvertible {
    var coding: String
    var name: String?
    var type: String?
    /// The codings to remove, the outermost first.
    var removed: [String]
    init(_ coding: String, _ name: String?, _ type: String?, _ removed: [String]) {
      (self.coding, self.name, self.type, self.removed) = (coding, name, type, removed)
    }
    var testDescription: String { "\(coding) \(name ?? "-") \(type ?? "-")" }
  }

  static let cases: [Case] = [
    // The coding is only for the way.
    Case("gzip", "a.csv", "text/csv", ["gzip"]), Case("x-gzip", "a.tar", "application/x-tar", ["gzip"]),
    Case("GZip", "page", "text/html; charset=utf-8", ["gzip"]), Case("gzip", nil, nil, ["gzip"]),
    Case("deflate", "a.txt", nil, ["deflate"]), Case("br", "a.js", "text/javascript", ["br"]),
    Case("zstd", "a.json", "application/json", ["zstd"]), Case("foo", "a.foo", nil, ["foo"]),
    Case("gzip", "gz", nil, ["gzip"]), Case("gzip", ".gz", nil, ["gzip"]), Case("gzip", "a.gz.csv", nil, ["gzip"]),
    // Mini_httpd and Twisted: a coded archive, with the type of the archive or without one.
    Case("gzip", "a.tar.gz", "application/x-tar", []), Case("gzip", "a.tgz", "application/octet-stream", []),
    Case("x-gzip", "A.TAR.GZ", nil, []), Case("gzip", "picture.svgz", "image/svg+xml", []),
    Case("x-compress", "a.tar.Z", "application/x-tar", []), Case("br", "a.js.br", nil, []),
    Case("zstd", "a.tar.zst", nil, []), Case("x-bzip2", "a.tar.bz2", nil, []), Case("xz", "a.txz", nil, []),
    // Apache: the type says so, the name may not.
    Case("gzip", "download", "application/x-gzip", []), Case("gzip", "download", "Application/GZip ; x=y", []),
    Case("gzip", "download", "application/x-tgz", []), Case("zstd", nil, "application/zstd", []),
    Case("gzip", nil, "application/vnd.example+gzip", []), Case("compress", nil, "application/x-compress", []),
    // Another coding than the file's own is only for the way.
    Case("gzip", "a.tar.zst", "application/zstd", ["gzip"]), Case("br", "a.tar.gz", "application/gzip", ["br"]),
    Case("gzip", "a.zip", "application/zip", ["gzip"]),
    // The last coding is the outermost; the file's own one is the innermost.
    Case("gzip, br", "a.csv", nil, ["br", "gzip"]), Case("gzip, br", "a.tar.gz", nil, ["br"]),
    Case("identity, gzip", "a", nil, ["gzip"]), Case("gzip, gzip", "a.gz", nil, ["gzip"]),
  ]

  @Test(arguments: cases)
  func codingsToRemove(_ item: Case) throws {
    let coding = try #require(ContentCoding(item.coding))
    #expect(coding.toRemove(names: [nil, item.name], mediaType: item.type) == item.removed)
  }

  @Test(arguments: [nil, "", "identity", " , ", "decoded-gzip"])
  func noCoding(_ text: String?) {
    #expect(ContentCoding(text) == nil)
  }
}
