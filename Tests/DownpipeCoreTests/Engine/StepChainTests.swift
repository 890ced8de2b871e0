import DownpipeCore
@_spi(Ledger) import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// An app's update changes the chain of steps while a download is in the middle of the old chain.
@Suite(.endsHangs)
struct StepChainTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let ledger = MemoryLedger()
  private let faulty: FaultyLedger
  let storage: FakeStorage
  private let folder: TemporaryFolder
  private let key = PartialKey(id: "a", generation: 1)

  init() throws {
    folder = try TemporaryFolder()
    storage = FakeStorage(workspaces: folder.path)
    faulty = FaultyLedger(ledger)
  }

  private typealias Step = FakePostProcessor<File, File>

  private func downloader(_ source: FakeSource, _ steps: [Step]) async throws -> Downloader {
    try await Downloader(options: options) {
      source
      storage
      faulty
      FakeRetryPolicy(.giveUp)
      for step in steps { step }
    }
  }

  /// Reverses the bytes, in place of unpacking them.
  private func gunzip() -> Step { .bytes(name: "Gunzip") { $0.reversed() } }
  private func moveInto() -> Step { .bytes(name: "MoveInto") { $0 + [42] } }
  private func verify() -> Step {
    Step(name: "Verify") { [bytes] file, _ in
      guard try file.artifact.readBytes() == bytes else { throw DownloadError(.digestMismatch, "not the file's bytes") }
      return file
    }
  }

  /// Creates a download that has been unpacked and could not be moved.
  private func standAfterGunzip(_ source: FakeSource) async throws {
    let failing = Step(name: "MoveInto") { _, _ in throw DownloadError(.processing, "there is no such folder") }
    let unpacked = gunzip()
    let downloader = try await downloader(source, [unpacked, failing])
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await #expect { try await download.value } throws: { code($0) == .processing }
    #expect(unpacked.inputs.count == 1 && failing.inputs.count == 1)
    await downloader.shutdown()
    #expect(storage.published.isEmpty && storage.openPartials == 0)
    #expect(storage.partials[key] == bytes, "the chain can start again")
  }

  private func goOn(_ source: FakeSource, _ steps: [Step]) async throws -> Artifact {
    let downloader = try await downloader(source, steps)
    let download = try #require(try await downloader.download("a"))
    try await download.resume()
    do {
      let artifact = try await download.value
      await downloader.shutdown()
      return artifact
    } catch {
      await downloader.shutdown()
      throw error
    }
  }

  @Test func theSameChainGoesOnWhereItStood() async throws {
    let source = FakeSource([url: [.init(bytes)]])
    try await standAfterGunzip(source)
    let (unpacked, moved) = (gunzip(), moveInto())
    let artifact = try await goOn(source, [unpacked, moved])
    #expect(unpacked.inputs.isEmpty)
    #expect(moved.inputs.count == 1)
    #expect(storage.bytes(of: artifact) == bytes.reversed() + [42])
    #expect(source.requests.count == 1)
    #expect(storage.partials.isEmpty)
  }

  @Test func aLongerChainGoesOnBehindWhatIsDone() async throws {
    let source = FakeSource([url: [.init(bytes)]])
    try await standAfterGunzip(source)
    let (unpacked, other, moved) = (gunzip(), Step.bytes(name: "Other") { $0 + [7] }, moveInto())
    let artifact = try await goOn(source, [unpacked, other, moved])
    #expect(unpacked.inputs.isEmpty && other.inputs.count == 1)
    #expect(storage.bytes(of: artifact) == bytes.reversed() + [7, 42])
    #expect(source.requests.count == 1)
  }

  @Test func anotherChainStartsAgainFromThePartial() async throws {
    let source = FakeSource([url: [.init(bytes)]])
    try await standAfterGunzip(source)
    let (verified, unpacked, moved) = (verify(), gunzip(), moveInto())
    let artifact = try await goOn(source, [verified, unpacked, moved])
    #expect(verified.inputs.count == 1 && unpacked.inputs.count == 1 && moved.inputs.count == 1)
    #expect(storage.bytes(of: artifact) == bytes.reversed() + [42])
    #expect(source.requests.count == 1, "nothing was downloaded again")
    #expect(storage.partials.isEmpty)
  }

  @Test("a start from the partial that the ledger cannot note leaves the partial closed, for the next run")
  func theLedgerFails() async throws {
    let source = FakeSource([url: [.init(bytes)]])
    try await standAfterGunzip(source)
    faulty.fail(.save, at: faulty.calls.count { $0 == .save } + 1, with: DownloadError(.ledger, "the network is cut"))
    await #expect { try await goOn(source, [verify(), gunzip(), moveInto()]) } throws: { code($0) == .ledger }
    #expect(storage.openPartials == 0)
    let artifact = try await goOn(source, [verify(), gunzip(), moveInto()])
    #expect(storage.bytes(of: artifact) == bytes.reversed() + [42])
    #expect(source.requests.count == 1, "nothing was downloaded again")
  }

  @Test func aShorterChainStartsAgain() async throws {
    let source = FakeSource([url: [.init(bytes)]])
    try await standAfterGunzip(source)
    let artifact = try await goOn(source, [])
    #expect(storage.bytes(of: artifact) == bytes)
    #expect(source.requests.count == 1)
  }

  @Test func nothingIsPublishedThatTheNewStepRefuses() async throws {
    // The verified bytes are not the downloaded ones.
    let source = FakeSource([url: [.init(Array(bytes.dropLast()))]])
    let failing = Step(name: "MoveInto") { _, _ in throw DownloadError(.processing, "there is no such folder") }
    let first = try await downloader(source, [gunzip(), failing])
    let download = try await first.add(DownloadRequest(url, id: "a"))
    await #expect(throws: DownloadError.self) { try await download.value }
    await first.shutdown()
    let unpacked = gunzip()
    await #expect { try await goOn(source, [verify(), unpacked, moveInto()]) } throws: { code($0) == .digestMismatch }
    #expect(storage.published.isEmpty)
    #expect(unpacked.inputs.isEmpty)
  }

  @Test("if the partial is missing or truncated, the bytes are downloaded again", arguments: [true, false])
  func withoutThePartial(isGone: Bool) async throws {
    let source = FakeSource([url: [.init(bytes)]])
    try await standAfterGunzip(source)
    if isGone { try await storage.removePartial(key) } else { storage.damage(key) { $0.removeLast() } }
    let (verified, unpacked, moved) = (verify(), gunzip(), moveInto())
    let artifact = try await goOn(source, [verified, unpacked, moved])
    #expect(verified.inputs.count == 1)
    #expect(storage.bytes(of: artifact) == bytes.reversed() + [42])
    #expect(source.requests.count == 2)
    #expect(source.requests.last?.range == nil)
    #expect(storage.partials.isEmpty && storage.openPartials == 0)
  }

  @Test("if only the artifact of a step is missing, the same chain starts again from the partial")
  func withoutTheStepsOutput() async throws {
    let source = FakeSource([url: [.init(bytes)]])
    try await standAfterGunzip(source)
    for name in try folder.contents() where name.contains("Gunzip") {
      try FileManager.default.removeItem(atPath: folder.path(name))
    }
    let (unpacked, moved) = (gunzip(), moveInto())
    let artifact = try await goOn(source, [unpacked, moved])
    #expect(unpacked.inputs.count == 1)
    #expect(storage.bytes(of: artifact) == bytes.reversed() + [42])
    #expect(source.requests.count == 1)
  }
}
