import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeChecksum

/// One checksum file for many downloads.
@Suite(.endsHangs)
struct SharedChecksumFileTests {
  private let sums = URL(string: "https://example.org/SHA256SUMS")!
  private let time = VirtualTime()

  private func url(_ name: String) -> URL { URL(string: "https://example.org/\(name)")! }

  private func lines(_ files: [(name: String, bytes: [UInt8])]) throws -> [UInt8] {
    Array(try files.map { "\(try DigestSamples.digest(.sha256, of: $0.bytes).hex)  \($0.name)\n" }.joined().utf8)
  }

  private func downloader(_ source: FakeSource) async throws -> Downloader {
    try await Downloader(options: DownloaderOptions(time: time)) {
      source
      FakeStorage()
      FakeRetryPolicy(.giveUp)
      VerifyChecksum(file: .beside("SHA256SUMS"))
    }
  }

  private func requests(_ source: FakeSource) -> Int { source.requests.count { $0.url == sums } }

  @Test("the file is fetched once for 500 downloads")
  func manyDownloads() async throws {
    let files = (0..<500).map { (name: "file\($0)", bytes: Array("content \($0)".utf8)) }
    var scripts = [sums: [FakeSource.Script(try lines(files))]]
    for file in files { scripts[url(file.name)] = [.init(file.bytes)] }
    let source = FakeSource(scripts)
    let downloader = try await downloader(source)
    var downloads: [Download] = []
    for file in files { downloads.append(try await downloader.add(DownloadRequest(url(file.name)))) }
    for download in downloads {
      _ = try await download.value
      #expect(try await download.status.verified.map(\.origin) == [.checksumFile])
    }
    #expect(requests(source) == 1)
    await downloader.shutdown()
  }

  @Test("a file and its entry may be replaced, or added, while other downloads share an earlier copy")
  func replacedFiles() async throws {
    let (old, new) = (Array("old".utf8), Array("new, and longer".utf8))
    let source = FakeSource([
      url("a"): [.init(old)], url("b"): [.init(new)], url("c"): [.init(new)],
      sums: [
        .init(try lines([("a", old), ("b", old)])), .init(try lines([("a", old), ("b", new)])),
        .init(try lines([("a", old), ("b", new), ("c", new)])),
      ],
    ])
    let downloader = try await downloader(source)
    for (name, count) in [("a", 1), ("b", 2), ("c", 3)] {
      _ = try await downloader.add(DownloadRequest(url(name))).value
      #expect(requests(source) == count)
    }
    await downloader.shutdown()
  }

  @Test("a wrong file fails after the server was asked once more, unless its own request was the latest")
  func wrongFiles() async throws {
    let wrong = Array("wrong".utf8)
    let source = FakeSource([
      url("a"): [.init(wrong)], url("b"): [.init(wrong)],
      sums: [.init(try lines([("a", [1]), ("b", [1])]))],
    ])
    let downloader = try await downloader(source)
    for (name, count) in [("a", 1), ("b", 2)] {
      let download = try await downloader.add(DownloadRequest(url(name)))
      #expect(await #expect(throws: DownloadError.self) { try await download.value }?.code == .digestMismatch)
      #expect(requests(source) == count)
    }
    await downloader.shutdown()
  }

  @Test("the server is not asked again when the digest of the request is wrong")
  func wrongDigestOfTheRequest() async throws {
    let content = Array("content".utf8)
    let step = VerifyChecksum(file: .beside("SHA256SUMS"))
    let lines = try lines([("a", [1])])
    let fetches = Watched(0)
    let request = try DownloadRequest(url("a")).with(\.expectedDigests, [DigestSamples.digest(.md5, of: [2])])
    let context = ProcessingContext(
      request: request, workspace: nil,
      fetch: { _, _, _ in
        fetches.update { $0 += 1 }
        return lines
      })
    let artifact = Artifact(location: .memory(content), name: "a", size: .known(Int64(content.count)))
    await #expect(throws: DownloadError.self) { try await step.process(artifact, in: context) }
    #expect(fetches.value == 1)
  }

  @Test("the parsed form is that of the bytes and of the name")
  func parsedForm() throws {
    let parsed = ParsedChecksumFile()
    let files = (0..<100).map { (name: "file\($0)", bytes: [UInt8($0)]) }
    let (first, second) = (try lines(files), try lines(files.reversed()))
    #expect(first.count >= ParsedChecksumFile.fewestBytes)
    for bytes in [first, first, second, first, try lines([files[0]])] {
      #expect(try parsed.file(of: bytes, named: "SHA256SUMS") == ChecksumFile(parsing: bytes, named: "SHA256SUMS"))
    }
    #expect(throws: DownloadError.self) { try parsed.file(of: first, named: ".sha512") }
    #expect(throws: DownloadError.self) { try parsed.file(of: [UInt8](repeating: 0x41, count: 5000), named: "sums") }
    #expect(try parsed.file(of: first, named: "SHA256SUMS").entries.count == 100)
  }
}
