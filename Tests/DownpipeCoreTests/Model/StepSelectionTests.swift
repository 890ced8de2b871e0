import DownpipeTesting
import Foundation
import HangLimit
import Testing

@_spi(Ledger) @testable import DownpipeCore

/// The steps that apply to a download.
@Suite(.endsHangs)
struct StepSelectionTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 1000)
  let url = URL(string: "https://example.org/file.bin.x")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  private func adding(_ byte: UInt8) -> FakePostProcessor<File, File> {
    .bytes(name: "Add\(byte)") { $0 + [byte] }
  }

  private func downloader(_ ledger: MemoryLedger? = nil) async throws -> Downloader {
    try await Downloader(options: options) {
      FakeSource([url: [.init(bytes)]])
      storage
      ledger ?? self.ledger
      adding(1)
      adding(2).when { $0.request.tags.contains("two") }
      adding(3)
    }
  }

  @Test(
    arguments: [
      (StepSelection.all, [], [1, 3]), (.all, ["two"], [1, 2, 3]), (.none, ["two"], []), (.only("Add3"), [], [3]),
      (.only("Add2", "Add1"), ["two"], [1, 2]), (.only("Add2"), [], []),
    ] as [(StepSelection, Set<String>, [UInt8])])
  func aRequestNamesItsSteps(_ steps: StepSelection, _ tags: Set<String>, _ added: [UInt8]) async throws {
    let downloader = try await downloader()
    let artifact = try await downloader.add(DownloadRequest(url, id: "a", tags: tags).with(\.steps, steps)).value
    #expect(storage.bytes(of: artifact) == bytes + added)
    let store = try await ledger.open()
    #expect(try await store.record("a")?.request.steps == steps, "the selection is recorded")
    await downloader.shutdown()
  }

  @Test func whatNoStepIsNamedIsRefused() async throws {
    let downloader = try await downloader()
    let request = DownloadRequest(url, id: "a").with(\.steps, .only("Add1", "Unzip"))
    await #expect { try await downloader.add(request) } throws: { error in
      guard let error = error as? DownloadError else { return false }
      return error.code == .invalidRequest && error.message.contains("Unzip")
        && error.message.contains("Add1, Add2, Add3")
    }
    #expect(try await downloader.download("a") == nil)
    await downloader.shutdown()
  }

  @Test func formsHaveToFit() throws {
    func step(_ name: String, _ input: Artifact.Kind?, _ output: Artifact.Kind?) -> PipelineStep {
      PipelineStep(name: name, input: input, output: output) { artifact, _ in artifact }
    }
    let steps = [
      step("Gunzip", .file, .file), step("Untar", .file, .directory), step("Move", nil, nil),
      step("Prune", .directory, .directory),
    ]
    for fitting in [StepSelection.all, .none, .only("Untar"), .only("Untar", "Prune"), .only("Move", "Gunzip")] {
      try fitting.check(steps)
    }
    for misfit in [StepSelection.only("Prune"), .only("Gunzip", "Prune")] {
      let error = #expect(throws: DownloadError.self) { try misfit.check(steps) }
      #expect(error?.code == .invalidRequest)
      #expect(error?.message.contains("Prune takes a directory but is given a file") == true)
    }
  }

  @Test func aStepThatIsGoneSinceIsNotPassedOver() async throws {
    let first = try await Downloader(options: options.suspended) {
      FakeSource([url: [.init(bytes)]])
      storage
      ledger
      adding(1)
      adding(2)
    }
    try await first.add(DownloadRequest(url, id: "a").with(\.steps, .only("Add2")))
    await first.shutdown()
    let second = try await Downloader(options: options) {
      FakeSource([url: [.init(bytes)]])
      storage
      ledger
      FakeRetryPolicy(.giveUp)
      adding(1)
    }
    let download = try #require(try await second.download("a"))
    await #expect { try await download.value } throws: { ($0 as? DownloadError)?.code == .invalidRequest }
    #expect(storage.published.isEmpty)
    await second.shutdown()
  }

  @Test func aStepThatMayBeLeftOutProvesNoDigest() {
    let pipeline = Pipeline {
      FakeSource(everyURL: .init([]))
      storage
      Verify().when { _ in true }
      Verify()
    }
    #expect(pipeline.steps.map(\.verifiesDigests) == [false, true])
    #expect(pipeline.steps.map(\.name) == ["Verify", "Verify"])
    #expect(pipeline.steps[0].summary == "conditional")
    #expect(StepSelection.all.verifiesDigests(of: pipeline.steps))
    #expect(!StepSelection.none.verifiesDigests(of: pipeline.steps))
  }

  private struct Verify: UniversalPostProcessor, DigestVerifying {
    func process(_ artifact: Artifact, in context: ProcessingContext) async throws -> Artifact { artifact }
  }

  @Test func selectionsComeBack() throws {
    for selection in [StepSelection.all, .none, .only("b", "a")] {
      let data = try JSONEncoder().encode([selection])
      #expect(try JSONDecoder().decode([StepSelection].self, from: data) == [selection])
    }
  }

  // MARK: Names

  @Test(arguments: [
    (DownloadRequest.Destination(), "file.bin"), (.init(name: "named.x"), "named.x"),
    (.init(name: "named.x", nameUse: .fallback), "named"),
  ])
  func aStepThatRenamesWinsOverAFallback(_ destination: DownloadRequest.Destination, _ name: String) async throws {
    let downloader = try await Downloader(options: options) {
      FakeSource([url: [.init(bytes)]])
      storage
      ledger
      FakePostProcessor<File, File>(name: "Unpack") { file, _ in
        var output = file.artifact
        output.name = String(output.name.dropLast(2))
        return File(output)
      }
    }
    let download = try await downloader.add(DownloadRequest(url, id: "a", destination: destination))
    #expect(try await download.value.name == name)
    #expect(try await downloader.status(of: "a")?.name == name)
    await downloader.shutdown()
  }
}

extension DownloaderOptions {
  fileprivate var suspended: DownloaderOptions {
    var copy = self
    copy.startsSuspended = true
    return copy
  }
}
