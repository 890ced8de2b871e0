import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// A transfer is cut, and then the server sends another file as a whole.
@Suite(.endsHangs)
struct ReplacedFileTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()
  private let cut = DownloadError(.network, "cut")

  /// A server without ranges and validators, whose file changes after a cut.
  private func changingSource(_ other: FakeSource.Script) -> FakeSource {
    func bare(_ script: FakeSource.Script) -> FakeSource.Script {
      script.with {
        $0.honoursRanges = false
        $0.validator = nil
      }
    }
    return FakeSource([url: [bare(.init(bytes)).failing(after: 60_000, with: cut), bare(other), .status(500)]])
  }

  private func changed(at offset: Int, count: Int = 100_000) -> [UInt8] {
    var other = Array((bytes + bytes).prefix(count))
    other[offset] ^= 1
    return other
  }

  private let restarting = FakeRetryPolicy {
    $0.error.code == .contentChanged ? .restart(after: .zero) : .resume(after: .zero)
  }

  @Test(
    "a whole body of another file takes the place of the bytes on disk, without a third request",
    arguments: [
      0, 1, 30_000, 59_999,
    ])
  func anotherFileWithoutRanges(firstDifference: Int) async throws {
    let other = changed(at: firstDifference)
    let source = changingSource(.init(other))
    let observer = RecordingObserver()
    let downloader = try await downloader(source, observers: [observer], retry: restarting)
    let artifact = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(storage.bytes(of: artifact) == other)
    #expect(source.requests.count == 2)
    await downloader.shutdown()
    let restarts = observer.events(of: "a").compactMap {
      if case .restarted(let error) = $0 { error.code } else { nil }
    }
    #expect(restarts == [.contentChanged])
  }

  @Test("two attempts are enough for a file that has changed, and three for one that changes again")
  func attempts() async throws {
    for times in 1...2 {
      let others = (1...times).map { changed(at: $0) }
      let bare = { (script: FakeSource.Script) in
        script.with {
          $0.honoursRanges = false
          $0.validator = nil
        }
      }
      let cutOff = others.dropLast().map { bare(.init($0)).failing(after: 60_000, with: cut) }
      let source = FakeSource([
        url: [bare(.init(bytes)).failing(after: 60_000, with: cut)] + cutOff + [
          bare(.init(others[times - 1])), .status(500),
        ]
      ])
      let downloader = try await downloader(
        source, retry: FakeRetryPolicy { Retry(.exponential(attempts: 1 + times, base: .zero)).decide($0) })
      let artifact = try await downloader.add(DownloadRequest(url, id: DownloadID("\(times)"))).value
      #expect(storage.bytes(of: artifact) == others[times - 1])
      await downloader.shutdown()
    }
  }

  @Test(
    "the other file may be shorter or longer than the bytes on disk if its length is not announced",
    arguments: [
      40_000, 150_000,
    ])
  func anotherFileOfAnotherSize(count: Int) async throws {
    let other = changed(at: 30_000, count: count)
    let source = changingSource(FakeSource.Script(other).with { $0.announcesLength = false })
    let downloader = try await downloader(source, retry: restarting)
    let artifact = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(storage.bytes(of: artifact) == other)
    #expect(source.requests.count == 2)
    await downloader.shutdown()
  }

  @Test("a file that has grown is fetched from the start, also if its length is not announced")
  func aFileThatHasGrown() async throws {
    let other = bytes + changed(at: 0, count: 50_000)
    let grown = FakeSource.Script(other).with {
      $0.honoursRanges = false
      $0.validator = nil
      $0.announcesLength = false
    }
    let source = FakeSource([url: [FakeSource.Script(bytes).failing(after: 60_000, with: cut), grown]])
    let downloader = try await downloader(
      source, retry: FakeRetryPolicy { Retry(.exponential(attempts: 3, base: .zero)).decide($0) })
    let artifact = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(storage.bytes(of: artifact) == other)
    await downloader.shutdown()
  }

  @Test("a partial is of one file at every moment, also when the other file's body is cut")
  func anotherFileIsCut() async throws {
    let other = changed(at: 30_000)
    let script = FakeSource.Script(other).holding(after: 40_000).failing(after: 50_000, with: cut)
    let source = changingSource(script)
    let downloader = try await downloader(
      source,
      retry: FakeRetryPolicy { failure in
        switch failure.error.code {
        case .contentChanged: .restart(after: .zero)
        case .httpStatus: .giveUp
        default: .resume(after: .zero)
        }
      })
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    #expect(storage.partials.values.first == Array(other[..<40_000]), "the old bytes behind the body are gone")
    source.release()
    await #expect(throws: DownloadError.self) { try await download.value }
    #expect(storage.partials.values.first == Array(other[..<50_000]))
    #expect(try await download.status.progress.received == 50_000)
    await downloader.shutdown()
  }

  @Test("a web page takes the place of a page only", arguments: [nil, "text/html; charset=utf-8"])
  func aPageInPlaceOfTheFile(former: String?) async throws {
    let other = changed(at: 30_000)
    let page = FakeSource.Script(other).with { $0.mediaType = "text/html" }
    let source = changingSource(page)
    source.script(
      url,
      FakeSource.Script(bytes).with {
        $0.honoursRanges = false
        $0.validator = nil
        $0.mediaType = former
      }.failing(after: 60_000, with: cut),
      page.with {
        $0.honoursRanges = false
        $0.validator = nil
      }, .init(bytes))
    let downloader = try await downloader(source, retry: restarting)
    let artifact = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(storage.bytes(of: artifact) == (former == nil ? bytes : other))
    #expect(source.requests.count == (former == nil ? 3 : 2))
    await downloader.shutdown()
  }

  @Test("where the retry policy would not restart, the other file is not taken")
  func anotherFileIsNotWanted() async throws {
    let source = changingSource(.init(changed(at: 30_000)))
    let retry = FakeRetryPolicy {
      $0.error.code == .contentChanged ? .giveUp : .resume(after: .zero)
    }
    let downloader = try await downloader(source, retry: retry)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await #expect { try await download.value } throws: { ($0 as? DownloadError)?.code == .contentChanged }
    #expect(storage.published.isEmpty)
    #expect(retry.failures.count { $0.error.code == .contentChanged } == 1, "the policy is asked once")
    await downloader.shutdown()
  }
}
