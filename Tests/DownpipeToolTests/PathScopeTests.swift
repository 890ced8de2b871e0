import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeTool

@Suite(.endsHangs)
struct PathScopeTests {
  private let folder: TemporaryFolder
  private let scope: PathScope

  init() throws {
    folder = try TemporaryFolder()
    try folder.write([], to: "out/.downpipe/ledger")
    try folder.write([], to: "out/a/b")
    try folder.write([], to: "elsewhere/file")
    try FileManager.default.createSymbolicLink(
      atPath: folder.path("out/link"), withDestinationPath: folder.path("elsewhere"))
    try FileManager.default.createSymbolicLink(
      atPath: folder.path("out/dangling"), withDestinationPath: folder.path("nowhere"))
    scope = PathScope(directory: folder.path("out"), ledger: .file(folder.path("out/.downpipe/ledger")))
  }

  @Test(
    "Paths below the folder are inside",
    arguments: ["out/a", "out/a/b", "out/new/film", "out/link", "out/./a", "out/a/../a/b", "out/dangling"])
  func inside(_ path: String) { #expect(scope.contains(entry: folder.path(path))) }

  @Test(
    "Paths that leave the folder by “..” or a link are outside",
    arguments: [
      "elsewhere/file", "output/film", "out/link/file", "out/dangling/file", "out/../elsewhere/file", "out/a/..",
      "out/new/../../elsewhere/file", "out", "",
      // A slash and a combining mark are one character of a string, and two of the system.
      "out/../\u{301}x", "out/new/../../\u{301}x/file",
    ])
  func outside(_ path: String) { #expect(!scope.contains(entry: folder.path(path))) }

  @Test("A folder counts by what its links lead to")
  func folders() {
    #expect(scope.contains(folder: folder.path("out")) && scope.contains(folder: folder.path("out/new")))
    #expect(!scope.contains(folder: folder.path("out/link")) && !scope.contains(folder: folder.path("out/dangling")))
    #expect(!scope.contains(folder: "relative") && !scope.contains(folder: "/") && !scope.contains(folder: ""))
    #expect(PathScope.everywhere.contains(folder: "/") && PathScope.everywhere.contains(entry: "/etc/passwd"))
  }

  @Test("The folder of the ledger is inside, and so are folders of the command")
  func more() {
    let scope = PathScope(
      directory: folder.path("out"), ledger: .file(folder.path("elsewhere/ledger")), more: [folder.path("films")])
    for path in ["out/a", "elsewhere/file", "films/film"] { #expect(scope.contains(entry: folder.path(path))) }
    #expect(!scope.contains(entry: folder.path("more")))
  }

  @Test("A refusal names the option")
  func refusal() {
    let error = #expect(throws: DownloadError.self) { try scope.check(folder: "/etc") }
    #expect(error?.code == .unsafePath && error?.message.contains("--allow-outside") == true)
    #expect(throws: DownloadError.self) { try scope.check(entry: "/etc/passwd") }
  }
}
