import DownpipeChecksum
import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// Checksum files beside a download.
@Suite(.endsHangs)
struct VerifyChecksumFileTests {
  private let bytes = DownloadFixtures.pattern(size: 100_000)
  private let url = URL(string: "https://example.org/films/a%20film.mkv?token=secret")!
  private let sums = URL(string: "https://example.org/films/SHA256SUMS")!
  private let suffixed = URL(string: "https://example.org/films/a%20film.mkv.sha256")!

  private func line(_ algorithm: DigestAlgorithm = .sha256, of bytes: [UInt8]? = nil, name: String = "a film.mkv")
    throws -> [UInt8]
  {
    Array("\(try DigestSamples.digest(algorithm, of: bytes ?? self.bytes).hex)  \(name)\n".utf8)
  }

  /// Downloads the file through an engine.
  private func download(
    _ files: [URL: FakeSource.Script], _ step: VerifyChecksum, digests: [FileDigest] = []
  ) async throws -> (result: Result<[UInt8], DownloadError>, requests: [SourceRequest]) {
    var scripts = files.mapValues { [$0] }
    if scripts[url] == nil { scripts[url] = [.init(bytes)] }
    let source = FakeSource(scripts)
    let storage = FakeStorage()
    let downloader = try await Downloader(options: DownloaderOptions(time: VirtualTime())) {
      source
      storage
      FakeRetryPolicy(.giveUp)
      step
    }
    let result: Result<[UInt8], DownloadError>
    do {
      let request = DownloadRequest(
        url, id: "a"
      ).with(\.expectedDigests, digests).with(\.headers, ["Authorization": "secret", "Accept": "*/*"])
      let artifact = try await downloader.add(request).value
      result = .success(try #require(storage.bytes(of: artifact)))
    } catch let error as DownloadError {
      result = .failure(error)
    }
    await downloader.shutdown()
    return (result, source.requests)
  }

  @Test func besideAsSuffix() async throws {
    let (result, requests) = try await download([suffixed: .init(line())], VerifyChecksum(file: .beside(".sha256")))
    #expect(try result.get() == bytes)
    #expect(requests.map(\.url) == [url, suffixed])
    #expect(requests.last?.headers["Authorization"] == "secret", "the same origin")
    #expect(requests.last?.isNamedByServer == false && requests.last?.id == "a" && requests.last?.range == nil)
  }

  @Test func besideAsName() async throws {
    let lines = try line(of: [1], name: "other.mkv") + line()
    let (result, requests) = try await download([sums: .init(lines)], VerifyChecksum(file: .beside("SHA256SUMS")))
    #expect(try result.get() == bytes)
    #expect(requests.last?.url == sums)
  }

  @Test func atAnotherOrigin() async throws {
    let other = try #require(URL(string: "https://sums.test/all"))
    let step = VerifyChecksum(file: .at(other), entry: "film")
    let (result, requests) = try await download([other: .init(line(name: "film"))], step)
    #expect(try result.get() == bytes)
    #expect(requests.last?.headers.fields.map(\.name) == ["Accept"], "no credentials of the download's origin")
    #expect(requests.last?.isNamedByServer == false, "the user has named it")
  }

  @Test func wrongBytes() async throws {
    let (result, _) = try await download([suffixed: .init(line(of: [1]))], VerifyChecksum(file: .beside(".sha256")))
    let error = #expect(throws: DownloadError.self) { try result.get() }
    #expect(error?.code == .digestMismatch)
    #expect(error?.message.contains("the checksum file has") == true)
  }

  @Test("the digest of the request is checked as well")
  func digestOfTheRequest() async throws {
    let step = VerifyChecksum(file: .beside(".sha256"))
    let wrong = try DigestSamples.digest(.md5, of: [1])
    let (result, _) = try await download([suffixed: .init(line())], step, digests: [wrong])
    #expect(#expect(throws: DownloadError.self) { try result.get() }?.code == .digestMismatch)
    let right = try DigestSamples.digest(.md5, of: bytes)
    #expect(try await download([suffixed: .init(line())], step, digests: [right]).result.get() == bytes)
  }

  @Test func noFile() async throws {
    let (result, _) = try await download([suffixed: .status(404)], VerifyChecksum(file: .beside(".sha256")))
    let error = #expect(throws: DownloadError.self) { try result.get() }
    #expect(error?.code == .noChecksum && error?.httpStatus == 404)
    #expect(error?.message.contains(suffixed.absoluteString) == true)
    #expect(error?.message.contains("secret") == false)
  }

  @Test func aFailingServerIsLeftToTheRetryPolicy() async throws {
    let (result, _) = try await download([suffixed: .status(503)], VerifyChecksum(file: .beside(".sha256")))
    let error = #expect(throws: DownloadError.self) { try result.get() }
    #expect(error?.code == .httpStatus && error?.httpStatus == 503 && error?.url == suffixed.absoluteString)
  }

  @Test func noEntry() async throws {
    let (result, _) = try await download(
      [sums: .init(line(name: "x") + line(of: [1], name: "y"))], VerifyChecksum(file: .beside("SHA256SUMS")))
    let error = #expect(throws: DownloadError.self) { try result.get() }
    #expect(error?.code == .noChecksum && error?.url == sums.absoluteString)
    #expect(error?.message.contains("a film.mkv") == true)
  }

  @Test func aPageInsteadOfTheFile() async throws {
    let (result, _) = try await download(
      [sums: .init(Array("<html>log in</html>".utf8))], VerifyChecksum(file: .beside("SHA256SUMS")))
    let error = #expect(throws: DownloadError.self) { try result.get() }
    #expect(error?.code == .invalidChecksumFile && error?.url == sums.absoluteString)
  }

  @Test func tooLarge() async throws {
    let large = [UInt8](repeating: 0x0A, count: ChecksumFile.maximumBytes + 1)
    for announces in [true, false] {
      let script = FakeSource.Script(large).with { $0.announcesLength = announces }
      let (result, _) = try await download([sums: script], VerifyChecksum(file: .beside("SHA256SUMS")))
      let error = #expect(throws: DownloadError.self) { try result.get() }
      #expect(error?.code == .tooLarge && error?.url == sums.absoluteString)
    }
  }

  @Test("contexts without an engine say that they cannot fetch, or use a closure")
  func withoutAnEngine() async throws {
    let step = VerifyChecksum(file: .beside(".sha256"))
    let artifact = Artifact(location: .memory(bytes), name: "film", size: .known(Int64(bytes.count)))
    let request = DownloadRequest(url)
    let error = await #expect(throws: DownloadError.self) {
      try await step.process(artifact, in: ProcessingContext(request: request, workspace: nil))
    }
    #expect(error?.code == .processing && error?.message.contains("cannot be fetched") == true)
    let lines = try line()
    let expected = suffixed
    let context = ProcessingContext(
      request: request, workspace: nil,
      fetch: { asked, maximum, isNamedByUser in
        #expect(asked == expected && maximum == ChecksumFile.maximumBytes && isNamedByUser)
        return lines
      })
    #expect(try await step.process(artifact, in: context) == artifact)
  }

