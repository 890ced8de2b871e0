import DownpipeCore
import DownpipePOSIX
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeFiles

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// The steps in downloads, before and after publication, and when the chain is interrupted.
@Suite(.endsHangs)
struct StepChainTests {
  private let bytes = DownloadFixtures.pattern(size: 100_000)
  private let url = URL(string: "https://example.org/dir/file.bin")!
  private let date = Date(timeIntervalSince1970: 784_111_777)
  private let folder: TemporaryFolder
  private let ledger = MemoryLedger()
  private let source: FakeSource

  init() throws {
    folder = try TemporaryFolder()
    var script = FakeSource.Script(bytes)
    script.validator?.lastModified = date
    source = FakeSource([url: [script]])
  }

  private func fetch(@StepList _ steps: () throws -> [PipelineStep]) async throws -> Artifact {
    let steps = Steps(steps: try steps())
    let downloader = try await Downloader(options: DownloaderOptions(time: VirtualTime())) {
      source
      FakeRetryPolicy(.giveUp)
      FileStore(folder.path("store"))
      ledger
      steps
    }
    do {
      let known = try await downloader.download("a")
      try await known?.resume()
      let download: Download
      if let known { download = known } else { download = try await downloader.add(DownloadRequest(url, id: "a")) }
      let artifact = try await download.value
      #expect(await downloader.pipeline.storage.contains(artifact), "what is recorded is what is on the disk")
      await downloader.shutdown()
      return artifact
    } catch {
      await downloader.shutdown()
      throw error
    }
  }

  private func failing(_ name: String) -> FakePostProcessor<File, File> {
    FakePostProcessor(name: name) { _, _ in throw DownloadError(.processing, "stop here") }
  }

  private func status(_ path: String?) throws -> FileStatus { try FileSystem.system.status(Entry(path ?? "")) }

  /// All files; the store's own folder has one with its random name.
  private func files() throws -> [String] {
    try folder.tree().keys.filter { $0 != "store/.downpipe/name/" }.sorted()
  }

  @Test("before publication the partial gets the date and the permissions, and the published file has them")
  func beforePublication() async throws {
    let artifact = try await fetch {
      try SetPermissions(0o640)
      SetModificationDate()
    }
    let status = try status(artifact.path)
    #expect(status.modifiedAt == date && status.permissions == 0o640 && artifact.modifiedAt == date)
    #expect(try files() == ["store/file.bin"])
  }

  @Test func afterMoveInto() async throws {
    let artifact = try await fetch {
      try MoveInto(template: folder.path("moved/{year}/{name}"))
      SetModificationDate()
      try SetPermissions(0o600)
      Quarantine()
    }
    let status = try status(artifact.path)
    #expect(artifact.path == folder.path("moved/1994/file.bin"))
    #expect(status.modifiedAt == date && status.permissions == 0o600 && artifact.modifiedAt == date)
  }

  @Test("the process ends after the date was set and before it was recorded: the file is found, not moved twice")
  func endAfterTheDateOfAPublishedFile() async throws {
    let dying = FakePostProcessor<File, File>(name: "SetModificationDate") { file, context in
      _ = try await SetModificationDate().process(file, in: context)
      throw DownloadError(.processing, "the process ends")
    }
    await #expect(throws: DownloadError.self) {
      try await fetch {
        MoveInto(folder.path("moved"))
        dying
      }
    }
    #expect(try status(folder.path("moved/file.bin")).modifiedAt == date)
    let artifact = try await fetch {
      MoveInto(folder.path("moved"))
      SetModificationDate()
    }
    #expect(artifact.path == folder.path("moved/file.bin") && artifact.modifiedAt == date)
    #expect(source.requests.count == 1)
    #expect(try folder.tree()["moved/file (1).bin"] == nil)
  }

  @Test("a chain that starts again from a partial with other attributes ends as if it had not been interrupted")
  func restartOfTheChain() async throws {
    await #expect(throws: DownloadError.self) {
      try await fetch {
        SetModificationDate()
        try SetPermissions(0o440)
        failing("Other")
      }
    }
    #expect(try status(folder.path("store/.downpipe/partials/a.1.part")).permissions == 0o440)
    // Another chain.
    let artifact = try await fetch {
      Then("first") { _, _ in }
      try SetPermissions(0o440)
    }
    #expect(try status(artifact.path).permissions == 0o440)
    #expect(source.requests.count == 1, "the bytes were there")
    #expect(try files() == ["store/file.bin"])
  }

  @Test("a restarted chain without the step publishes a file with the usual permissions")
  func restartWithoutTheStep() async throws {
    await #expect(throws: DownloadError.self) {
      try await fetch {
        try SetPermissions(0o700)
        failing("Other")
      }
    }
    let artifact = try await fetch { Then("first") { _, _ in } }
    let usual = try status(try folder.write([1], to: "usual")).permissions
    #expect(try status(artifact.path).permissions == usual)
  }

  @Test("a chain that goes on keeps what the steps before have set")
  func goingOn() async throws {
    await #expect(throws: DownloadError.self) {
      try await fetch {
        SetModificationDate()
        try SetPermissions(0o440)
        failing("Then")
      }
    }
    let artifact = try await fetch {
      SetModificationDate()
      try SetPermissions(0o440)
      Then { _, _ in }
    }
    let status = try status(artifact.path)
    #expect(status.permissions == 0o440 && status.modifiedAt == date && artifact.modifiedAt == date)
    #expect(source.requests.count == 1)
  }

  @Test("a partial that its step has made read-only is opened, and copied before it is changed")
  func readOnlyPartials() async throws {
    let key = PartialKey(id: "r", generation: 1)
    let store = FileStore(folder.path("store"))
    _ = try await store.staged(bytes, key)
    let path = folder.path("store/.downpipe/partials/r.1.part")
    chmod(path, 0o400)
    let refusals = Watched(0)
    // As for users other than the administrator.
    let calls = Calls { _, call, name in
      guard call == .open, name == path else { return .proceed }
      let isFirst = refusals.update { count in
        count += 1
        return count == 1
      }
      return isFirst ? .fail(EACCES) : .proceed
    }
    let partial = try await FileStore(folder.path("store"), system: calls.system).openPartial(key, isNew: false)
    #expect(try partial.size() == Int64(bytes.count) && partial.read(at: 10, count: 5) == Array(bytes[10..<15]))
    try partial.put([7], at: 0)
    try await partial.synchronize()
    try partial.close()
    #expect(try folder.read("store/.downpipe/partials/r.1.part") == [7] + bytes.dropFirst())
    #expect(try status(path).permissions == 0o600)
  }
}

/// Steps as one stage, so that a test can name them in a closure.
private struct Steps: Stage {
  let steps: [PipelineStep]
  func contribute(to parts: inout PipelineParts) { parts.steps += steps }
}

@resultBuilder private enum StepList {
  static func buildBlock(_ stages: any Stage...) -> [PipelineStep] {
    var parts = PipelineParts()
    for stage in stages { stage.contribute(to: &parts) }
    return parts.steps
  }
}
