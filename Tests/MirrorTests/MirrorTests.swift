import Downpipe
import DownpipeDigest
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import Mirror

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// A folder follows the manifest of a server, through changes, removals and kills.
@Suite(.endsHangs)
struct MirrorTests {
  private let folder: TemporaryFolder
  private let manifest = URL(string: "https://example.org/pub/SHA256SUMS")!

  init() throws { folder = try TemporaryFolder() }

  /// The files of the server, by path.
  private typealias Files = [String: String]

  private static func files(_ count: Int) -> Files {
    Dictionary(uniqueKeysWithValues: (0..<count).map { ("part \($0 % 30)/file \($0).txt", "content \($0)") })
  }

  private static func sums(_ files: Files) -> String {
    files.sorted { $0.key < $1.key }.map { path, content in
      "\(FileDigest(.sha256, bytes: sha256(Array(content.utf8))).hex)  \(path)\n"
    }.joined()
  }

  private func serve(_ files: Files, from source: FakeSource) {
    source.script(manifest, .init(Array(Self.sums(files).utf8)))
    for (path, content) in files { source.script(url(path), .init(Array(content.utf8))) }
  }

  private func url(_ path: String) -> URL {
    path.split(separator: "/").reduce(manifest.deletingLastPathComponent()) { $0.appending(component: String($1)) }
  }

  /// The files in the folder, by path.
  private func found() throws -> Files {
    var found: Files = [:]
    for path in try FileManager.default.subpathsOfDirectory(atPath: folder.path)
    where !path.hasPrefix(".downpipe") && !path.hasPrefix(".manifest") {
      var isFolder: ObjCBool = false
      guard FileManager.default.fileExists(atPath: folder.path(path), isDirectory: &isFolder) else { continue }
      found[path] = isFolder.boolValue ? "a folder" : String(decoding: try folder.read(path), as: UTF8.self)
    }
    return found
  }

  private func expectFolder(_ files: Files) throws {
    var expected = files
    for path in files.keys {
      let names = path.split(separator: "/")
      for count in 1..<max(1, names.count) { expected[names.prefix(count).joined(separator: "/")] = "a folder" }
    }
    let found = try found()
    #expect(found == expected, "\(Set(found.keys).symmetricDifference(expected.keys).sorted().prefix(5))")
  }

  private func open(_ source: FakeSource) async throws -> Mirror {
    try await Mirror(folder.path, of: manifest, source: source)
  }

  @Test("of 3,000 files, changed ones are fetched again and removed ones deleted")
  func changes() async throws {
    var files = Self.files(3_000)
    let source = FakeSource()
    serve(files, from: source)
    var mirror = try await open(source)
    #expect(try await mirror.update().isEmpty)
    try expectFolder(files)
    #expect(source.requests.count == 3_001)

    // Nothing has changed: one question, no file.
    #expect(try await mirror.update().isEmpty)
    await mirror.downloader.shutdown()
    mirror = try await open(source)
    #expect(try await mirror.update().isEmpty)
    #expect(source.requests.dropFirst(3_001).map(\.url) == [manifest, manifest])
    #expect(source.requests.dropFirst(3_001).allSatisfy { $0.condition != nil })

    let paths = files.keys.sorted()
    for path in paths.prefix(40) { files[path] = "changed \(path)" }
    for path in paths.suffix(25) { files[path] = nil }
    // A file becomes a folder, and a folder a file.
    files[paths[50]] = nil
    files[paths[50] + "/below"] = "new"
    for path in paths where path.hasPrefix("part 7/") { files[path] = nil }
    files["part 7"] = "was a folder"
    try FileManager.default.removeItem(atPath: folder.path(paths[60]))
    serve(files, from: source)
    #expect(try await mirror.update().isEmpty)
    try expectFolder(files)
    let fetched = Set(source.requests.dropFirst(3_003).map(\.url))
    var expected = Set((paths.prefix(40) + [paths[50] + "/below", "part 7", paths[60]]).map(url) + [manifest])
    expected.formIntersection(files.keys.map(url) + [manifest])
    #expect(fetched == expected)
    await mirror.downloader.shutdown()
    folder.close()
  }