  @Test("the algorithm that the name states is computed while the bytes arrive")
  func follower() async throws {
    let absent = Artifact(location: .path("/nowhere/file"), name: "file", size: .known(Int64(bytes.count)))
    let request = DownloadRequest(url)
    let step = VerifyChecksum(file: .beside(".sha256"))
    let question = ProcessingContext(request: request, workspace: nil)
    let follower = try #require(step.follower(in: question))
    try follower.take(bytes.span.bytes)
    let lines = try line()
    let context = ProcessingContext(
      request: request, workspace: nil, follower: follower, fetch: { _, _, _ in lines })
    #expect(try await step.process(absent, in: context) == absent)
    #expect(VerifyChecksum(file: .beside("checksums.txt")).follower(in: question) == nil)
  }

  @Test("with a checksum file, the step counts only for what it always verifies")
  func declaration() {
    func step(_ stage: VerifyChecksum) -> PipelineStep? {
      var parts = PipelineParts()
      stage.contribute(to: &parts)
      return parts.steps.first
    }
    #expect(step(VerifyChecksum())?.verifiesDigests == true)
    let withFile = step(VerifyChecksum(file: .beside(".sha256")))
    #expect(withFile?.verifiesDigests == false)
    #expect(withFile?.verifies(.sha256) == true && withFile?.verifies(DigestAlgorithm("odd")) == false)
    #expect(withFile?.summary == ".sha256")
  }
}
