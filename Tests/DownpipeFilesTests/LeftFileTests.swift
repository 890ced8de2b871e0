import DownpipeCore
import DownpipeFiles
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// A file that is fetched again under another name: a step has moved it to its place, and a later step has not let it
/// finish. Both files are the download's then.
@Suite(.endsHangs)
struct LeftFileTests {
  private let folder: TemporaryFolder
  private let url = URL(string: "https://example.org/film")!
  private let otherURL = URL(string: "https://example.org/other")!
  private let bytes = DownloadFixtures.pattern(size: 10_000)
  private let newBytes = DownloadFixtures.pattern(size: 12_000, seed: 2)
  /// The number of calls of the last step.
  private let checks = Watched(0)

  /// How far the second fetch is.
  enum Moment: String, CaseIterable, Sendable { case failed, damaged, running, paused }

  init() throws { folder = try TemporaryFolder() }

  /// A downloader of a server that names the file differently each time.
  /// - Parameter check: What the last step does; receives the number of its call, starting at 1.
  private func downloader(
    _ policy: ConflictPolicy = .keepBoth, names: [String] = ["a.bin", "b.bin"],
    retry: FakeRetryPolicy = FakeRetryPolicy(.giveUp), _ check: @escaping @Sendable (Int) async throws -> Void
  ) async throws -> Downloader {
    let scripts = names.enumerated().map { index, name in
      FakeSource.Script(index == 0 ? bytes : newBytes).with { $0.suggestedName = name }
    }
    let source = FakeSource([
      url: scripts, otherURL: [FakeSource.Script(newBytes).with { $0.suggestedName = "c.bin" }],
    ])
    let (store, films, checks) = (folder.path("store"), folder.path("films"), checks)
    return try await Downloader(options: DownloaderOptions(time: VirtualTime())) {
      source
      retry
      FileStore(store)
      MemoryLedger()
      MoveInto(films, onConflict: policy)
      Then { _, _ in
        let number = checks.update {
          $0 += 1
          return $0
        }
        try await check(number)
      }
    }
  }

  /// A download with the finished file `a.bin`, and with `b.bin` of a second fetch, which has not finished.
  private func twoFiles(_ moment: Moment, _ policy: ConflictPolicy = .keepBoth) async throws -> (Downloader, Download) {
    let never = Watched(false)
    let downloader = try await downloader(policy) { number in
      guard number == 2 else { return }
      switch moment {
      case .failed: throw DownloadError(.processing, "not good")
      // Its bytes are given up at once.
      case .damaged: throw DownloadError(.damaged, "not good")
      case .running, .paused:
        await never.wait { $0 }
        throw CancellationError()
      }
    }
    let download = try await downloader.add(DownloadRequest(url, id: "film"))
    _ = try await download.value
    #expect(try films() == ["a.bin"])
    try await download.restart()
    switch moment {
    case .failed, .damaged: await #expect(throws: DownloadError.self) { _ = try await download.value }
    case .running: await checks.wait { $0 == 2 }
    case .paused:
      await checks.wait { $0 == 2 }
      #expect(try await download.pause())
    }
    #expect(try films() == ["a.bin", "b.bin"])
    return (downloader, download)
  }

  private func films() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: folder.path("films")).sorted()
  }

  @Test("both are removed with the download", arguments: Moment.allCases, [false, true])
  func removed(_ moment: Moment, isForAll: Bool) async throws {
    let (downloader, download) = try await twoFiles(moment)
    if isForAll {
      #expect(try await downloader.removeAll(deletingFiles: true) == 1)
    } else {
      #expect(try await download.remove(deletingFile: true))
    }
    #expect(try films() == [])
    await downloader.shutdown()
  }

  @Test("both are deleted after the download was cancelled", arguments: Moment.allCases, [false, true])
  func cancelled(_ moment: Moment, isDiscarded: Bool) async throws {
    let (downloader, download) = try await twoFiles(moment)
    #expect(try await download.cancel())
    if isDiscarded {
      #expect(try await download.discard())
    } else {
      #expect(try await download.remove(deletingFile: true))
    }
    #expect(try films() == [])
    await downloader.shutdown()
  }

  @Test("a restart replaces both", arguments: Moment.allCases, [ConflictPolicy.keepBoth, .fail])
  func restarted(_ moment: Moment, _ policy: ConflictPolicy) async throws {
    let (downloader, download) = try await twoFiles(moment, policy)
    try await download.restart()
    #expect(try await download.value.name == "b.bin")
    #expect(try films() == ["b.bin"])
    #expect(try folder.read("films/b.bin") == newBytes)
    await downloader.shutdown()
  }

  @Test("the file of another URL replaces both", arguments: Moment.allCases)
  func changedURL(_ moment: Moment) async throws {
    let (downloader, download) = try await twoFiles(moment)
    try await download.update { [otherURL] in $0.url = otherURL }
    if moment != .running { try await download.resume() }
    #expect(try await download.value.name == "c.bin")
    #expect(try films() == ["c.bin"])
    await downloader.shutdown()
  }

  @Test("files that a later step finds damaged are not left under their other names")
  func damaged() async throws {
    let retry = FakeRetryPolicy { _ in .restart(after: .zero) }
    let downloader = try await downloader(names: ["a.bin", "b.bin", "c.bin"], retry: retry) { number in
      if number < 3 { throw DownloadError(.damaged, "not good") }
    }
    #expect(try await downloader.add(DownloadRequest(url, id: "film")).value.name == "c.bin")
    #expect(try films() == ["c.bin"])
    await downloader.shutdown()
  }

  @Test("a destination that is given after the file was moved is that of the file", arguments: [false, true])
  func changedDestination(isPaused: Bool) async throws {
    let never = Watched(false)
    let downloader = try await downloader { number in
      guard number == 1 else { return }
      guard isPaused else { throw DownloadError(.processing, "not good") }
      await never.wait { $0 }
      throw CancellationError()
    }
    let download = try await downloader.add(DownloadRequest(url, id: "film"))
    await checks.wait { $0 == 1 }
    if isPaused {
      #expect(try await download.pause())
    } else {
      await #expect(throws: DownloadError.self) { _ = try await download.value }
    }
    try await download.update { $0.destination.name = "d.bin" }
    #expect(try films() == ["a.bin"])
    try await download.resume()
    #expect(try await download.value.name == "d.bin")
    #expect(try films() == ["d.bin"])
    await downloader.shutdown()
  }
}
