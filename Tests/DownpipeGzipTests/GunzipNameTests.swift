import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeGzip

@Suite(.endsHangs)
struct GunzipNameTests {
  @Test(
    "the suffix goes",
    arguments: [
      ("film.mkv.gz", "film.mkv"), ("A.TXT.GZ", "A.TXT"), ("a.tar.gz", "a.tar"), ("a.tgz", "a.tar"),
      ("a.taz", "a.tar"), ("a.TGZ", "a.tar"), ("a.svgz", "a.svg"), ("a.gz.gz", "a.gz"), ("film.mkv", "film.mkv"),
      ("gz", "gz"), (".gz", ".gz"), ("..gz", "..gz"), ("...gz", "...gz"), (".tgz", ".tgz"), ("é.gz", "é"),
      ("agz", "agz"), ("", ""),
    ])
  func suffix(_ name: String, _ expected: String) {
    #expect(UnpackedName.stripping(name) == expected)
  }

  @Test(
    "a header's name is made safe or refused",
    arguments: [
      ("film.mkv", "film.mkv"), ("/etc/passwd", "passwd"), ("..\\..\\boot.ini", "boot.ini"), ("naïve", "naïve"),
      ("", nil), (".", nil), ("..", nil), ("a/..", nil), ("a/", nil), (".bashrc", nil), ("a\nb", nil),
      ("a\u{202E}gpj.exe", nil), ("NUL", nil), (String(repeating: "a", count: 201), nil),
      (String(repeating: "a", count: 200), String(repeating: "a", count: 200)),
    ] as [(String, String?)])
  func header(_ name: String, _ expected: String?) {
    #expect(UnpackedName.fromHeader(Array(name.utf8)) == expected)
  }

  @Test("a name in the header that is not UTF-8 is ISO 8859-1")
  func latin1() {
    #expect(UnpackedName.fromHeader([0x6E, 0x61, 0xEF, 0x76, 0x65]) == "naïve")
  }

  @Test("the name in the header is used only with .header, and not instead of a name in the request")
  func naming() async throws {
    let content: [UInt8] = [1]
    let packed = GzipSamples.member(content, name: Array("inside.txt".utf8)) + GzipSamples.member(content)
    func name(_ gunzip: Gunzip, _ bytes: [UInt8], _ destination: DownloadRequest.Destination = .init()) async throws
      -> String
    {
      let input = File(Artifact(location: .memory(bytes), name: "outside.txt.gz"))
      return try await gunzip.process(input, in: context(workspace: nil, destination: destination)).name
    }
    #expect(try await name(Gunzip(), packed) == "outside.txt")
    #expect(try await name(Gunzip(naming: .header), packed) == "inside.txt")
    #expect(try await name(Gunzip(naming: .header), packed, .init(name: "mine.gz")) == "outside.txt")
    #expect(try await name(Gunzip(naming: .header), GzipSamples.member(content)) == "outside.txt")
    let second = GzipSamples.member(content) + packed
    #expect(try await name(Gunzip(naming: .header), second) == "outside.txt")
    let long = GzipSamples.member(content, name: [UInt8](repeating: 0x61, count: 5000))
    #expect(try await name(Gunzip(naming: .header), long) == "outside.txt")
  }

  @Test(
    "a requested name is an order or a fallback", arguments: [DownloadRequest.Destination.NameUse.order, .fallback])
  func requestedName(_ use: DownloadRequest.Destination.NameUse) async throws {
    let url = try #require(URL(string: "https://example.org/file.gz"))
    let downloader = try await Downloader {
      FakeSource([url: [.init(GzipSamples.member([1, 2, 3]))]])
      FakeStorage()
      Gunzip()
    }
    let request = DownloadRequest(url, destination: .init(name: "named.txt.gz", nameUse: use))
    let artifact = try await downloader.add(request).value
    #expect(artifact.name == (use == .order ? "named.txt.gz" : "named.txt"))
    #expect(artifact.size == 3)
    await downloader.shutdown()
  }

  @Test("an artifact with a path as its name is refused")
  func unsafe() async throws {
    for name in ["../a.gz", "a/b.gz", "", "..", "a\0.gz"] {
      try await withFolder { folder in
        let path = folder + "/input"
        try Data(GzipSamples.song).write(to: URL(filePath: path))
        let error = await #expect(throws: DownloadError.self) {
          try await Gunzip().process(File(path: path, name: name), in: context(workspace: folder))
        }
        #expect(error?.code == .unsafePath, "\(name)")
        #expect(try FileManager.default.subpathsOfDirectory(atPath: folder) == ["input"])
      }
    }
  }

  @Test(
    "the wrapper's media type does not stay",
    arguments: [
      ("application/gzip", nil), ("application/x-gzip; a=b", nil), ("image/svg+xml", "image/svg+xml"), (nil, nil),
    ] as [(String?, String?)])
  func mediaType(_ type: String?, _ expected: String?) async throws {
    let input = File(Artifact(location: .memory(GzipSamples.song), name: "a.gz", mediaType: type))
    let output = try await Gunzip().process(input, in: context(workspace: nil))
    #expect(output.artifact.mediaType == expected)
  }
}
