import Downpipe
import DownpipeAppleResumeData
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import ResumableLibrary

/// Exchange of resume data with URLSession.
@Suite(.endsHangs)
struct AppleResumeDataTests {
  /// A form of resume data.
  enum Form: CaseIterable {
    case xml, binary, archive, brokenByIOS10
  }

  /// Creates a temporary file of the system with the first 400,000 bytes of a film, and returns its resume data.
  private func begun(_ films: TestFilms, _ form: Form, url: URL? = nil) throws -> Data {
    let bytes = Array(TestFilms.content(of: "/a").allBytes.prefix(400_000))
    // Bytes after those in the resume data are ignored.
    try films.folder.write(bytes + [1, 2, 3], to: "tmp/CFNetworkDownload_7.tmp")
    let data = try AppleResumeData(
      url: url ?? films.server.url("/a"), bytesReceived: 400_000, entityTag: EntityTag("a"),
      localFile: "CFNetworkDownload_7.tmp", format: form == .xml ? .xml : .binary,
      isArchived: form == .archive || form == .brokenByIOS10
    ).data()
    return form == .brokenByIOS10 ? try broken(data) : data
  }

  /// Data as iOS 10 wrote it: a plain list with requests in the form that only archives may have.
  private func broken(_ archive: Data) throws -> Data {
    let list = try #require(
      try PropertyListSerialization.propertyList(from: archive, format: nil) as? [String: Any])
    let objects = try #require(list["$objects"] as? [Any])
    let requests = objects.compactMap { $0 as? Data ?? ($0 as? [String: Any])?["NS.data"] as? Data }
    try #require(requests.count == 2)
    let plain: [String: Any] = [
      "NSURLSessionDownloadURL": try AppleResumeData(archive).url.absoluteString,
      "NSURLSessionResumeBytesReceived": 400_000, "NSURLSessionResumeEntityTag": "\"a\"",
      "NSURLSessionResumeInfoTempFileName": "CFNetworkDownload_7.tmp", "NSURLSessionResumeInfoVersion": 2,
      "NSURLSessionResumeCurrentRequest": requests[0], "NSURLSessionResumeOriginalRequest": requests[1],
    ]
    let data = try PropertyListSerialization.data(fromPropertyList: plain, format: .binary, options: 0)
    #expect(try AppleResumeData(data).needsRepair)
    return data
  }

  @Test("resume data is read, repaired and resumed", arguments: Form.allCases)
  func imported(form: Form) async throws {
    let films = try await TestFilms()
    films.gate.open()
    let data = try begun(films, form)
    try await films.open { library in
      var film = films.film("a")
      film.url = films.server.url("/not-this-one")
      try await library.add(film, resumeData: data, temporaryFiles: films.folder.path("tmp"))
      let status = try #require(await library.finish("a"))
      #expect(status.state.phase == .finished)
      #expect(status.bytesFetched == TestFilms.size - 400_000 + TestFilms.compared)
    }
    #expect(try films.folder.read("films/a.mp4") == TestFilms.content(of: "/a").allBytes)
    let start = try #require(films.starts(of: "a").first ?? nil)
    #expect(start == 400_000 - TestFilms.compared)
    await films.shutdown()
  }

  @Test("resume data is updated with a new link and another number of bytes")
  func updated() async throws {
    let films = try await TestFilms()
    films.gate.open()
    let dead = films.server.url("/dead")
    let data = try Library.updated(
      try begun(films, .archive, url: dead), url: films.server.url("/a"), bytesReceived: 250_000)
    #expect(try AppleResumeData(data).bytesReceived == 250_000)
    try await films.open { library in
      try await library.add(films.film("a"), resumeData: data, temporaryFiles: films.folder.path("tmp"))
      #expect(try await library.finish("a")?.state.phase == .finished)
    }
    #expect(films.starts(of: "dead").isEmpty)
    let start = try #require(films.starts(of: "a").first ?? nil)
    #expect(start == 250_000 - TestFilms.compared)
    await films.shutdown()
  }

  @Test("resume data is made for URLSession or another library")
  func exported() async throws {
    let films = try await TestFilms()
    try FileManager.default.createDirectory(atPath: films.folder.path("tmp"), withIntermediateDirectories: true)
    let data = try await films.open { library in
      try await library.add(films.film("a"))
      try await library.waitForHeldBytes(of: "a")
      await #expect(throws: DownloadError.self) {
        try await library.resumeData(of: "a", bytesTo: URL(filePath: films.folder.path("tmp/part")))
      }
      try await library.pause("a")
      return try await library.resumeData(of: "a", bytesTo: URL(filePath: films.folder.path("tmp/part")))
    }
    let resumeData = try AppleResumeData(data)
    #expect(resumeData.url == films.server.url("/a"))
    #expect(resumeData.bytesReceived == TestFilms.held)
    #expect(resumeData.validator.entityTag == EntityTag("a"))
    #expect(
      try films.folder.read("tmp/part") == Array(TestFilms.content(of: "/a").allBytes.prefix(Int(TestFilms.held))))
    films.gate.open()
    try await films.open(at: films.folder.path("other")) { library in
      try await library.add(films.film("a"), resumeData: data, temporaryFiles: films.folder.path("tmp"))
      #expect(try await library.finish("a")?.state.phase == .finished)
    }
    #expect(try films.folder.read("other/a.mp4") == TestFilms.content(of: "/a").allBytes)
    await films.shutdown()
  }
}
