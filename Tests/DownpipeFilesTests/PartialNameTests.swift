import DownpipeCore
import DownpipePOSIX
import HangLimit
import Testing

@testable import DownpipeFiles

@Suite(.endsHangs)
struct PartialNameTests {
  static let ids: [String] = [
    "a", "A", "a.1", "a.1.part", "..", ".", "/", "\\", "a/b", "a+", "+", "%61", "%", "~", "film", "Film", "FILM", " ",
    "ä", "a\u{308}", "日本", "nul\u{0}", "nul", "line\nbreak", String(repeating: "x", count: 200),
    String(repeating: "x", count: 201), String(repeating: "x", count: 255), String(repeating: "/", count: 255),
    String(repeating: "Ä", count: 127),
  ]

  @Test func differentKeysHaveDifferentNamesOnEveryFileSystem() throws {
    var seen: [String: PartialKey] = [:]
    for id in Self.ids {
      for generation in [0, 1, 11, Int64.max, -1] {
        let key = PartialKey(id: DownloadID(id), generation: generation)
        let path = try PartialName.path(of: key)
        #expect(seen.updateValue(key, forKey: path.lowercased()) == nil, "\(id)")
        #expect(path == path.lowercased())
      }
    }
  }

  @Test(arguments: ids)
  func theKeyIsReadFromTheName(_ id: String) throws {
    let key = PartialKey(id: DownloadID(id), generation: .max)
    let path = try PartialName.path(of: key)
    #expect(PartialName.key(ofPath: path) == key)
    let parts = path.split(separator: "/", omittingEmptySubsequences: false)
    #expect(parts.count <= PartialName.maximumDepth + 1)
    for part in parts { #expect((1...255).contains(part.utf8.count) && part != "." && part != "..") }
  }

  @Test func commonIdsStayReadable() throws {
    #expect(try PartialName.path(of: PartialKey(id: "k3v0-x_9", generation: 12)) == "k3v0-x_9.12.part")
  }

  @Test(arguments: [
    "", "a", "a.part", "a.1", "a.x.part", "A.1.part", "%41.1.part", "%4.1.part", "%ff.1.part", "a.+1.part",
    "a.01.part", "b/a.1.part", ".1.part", "a+/b.1.part",
  ])
  func otherNamesHaveNoKey(_ name: String) {
    #expect((PartialName.key(ofPath: name) != nil) == (name == "%41.1.part"))
  }

  @Test(arguments: ["", String(repeating: "x", count: 256), String(repeating: "ä", count: 128)])
  func idsOutsideTheLimitAreRefused(_ id: String) {
    #expect {
      try PartialName.path(of: PartialKey(id: DownloadID(id), generation: 1))
    } throws: { ($0 as? DownloadError)?.code == .invalidRequest }
  }
}
