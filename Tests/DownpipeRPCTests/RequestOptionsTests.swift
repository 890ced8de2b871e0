import DownpipeCore
import Foundation
import HangLimit
import Testing

@testable import DownpipeRPC

@Suite(.endsHangs)
struct RequestOptionsTests {
  private let url = URL(string: "https://example.org/file")!

  private func applied(
    _ values: [String: String], root: String = "/srv/downloads"
  ) throws -> DownloadRequest {
    var request = DownloadRequest(url, id: "a")
    try RequestOptions(directory: root).apply(values, to: &request)
    return request
  }

  private func fields(_ values: [String: String]) throws -> [HeaderField] { try applied(values).headers.fields }

  /// The message of the refusal; `nil` if the options can be applied.
  private func refusal(_ values: [String: String], root: String = "/srv/downloads") -> String? {
    do {
      _ = try applied(values, root: root)
      return nil
    } catch { return (error as? RPCFailure)?.message ?? "another error: \(error)" }
  }

  // MARK: The folder

  @Test(
    arguments: [
      ("/srv/downloads", "/srv/downloads", nil), ("/srv/downloads", "/srv/downloads/", nil),
      ("/srv/downloads/", "/srv/downloads", nil), ("/srv/downloads", "/srv/downloads/.", nil),
      ("/srv/downloads", "/srv/downloads/films", "films"), ("/srv/downloads/", "/srv/downloads/films/", "films"),
      ("/srv/downloads", "/srv//downloads/./films//x/", "films/x"), ("/srv/downloads", "//srv/downloads/x", "x"),
      ("/srv/downloads", "films/x", "films/x"), ("/srv/downloads", "./films", "films"), ("/srv/downloads", ".", nil),
      ("/srv/downloads", "", nil), ("/srv/downloads", "...", "..."), ("/srv/downloads", "a..b", "a..b"),
      ("/", "/", nil), ("/", "/films", "films"), ("/", "/films/x", "films/x"), ("/", "films", "films"),
    ] as [(String, String, String?)])
  func foldersBelowTheRoot(root: String, dir: String, folder: String?) throws {
    #expect(try applied(["dir": dir], root: root).destination.directory == folder)
  }

  @Test func withoutAFolderItIsTheRoot() throws {
    let destination = try applied([:]).destination
    #expect(destination == DownloadRequest.Destination())
  }

  @Test(
    arguments: [
      ("/srv/downloads", "/"), ("/srv/downloads", "/srv"), ("/srv/downloads", "/etc"),
      ("/srv/downloads", "/srv/downloads2"), ("/srv/downloads", "/SRV/downloads"), ("/srv/downloads", ".."),
      ("/srv/downloads", "../downloads"), ("/srv/downloads", "a/../b"), ("/srv/downloads", "a/.."),
      ("/srv/downloads", "/srv/downloads/.."), ("/srv/downloads", "/srv/downloads/../downloads"),
      ("/srv/downloads", "/../srv/downloads"), ("/srv/downloads", "a\0b"), ("/srv/downloads", "/srv/downloads/\0"),
      ("/srv/downloads", ".downpipe"), ("/srv/downloads", "/srv/downloads/.downpipe"),
      ("/srv/downloads", "films/.DownPipe/x"), ("/", "/.."), ("/", "/.downpipe"), ("/", ".."),
    ])
  func foldersOutsideAreRefused(root: String, dir: String) throws {
    let message = try #require(refusal(["dir": dir], root: root))
    #expect(message.hasPrefix("The option 'dir' cannot be used: "))
  }

  /// A slash separates folders for the system also where a combining mark follows it, which makes one character of both.
  @Test(arguments: [
    "/\u{301}..", "/\u{301}../x", "/\u{301}etc", "/\u{301}/../x", "films/\u{301}../x", "films/../\u{301}x",
    "/srv/downloads/\u{301}..", "/srv/downloads/\u{301}/..", "/srv/downloads/../\u{301}", "..\u{301}", "\u{301}/..",
  ])
  func combiningMarksLeadNowhereElse(path: String) {
    for root in ["/srv/downloads", "/"] {
      for values in [["dir": path], ["out": path], ["out": path + "/name"]] {
        guard let destination = try? applied(values, root: root).destination else { continue }
        let folder = destination.directory ?? ""
        #expect(folder.unicodeScalars.first != "/")
        #expect(!folder.unicodeScalars.split(separator: "/").contains { String($0) == ".." })
        #expect(destination.name.map { $0.unicodeScalars.contains("/") || $0 == ".." || $0.isEmpty } != true)
      }
    }
  }

