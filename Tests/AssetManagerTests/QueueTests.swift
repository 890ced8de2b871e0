import Downpipe
import DownpipeGates
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import AssetManager

/// The rows of FEATURES A about who goes next.
@Suite(.endsHangs)
struct QueueTests {
  /// Routes over an interface that a test changes.
  private final class Routes: RouteSource {
    private let kind: Watched<InterfaceKind>
    private let events = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

    init(_ kind: InterfaceKind) { self.kind = Watched(kind) }

    func change(to kind: InterfaceKind) {
      self.kind.update { $0 = kind }
      events.continuation.yield()
    }

    func read() throws -> RouteTable {
      RouteTable([Route(IPAddress(family: .v4, bits: 0), length: 0, interface: "if0")], kinds: ["if0": kind.value])
    }

    func changes() -> AsyncStream<Void>? { events.stream }
  }

  @Test("asset manager: silent downloads, pre-downloads, manual downloads; Wi-Fi only for some")
  func intents() async throws {
    let folder = try TemporaryFolder()
    let (routes, time) = (Routes(.cellular), VirtualTime())
    let source = FakeSource(everyURL: .init([1, 2, 3]))
    let wifi = WiFiOnly(unless: .userInitiated, routes: routes, time: time)
    let assets = try await Assets(folder.path, wifi: wifi, source: source)
    func asset(_ intent: Intent) throws -> Asset {
      Asset(url: try #require(URL(string: "https://example.org/\(intent)")), intent: intent)
    }
    let silent = try await assets.get(asset(.silent))
    let prefetch = try await assets.get(asset(.prefetch))
    let unstated = try await assets.get(Asset(url: try #require(URL(string: "https://example.org/unstated"))))
    _ = try await assets.get(asset(.userInitiated)).value
    for download in [silent, prefetch, unstated] {
      let closed = DownloadState.waiting(.gate(id: "WiFiOnly", text: "WiFiOnly: the default route is over if0"))
      #expect(try await download.status.state == closed)
    }
    #expect(source.requests.map(\.url.lastPathComponent) == ["userInitiated"])
    routes.change(to: .wifi)
    await time.sleepers(atLeast: 1)
    time.advance(by: RouteWatch.settlingTime)
    for download in [silent, prefetch, unstated] { _ = try await download.value }
    await assets.close()
  }

  @Test("asset manager: the pipeline has Wi-Fi only for what the user has not asked for")
  func pipeline() async throws {
    let folder = try TemporaryFolder()
    let assets = try await Assets(folder.path)
    let pipeline = await assets.downloader.pipeline
    #expect(pipeline.gates.map { "\($0.name): \($0.summary)" } == ["WiFiOnly: unless userInitiated"])
    await assets.close()
  }

  @Test("asset manager: 3 at once, the rest wait, the highest priority next")
  func order() async throws {
    let names = ["a", "b", "c", "silent", "manual", "prefetch"]
    let test = try await TestAssets(held: names)
    try await test.open { assets in
      for name in ["a", "b", "c"] { try await assets.get(test.asset(name)) }
      try await test.requests(3)
      var waiting: [Download] = []
      // By their intents; and between manual and pre-downloads, the app's own priority.
      for intent in [Intent.silent, .userInitiated, .prefetch] {
        waiting.append(try await assets.get(test.asset(intent == .userInitiated ? "manual" : "\(intent)", intent)))
      }
      for download in waiting {
        #expect(try await download.status.state == .waiting(.limit(id: "Limits", text: "3 of 3 downloads are running")))
      }
      #expect(test.requested.count == 3)
      // Each end makes room for one.
      for (number, name) in ["a", "b", "c"].enumerated() {
        test.send(name)
        try await test.requests(4 + number)
      }
      #expect(Set(test.requested.prefix(3)) == ["a", "b", "c"])
      #expect(test.requested.dropFirst(3) == ["manual", "prefetch", "silent"])
    }
    await test.shutdown()
  }

  @Test("asset manager: the same URL again replaces callbacks and priority")
  func again() async throws {
    let test = try await TestAssets(held: ["a", "b", "c", "d", "e"])
    try await test.open { assets in
      for name in ["a", "b", "c"] { try await assets.get(test.asset(name)) }
      try await test.requests(3)
      try await assets.get(test.asset("d", .prefetch))
      let (first, second) = (Received(), Received())
      let silent = try await assets.get(test.asset("e", .silent), first.callback)
      await first.wait(for: .waiting)
      let again = try await assets.get(test.asset("e", .userInitiated), second.callback)
      await second.wait(for: .waiting)
      let seen = first.count
      #expect(silent.isNew && !again.isNew && silent.id == again.id)
      #expect(try await again.status.request.priority == .high)
      #expect(try await again.status.request.intent == .userInitiated)
      test.send("a")
      try await test.requests(4)
      #expect(test.requested.last == "e", "it has overtaken d")
      test.send("e")
      await second.wait(for: .finished)
      #expect(second.phases.first == .waiting, "the present state comes first")
      #expect(first.count == seen, "the replaced callback is not called again")
    }
    #expect(test.requested.count { $0 == "e" } == 1)
    await test.shutdown()
  }
}
