import DownpipeCore
import DownpipeGates
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// A download whose size is known does not start while it does not fit above the reserve of ``DiskSpace``.
@Suite(.endsHangs)
struct DiskSpaceStartTests {
  private static let mebibyte: Int64 = 1 << 20
  private static let reserve = 100 * mebibyte

  /// A disk in memory.
  private struct Disk: StorageWrapper {
    let base: any Storage
    let free: Watched<Int64>
    func availableBytes() async throws -> Int64? { free.value }
  }

  private let time = VirtualTime()
  private let free = Watched(reserve)
  private let storage = FakeStorage()
  private let bytes = DownloadFixtures.pattern(size: 3 << 20)

  private func url(_ number: Int) -> URL { URL(filePath: "/").appending(path: "\(number)") }

  private func request(_ number: Int, isKnown: Bool = true) -> DownloadRequest {
    var request = DownloadRequest(url(number), id: DownloadID("d\(number)"), destination: .init(name: "\(number)"))
    if isKnown { request.expectedSize = ByteCount(Int64(bytes.count)) }
    return request
  }

  private var space: DiskSpace {
    DiskSpace(reserve: Self.reserve, at: "/d", time: time) { [free] _ in free.value }
  }

  private func downloader(_ source: FakeSource, _ gate: any Gate) async throws -> Downloader {
    try await Downloader(options: DownloaderOptions(time: time, random: { 0.5 }, minimumSpeed: nil)) {
      source
      gate
      Disk(base: storage, free: free)
    }
  }

  /// Sets the free space above the reserve, in mebibytes.
  private func leave(_ mebibytes: Int64) { free.update { $0 = Self.reserve + mebibytes * Self.mebibyte } }

  /// Waits until a download waits for the disk, and returns why.
  private func reason(of download: Download) async throws -> String {
    for await event in download.events {
      if case .state(.waiting(.missing(.disk, _, let error))) = event.kind {
        #expect(error.stage == "DiskSpace")
        return error.message
      }
    }
    return ""
  }

  /// Lets the downloader look at the disk.
  private func look() async {
    await time.sleeper(dueIn: .seconds(1), purpose: .room)
    time.advance(by: .seconds(1))
  }

  @Test("A download of an expected size asks no server before it fits")
  func expectedSize() async throws {
    leave(2)
    let source = FakeSource([url(0): [.init(bytes)]])
    let downloader = try await downloader(source, space)
    let download = try await downloader.add(request(0))
    #expect(
      try await reason(of: download)
        == "the download needs 3.00 MiB, and 2.00 MiB of the disk are left for it: free some space")
    #expect(source.requests.isEmpty && storage.partials.isEmpty)
    // Some space is not enough.
    free.update { $0 += 1 << 19 }
    await look()
    await time.sleeper(dueIn: .seconds(1), purpose: .room)
    #expect(source.requests.isEmpty)
    leave(3)
    time.advance(by: .seconds(1))
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(source.requests.count == 1)
    await downloader.shutdown()
  }

  @Test("A download whose size the server states waits without a byte on disk")
  func statedSize() async throws {
    leave(2)
    let source = FakeSource([url(0): [.init(bytes), .init(bytes)]])
    let downloader = try await downloader(source, space)
    let download = try await downloader.add(request(0, isKnown: false))
    _ = try await reason(of: download)
    #expect(source.requests.count == 1 && storage.partials.isEmpty)
    #expect(try await download.status.progress.total == .known(Int64(bytes.count)))
    leave(3)
    await look()
    #expect(storage.bytes(of: try await download.value) == bytes)
    await downloader.shutdown()
  }

  @Test("Downloads that fit one by one and not together start one after the other")
  func together() async throws {
    leave(4)
    let source = FakeSource([url(0): [.init(bytes).holding(after: 1000)], url(1): [.init(bytes)]])
    let downloader = try await downloader(source, space)
    let first = try await downloader.add(request(0))
    await source.held(atLeast: 1)
    let second = try await downloader.add(request(1))
    #expect(try await reason(of: second).contains("needs 3.00 MiB, and 1.00 MiB of the disk"))
    // The space is free, but not for the second one.
    await look()
    await time.sleeper(dueIn: .seconds(1), purpose: .room)
    #expect(source.requests.count == 1)
    source.release()
    _ = try await first.value
    leave(3)
    time.advance(by: .seconds(1))
    _ = try await second.value
    #expect(source.requests.map(\.id) == ["d0", "d1"])
    await downloader.shutdown()
  }

  @Test("Sizes below a mebibyte, unknown sizes and exempt downloads start")
  func others() async throws {
    leave(0)
    let small = Array(bytes.prefix(1 << 19))
    let source = FakeSource([
      url(0): [.init(small)], url(1): [.init(bytes).with { $0.announcesLength = false }], url(2): [.init(bytes)],
    ])
    let downloader = try await downloader(source, space.unless { $0.tags.contains("urgent") })
    var urgent = request(2)
    urgent.tags = ["urgent"]
    let downloads = try await downloader.add(contentsOf: [
      request(0, isKnown: false), request(1, isKnown: false), urgent,
    ])
    for download in downloads { _ = try await download.value }
    await downloader.shutdown()
  }

  @Test("Combined gates leave the smallest room, or the largest where one is enough")
  func combinations() async throws {
    leave(5)
    let larger = DiskSpace(reserve: 0, at: "/e", time: time) { _ in 7 }
    let candidate = Candidate()
    #expect(try await space.room(for: candidate) == 5 * Self.mebibyte)
    #expect(try await space.and(larger).and(WiFiOnly()).room(for: candidate) == 7)
    #expect(try await space.or(larger).room(for: candidate) == 5 * Self.mebibyte)
    #expect(try await space.or(WiFiOnly()).room(for: candidate) == nil)
    #expect(try await space.not().room(for: candidate) == nil)
    #expect(try await space.unless(.silent).room(for: Candidate(intent: .silent)) == nil)
    #expect(try await space.unless(.silent).room(for: candidate) == 5 * Self.mebibyte)
  }
}
