import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeTool

@Suite(.endsHangs)
struct URLListTests {
  private let text =
    "\u{FEFF}http://a/1\n\n# a comment\n   \n  http://a/2  \r\n\t# another\nhttp://a/3#part\nhttp://a/4\rhttp://a/5\r\r# x\rhttp://a/6"

  @Test("Pieces of any size give the same lines", arguments: [1, 2, 3, 7, 1000])
  func pieces(_ size: Int) {
    var parser = URLListParser()
    var urls: [String] = []
    let bytes = Array(text.utf8)
    for start in stride(from: 0, to: bytes.count, by: size) {
      urls += parser.parse(bytes[start..<min(bytes.count, start + size)])
    }
    urls += parser.end()
    #expect(urls == (1...6).map { "http://a/\($0)\($0 == 3 ? "#part" : "")" })
    #expect(parser.end().isEmpty)
  }

  @Test("Octets that are not UTF-8 are requested as they are")
  func otherEncodings() {
    var parser = URLListParser()
    let lines = Array("http://a/caf".utf8) + [0xE9, 0x0A] + Array("http://a/café\n".utf8)
    #expect(parser.parse(lines) == ["http://a/caf%E9", "http://a/café"])
  }

  @Test("Tabs between URLs stay, for the mirrors of a file")
  func tabs() {
    var parser = URLListParser()
    #expect(
      parser.parse(Array("\thttp://a/1\thttp://b/1\t\r\nhttp://a/2\n".utf8)) == [
        "http://a/1\thttp://b/1", "http://a/2",
      ])
  }

  @Test("A line without an end does not grow without limit")
  func endless() {
    var parser = URLListParser()
    let piece = [UInt8](repeating: 0x61, count: 4096)
    for _ in 0..<1000 { #expect(parser.parse(piece).isEmpty) }
    #expect(parser.end().map(\.count) == [32 * 65_536])
    #expect(parser.parse(Array("http://a/1\n".utf8)) == ["http://a/1"])
  }

  @Test("A file is read to its end")
  func file() async throws {
    let path = FileManager.default.temporaryDirectory.appending(path: "urls-\(UUID().uuidString)").path()
    defer { try? FileManager.default.removeItem(atPath: path) }
    let lines = (0..<5000).map { "http://example.org/file-\($0).bin" }
    try Data(lines.joined(separator: "\n").utf8).write(to: URL(filePath: path))
    let list = try URLList(path)
    var urls: [String] = []
    while let more = try await list.next() { urls += more }
    #expect(urls == lines)
    #expect(try await list.next() == nil)
  }

  @Test("A file that cannot be read is an error of usage", arguments: ["/nowhere/list.txt", "/"])
  func unreadable(_ path: String) {
    #expect(throws: UsageError.self) { try URLList(path) }
  }
}