  // MARK: The name

  @Test(
    arguments: [
      (nil, "file.bin", nil, "file.bin"), (nil, "films/a.mkv", "films", "a.mkv"), (nil, "./a", nil, "a"),
      (nil, "a//b/./c", "a/b", "c"), ("films", "a", "films", "a"), ("films", "x/a", "films/x", "a"),
      ("/srv/downloads/films", "x/y/a", "films/x/y", "a"), (nil, "..a", nil, "..a"), ("films", "", "films", nil),
    ] as [(String?, String, String?, String?)])
  func names(dir: String?, out: String, folder: String?, name: String?) throws {
    var values = ["out": out]
    values["dir"] = dir
    let destination = try applied(values).destination
    #expect(destination.directory == folder)
    #expect(destination.name == name)
    #expect(destination.nameUse == .order)
  }

  @Test(arguments: [
    "/", "/a", "/srv/downloads/a", "..", "../a", "a/..", "a/../b", "a/../../b", ".", "./", "a\0b", ".downpipe",
    ".downpipe/ledger.sqlite", "films/.DOWNPIPE/x",
  ])
  func namesOutsideAreRefused(out: String) throws {
    let message = try #require(refusal(["out": out]))
    #expect(message.hasPrefix("The option 'out' cannot be used: "))
  }

  @Test func aPlaceIsKeptIfItIsNotAskedFor() throws {
    var request = DownloadRequest(url, id: "a")
    request.destination = DownloadRequest.Destination(directory: "films", name: "a.mkv")
    request.headers = ["Authorization": "Bearer of another program"]
    let before = request.destination
    let options = RequestOptions(directory: "/srv/downloads")
    try options.apply(["split": "3"], among: ["split": "3", "dir": "x", "out": "y", "referer": "z"], to: &request)
    #expect(request.destination == before)
    try options.apply(["out": "b"], among: ["out": "b"], to: &request)
    #expect(request.destination.directory == "films")
    #expect(request.destination.name == "b")
    try options.apply(["dir": "/srv/downloads/other"], among: [:], to: &request)
    #expect(request.destination.directory == "other")
    #expect(request.destination.name == "b")
    #expect(request.metadata[RequestOptions.folderKey] == "other")
    try options.apply(["out": "c/d"], among: ["out": "c/d"], to: &request)
    try options.apply(["out": "e"], among: ["out": "e"], to: &request)
    #expect(request.destination.directory == "other")
    #expect(request.headers["Authorization"] != nil)
    try options.apply(["referer": "z"], among: ["referer": "z"], to: &request)
    #expect(request.headers == ["Referer": "z"])
  }

  // MARK: Fields

