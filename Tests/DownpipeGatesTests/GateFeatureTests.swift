import DownpipeCore
import DownpipeGates
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// The rows of the reference systems that gates fulfil, with a downloader.
@Suite(.endsHangs)
struct GateFeatureTests {
  private let bytes = [UInt8](repeating: 7, count: 300_000)

  private static func table(_ kind: InterfaceKind) -> RouteTable {
    RouteTable([Route(IPAddress(family: .v4, bits: 0), length: 0, interface: "if0")], kinds: ["if0": kind])
  }

  private static let overMobile = DownloadState.waiting(
    .gate(id: "WiFiOnly", text: "WiFiOnly: the default route is over if0"))

  /// Routes that change, with the clock that the gate waits by.
  private struct Network {
    let routes: FakeRoutes
    let time = VirtualTime()

    init(_ kind: InterfaceKind) { routes = FakeRoutes(GateFeatureTests.table(kind)) }

    func change(to table: RouteTable) async {
      routes.set(table)
      routes.tell()
      await time.sleepers(atLeast: 1)
      time.advance(by: RouteWatch.settlingTime)
    }
  }

  private func wait(for state: DownloadState, of download: Download) async {
    for await event in download.events {
      if case .state(state) = event.kind { return }
    }
    Issue.record("the download ended before it was \(state)")
  }

  @Test("Asset manager: silent and pre-downloads wait for Wi-Fi, manual downloads do not")
  func intents() async throws {
    let network = Network(.cellular)
    let storage = FakeStorage()
    let gate = WiFiOnly(unless: .userInitiated, routes: network.routes, time: network.time)
    let downloader = try await Downloader {
      FakeSource(everyURL: .init(bytes))
      storage
      gate
    }
    let silent = try await downloader.add(DownloadRequest("https://example.org/1", intent: .silent))
    let prefetch = try await downloader.add(DownloadRequest("https://example.org/2", intent: .prefetch))
    let manual = try await downloader.add(DownloadRequest("https://example.org/3", intent: .userInitiated))
    #expect(storage.bytes(of: try await manual.value) == bytes)
    for download in [silent, prefetch] { #expect(try await download.status.state == Self.overMobile) }
    await network.change(to: Self.table(.wifi))
    for download in [silent, prefetch] { #expect(storage.bytes(of: try await download.value) == bytes) }
    await downloader.shutdown()
  }

  @Test("CX: network changes are watched; transfers pause and go on")
  func networkChanges() async throws {
    let network = Network(.wifi)
    let storage = FakeStorage()
    let url = try #require(URL(string: "https://example.org/film"))
    let source = FakeSource([url: [.init(bytes).holding(after: 200_000), .init(bytes)]])
    let gate = WiFiOnly(routes: network.routes, time: network.time)
    let downloader = try await Downloader {
      source
      storage
      gate
    }
    let download = try await downloader.add(DownloadRequest(url))
    await source.held(atLeast: 1)
    await network.change(to: Self.table(.cellular))
    await wait(for: Self.overMobile, of: download)
    #expect(source.readers == 0)
    await network.change(to: RouteTable())
    await wait(for: .waiting(.gate(id: "WiFiOnly", text: "WiFiOnly: there is no default route")), of: download)
    await network.change(to: Self.table(.wifi))
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(try await download.status.resumedFrom == 200_000)
    await downloader.shutdown()
  }

  @Test("CX: “allow cellular” is changed by the user and takes effect on running transfers")
  func allowCellular() async throws {
    let network = Network(.cellular)
    let storage = FakeStorage()
    let url = try #require(URL(string: "https://example.org/film"))
    let source = FakeSource([url: [.init(bytes).holding(after: 200_000), .init(bytes)]])
    let downloader = try await Downloader {
      source
      storage
    }
    let download = try await downloader.add(DownloadRequest(url))
    await source.held(atLeast: 1)
    await downloader.replace(WiFiOnly(routes: network.routes, time: network.time))
    await wait(for: Self.overMobile, of: download)
    #expect(await downloader.removeGate(id: "WiFiOnly"))
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(try await download.status.resumedFrom == 200_000)
    await downloader.shutdown()
  }

  @Test("ZYL: no activation without network; activation when the network is back")
  func activation() async throws {
    let network = Network(.ethernet)
    network.routes.set(RouteTable())
    let source = FakeSource(everyURL: .init(bytes))
    let storage = FakeStorage()
    let gate = Online(routes: network.routes, time: network.time)
    let downloader = try await Downloader {
      source
      storage
      gate
    }
    let download = try await downloader.add(DownloadRequest("https://example.org/film"))
    await wait(for: .waiting(.gate(id: "Online", text: "Online: there is no default route")), of: download)
    #expect(source.requests.isEmpty)
    await network.change(to: Self.table(.ethernet))
    #expect(storage.bytes(of: try await download.value) == bytes)
    await downloader.shutdown()
  }
}