  @Test("a file that cannot be fetched is reported, stays as it was, and is fetched by the next call")
  func failures() async throws {
    var files = Self.files(5)
    let source = FakeSource()
    serve(files, from: source)
    let mirror = try await open(source)
    #expect(try await mirror.update().isEmpty)
    let path = try #require(files.keys.sorted().first)
    let old = files
    files[path] = "changed"
    serve(files, from: source)
    source.script(url(path), .init(Array("damaged".utf8)), .status(404), .init(Array("changed".utf8)))
    #expect(try await mirror.update().map(\.id) == [DownloadID(path)])
    try expectFolder(old)
    for _ in 0..<2 { _ = try await mirror.update() }
    try expectFolder(files)
    await mirror.downloader.shutdown()
    folder.close()
  }

  @Test(
    "a manifest that is empty or has paths that lead elsewhere changes nothing",
    arguments: [
      "", "\n", "abc", "\(String(repeating: "0", count: 64))  ../outside\n",
      "\(String(repeating: "0", count: 64))  /etc/passwd\n",
      "\(String(repeating: "0", count: 64))  a//b\n", "xyz  a\n", "\(String(repeating: "0", count: 64))  .downpipe/a\n",
    ])
  func hostile(_ text: String) async throws {
    let files = Self.files(3)
    let source = FakeSource()
    serve(files, from: source)
    let mirror = try await open(source)
    #expect(try await mirror.update().isEmpty)
    source.script(manifest, .init(Array(text.utf8)))
    await #expect(throws: DownloadError.self) { try await mirror.update() }
    if !text.contains(".downpipe") { try expectFolder(files) }
    await mirror.downloader.shutdown()
    folder.close()
  }

  /// The program itself is killed while it fetches a first and a second version of the files.
  @Test("a program that is killed at any moment is completed by the next run")
  func kills() async throws {
    let versions = [
      Self.files(300), Self.files(330).mapValues { $0 + ", changed" }.filter { !$0.key.hasSuffix("9.txt") },
    ]
    let version = Watched(0)
    let served = Watched(0)
    let contents = versions.map { files in
      Dictionary(uniqueKeysWithValues: files.map { ("/pub/\($0)", $1) }).merging(["/pub/SHA256SUMS": Self.sums(files)])
      { $1 }
    }
    let server = try await ScriptedHTTPServer.start { request in
      served.update { $0 += 1 }
      let path = request.path.removingPercentEncoding ?? request.path
      guard let content = contents[version.value][path] else { return ScriptedReply(404, [:]) }
      return .file(.bytes(Array(content.utf8)), etag: "\"\(content.hashValue)\"", for: request)
    }
    for number in versions.indices {
      version.update { $0 = number }
      for stop in [1, 40, 41, 150, 299] {
        served.update { $0 = 0 }
        _ = try await run(server.url("/pub/SHA256SUMS"), killedAfter: stop, served)
      }
      let status = try await run(server.url("/pub/SHA256SUMS"), killedAfter: .max, served)
      #expect(status == 0)
      try expectFolder(versions[number])
    }
    await server.shutdown()
    folder.close()
  }

  /// Runs the program, and kills it when the server has been asked a number of times.
  /// - Returns: Its exit status; `nil` if it was killed.
  private func run(_ manifest: URL, killedAfter count: Int, _ served: Watched<Int>) async throws -> Int32? {
    let process = Process()
    process.executableURL = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().appending(
      path: "Mirror")
    process.arguments = [manifest.absoluteString, folder.path]
    process.standardInput = FileHandle.nullDevice
    let ended = Watched(false)
    process.terminationHandler = { _ in ended.update { $0 = true } }
    try process.run()
    let number = process.processIdentifier
    await withTaskGroup { group in
      group.addTask { await ended.wait { $0 } }
      group.addTask { await served.wait { $0 >= count } }
      await group.next()
      group.cancelAll()
    }
    if process.isRunning { kill(number, SIGKILL) }
    await ended.wait { $0 }
    return process.terminationReason == .exit ? process.terminationStatus : nil
  }
}