  @Test func fieldsOfAllOptions() throws {
    let fields = try fields([
      "header": "A: b\nC:\t d\nEmpty:\n", "referer": "https://example.org/", "user-agent": "test/1",
      "http-user": "user", "http-passwd": "pass",
    ])
    #expect(
      fields == [
        HeaderField("A", "b"), HeaderField("C", "d"), HeaderField("Empty", ""),
        HeaderField("Referer", "https://example.org/"), HeaderField("User-Agent", "test/1"),
        HeaderField("Authorization", "Basic dXNlcjpwYXNz"),
      ])
  }

  @Test func aUserWithoutAPassword() throws {
    #expect(try fields(["http-user": "user"]) == [HeaderField("Authorization", "Basic dXNlcjo=")])
    #expect(try fields(["http-passwd": "pass"]) == [])
  }

  @Test func aFieldGoesBeforeTheOptionForIt() throws {
    let fields = try fields(["header": "user-agent: mine\nREFERER: here", "user-agent": "other", "referer": "there"])
    #expect(fields == [HeaderField("user-agent", "mine"), HeaderField("REFERER", "here")])
  }

  @Test(
    arguments: [
      ("header", "no colon"), ("header", "A b: c"), ("header", ": x"), ("header", "A\r\nB: c"),
      ("header", "A: b\r\nEvil: c"), ("header", "A: b\rEvil: c"), ("header", "A: b\0"), ("header", "A: b\u{7F}"),
      ("header", "A : b"), ("header", "A: b\nEvil"), ("referer", "x\r\nEvil: y"), ("referer", "x\nEvil: y"),
      ("referer", "x\ry"), ("referer", "x\0"), ("user-agent", "x\r\nEvil: y"), ("user-agent", "x\nEvil: y"),
      ("user-agent", "x\ry"), ("user-agent", "x\u{1B}[0m"),
    ])
  func fieldsThatWouldBreakARequestAreRefused(option: String, value: String) {
    #expect(refusal([option: value]) != nil)
  }

  @Test func usersCannotAddFields() throws {
    let fields = try fields(["http-user": "user\r\nEvil: x", "http-passwd": "pass\nEvil: y"])
    #expect(fields.map { $0.name } == ["Authorization"])
    #expect(fields.allSatisfy { $0.isValid })
  }

  @Test(arguments: [
    "Connection", "connection", "Keep-Alive", "Proxy-Connection", "TE", "Trailer", "Transfer-Encoding", "Upgrade",
    "HTTP2-Settings",
  ])
  func fieldsOfTheConnectionAreLeftOut(name: String) throws {
    #expect(try fields(["header": "\(name): x\nX-Kept: y\n"]) == [HeaderField("X-Kept", "y")])
  }

  @Test func withoutFieldsThoseOfTheRequestAreReplaced() throws {
    var request = DownloadRequest(url, id: "a")
    request.headers = ["A": "b"]
    try RequestOptions(directory: "/srv/downloads").apply([:], to: &request)
    #expect(request.headers.isEmpty)
  }

  // MARK: Digests

  @Test func aChecksum() throws {
    let hex = String(repeating: "0f", count: 32)
    let digests = try applied(["checksum": "sha-256=\(hex)"]).expectedDigests
    #expect(digests == [FileDigest(.sha256, bytes: Array(repeating: 0x0F, count: 32))])
    #expect(try applied([:]).expectedDigests == [])
  }

  @Test(arguments: ["", "sha-256", "sha-256=", "sha-256=0f", "sha-1=\(String(repeating: "zz", count: 20))", "crc9=00"])
  func checksumsThatCannotBeRead(checksum: String) throws {
    let message = try #require(refusal(["checksum": checksum]))
    #expect(message.hasPrefix("The option 'checksum' cannot be used: "))
  }

  // MARK: Values

  @Test func valuesAreChecked() throws {
    let values = try RequestOptions.values(of: [
      "split": "05", "max-download-limit": "1M", "header": ["A: b", "C: d"], "out": "name", "bt-tracker": "x",
      "nonsense": "x", "max-concurrent-downloads": "9", "timeout": .integer(9), "pause": .bool(true),
    ])
    #expect(values == ["split": "5", "max-download-limit": "1048576", "header": "A: b\nC: d\n", "out": "name"])
  }

  @Test func onlyWantedOptionsAreRead() throws {
    let values = try RequestOptions.values(of: ["split": "wrong", "max-concurrent-downloads": "9"]) { !$0.isOfRequest }
    #expect(values == ["max-concurrent-downloads": "9"])
  }

  @Test func aWrongValueIsRefused() {
    #expect(throws: RPCFailure("We encountered a problem while processing the option '--split'.")) {
      try RequestOptions.values(of: ["split": "0"])
    }
  }

  // MARK: What was given

  @Test(arguments: [
    ["split": "5"], ["out": "\"ü\u{2028}\n\\\0/"], ["header": "A: b\nC: d\n", "dir": "films", "user-agent": ""],
  ])
  func whatWasGivenIsKept(values: [String: String]) {
    var request = DownloadRequest(url, id: "a")
    request.metadata = ["other": "kept"]
    RequestOptions.give(values, to: &request, over: [:])
    #expect(RequestOptions.given(request) == values)
    #expect(request.metadata["other"] == "kept")
    RequestOptions.give(["referer": "x"], to: &request, over: [:])
    #expect(RequestOptions.given(request) == values.merging(["referer": "x"]) { $1 })
  }

  @Test(arguments: ["", "nonsense", "[]", "1", "{\"split\":5}"])
  func damagedMetadataCountsAsNone(text: String) {
    var request = DownloadRequest(url, id: "a")
    request.metadata[RequestOptions.metadataKey] = text
    #expect(RequestOptions.given(request) == [:])
  }
}
