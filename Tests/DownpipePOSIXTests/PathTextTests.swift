import DownpipeCore
import DownpipePOSIX
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@Suite(.endsHangs)
struct PathTextTests {
  @Test(arguments: [
    "", "/", "/etc", "a/", "/a", "a//b", ".", "./a", "a/.", "..", "../a", "a/..", "a/../b", "a\u{0}b",
    "a/" + String(repeating: "x", count: 256), Array(repeating: "abc", count: 1100).joined(separator: "/"),
  ])
  func unsafeFoldersAreRefused(_ directory: String) {
    #expect {
      try PathText.components(of: directory)
    } throws: { ($0 as? DownloadError)?.code == .unsafePath }
  }

  @Test(arguments: ["a", "a/b", "...", "a b/ä", "~", "-", "a\\b", String(repeating: "x", count: 255)])
  func safeFoldersAreTaken(_ directory: String) throws {
    #expect(try PathText.components(of: directory).joined(separator: "/") == directory)
  }

  @Test func pathsBecomeAbsolute() throws {
    let home = PathText.home
    let here = PathText.normalized(FileManager.default.currentDirectoryPath)
    #expect(PathText.absolute("~") == home)
    #expect(PathText.absolute("~/a//b/./c/") == home + "/a/b/c")
    #expect(PathText.absolute("a") == PathText.join(here, "a"))
    #expect(PathText.absolute("/") == "/")
    #expect(PathText.absolute("//a/") == "/a")
  }

  /// A deleted working directory has no path. Nothing may land in the root of the file system instead.
  @Test func withoutAWorkingDirectoryPathsStayRelative() {
    for (path, expected) in [("a", "a"), ("./a//b", "a/b"), ("none/../a", "none/../a"), ("/a", "/a")] {
      #expect(PathText.absolute(path, from: "") == expected)
    }
  }

  @Test(arguments: [
    ("/", "/"), ("/a", "/a"), ("/a/b.c/.d/..e/...", "/a/b.c/.d/..e/..."), ("/a/", "/a"), ("//a", "/a"),
    ("/a//b", "/a/b"), ("/a/./b", "/a/b"), ("/.", "/"), ("/a/.", "/a"), ("/./a", "/a"), ("/.a", "/.a"), ("/a.", "/a."),
    ("a//b", "a/b"),
    ("/a/../b", "/a/../b"), ("", ""),
  ])
  func pathsAreNormalized(_ path: String, _ expected: String) {
    #expect(PathText.normalized(path) == expected)
  }

  @Test func parentsOfLinksAreResolved() throws {
    let folder = try TemporaryFolder()
    try FileManager.default.createDirectory(atPath: folder.path("real/inner"), withIntermediateDirectories: true)
    try FileManager.default.createSymbolicLink(
      atPath: folder.path("link"), withDestinationPath: folder.path("real/inner"))
    let real = try #require(realpath(folder.path, nil))
    defer { free(real) }
    #expect(PathText.absolute(folder.path("link/../x")) == String(cString: real) + "/real/x")
  }

  @Test func remaindersAreWholeComponents() {
    #expect(PathText.remainder(of: "/a/b", below: "/a") == "b")
    #expect(PathText.remainder(of: "/ab", below: "/a") == nil)
    #expect(PathText.remainder(of: "/a", below: "/a") == nil)
    #expect(PathText.remainder(of: "/a", below: "/") == "a")
    #expect(PathText.split("/a/b").folder == "/a")
    #expect(PathText.split("/a").folder == "/")
  }
}
