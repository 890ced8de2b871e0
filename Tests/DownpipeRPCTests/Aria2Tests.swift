import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeRPC

/// The methods of aria2, and what they say of mistakes.
@Suite(.endsHangs)
struct Aria2Tests {
  private let first = "1100000000000001"
  private let second = "1200000000000002"
  private let third = "2000000000000003"

  private func url(_ gid: String) -> JSONValue { .string("https://example.org/\(gid)") }

  // MARK: Adding

  @Test func addingTellsTheGID() async throws {
    let fixture = try await RPCFixture()
    let told = try await fixture.value("aria2.addUri", [url("a")], ["pause": "true"])
    let gid = try #require(told.text)
    #expect(GID(gid)?.text == gid)
    let given = try await fixture.value(
      "aria2.addUri", [url("b")], ["gid": .string("ABCDEF0000000001"), "pause": "true"])
    #expect(given == .string("abcdef0000000001"))
    let order = try await fixture.queue()
    #expect(order == [gid, "abcdef0000000001"])
    #expect(fixture.source.requests.isEmpty)
    await fixture.downloader.shutdown()
  }

  @Test func gidsThatCannotBeUsed() async throws {
    let fixture = try await RPCFixture()
    try await fixture.add(first)
    let used = await fixture.failure("aria2.addUri", [url("b")], ["gid": .string(first)])
    #expect(used == "GID \(first) is used by another download.")
    for gid in ["", "12", "xyz", "0000000000000000", "11000000000000010", "110000000000000g"] {
      let wrong = await fixture.failure("aria2.addUri", [url("b")], ["gid": .string(gid)])
      #expect(wrong == "We encountered a problem while processing the option '--gid'.")
    }
    let order = try await fixture.queue()
    #expect(order == [first])
    await fixture.downloader.shutdown()
  }

  @Test func placesOfAFileBecomeMirrors() async throws {
    let fixture = try await RPCFixture()
    _ = try await fixture.value(
      "aria2.addUri", ["https://a.example/f", "file:///etc/passwd", "https://b.example/f", "https://a.example/f"],
      ["gid": .string(first), "pause": "true"])
    let request = try #require(try await fixture.request(first))
    #expect(request.url.absoluteString == "https://a.example/f")
    #expect(request.mirrors.map { $0.absoluteString } == ["https://b.example/f"])
    await fixture.downloader.shutdown()
  }

  /// Clients choose URLs, so files of this machine have none.
  @Test(arguments: [
    "file:///etc/passwd", "file://localhost/etc/passwd", "FILE:///etc/passwd", "data:,x", "magnet:?xt=urn:btih:00",
    "s3://bucket/key", "/etc/passwd", "https:///etc/passwd", "nonsense", "",
  ])
  func urlsThatAreRefused(text: String) async throws {
    let fixture = try await RPCFixture()
    let message = await fixture.failure("aria2.addUri", [.string(text)], ["pause": "true"])
    #expect(message?.hasPrefix("No URI to download. ") == true)
    let counts = try await fixture.downloader.counts()
    #expect(counts.isEmpty)
    await fixture.downloader.shutdown()
  }

  @Test func urlsAreRequired() async throws {
    let fixture = try await RPCFixture()
    let empty = await fixture.failure("aria2.addUri", [])
    #expect(empty == "URI is not provided.")
    let numbers = await fixture.failure("aria2.addUri", [.integer(1)])
    #expect(numbers == "URI is not provided.")
    let missing = await fixture.failure("aria2.addUri")
    #expect(missing == "The parameter at 0 is required but missing.")
    let text = await fixture.failure("aria2.addUri", url("a"))
    #expect(text == "The parameter at 0 has wrong type.")
    let options = await fixture.failure("aria2.addUri", [url("a")], ["x"])
    #expect(options == "The parameter at 1 has wrong type.")
    await fixture.downloader.shutdown()
  }

  @Test func optionsAreAppliedAndTold() async throws {
    let fixture = try await RPCFixture()
    try await fixture.add(first, ["out": "films/a.mkv", "header": ["A: b"], "user-agent": "test/1", "split": "3"])
    let request = try #require(try await fixture.request(first))
    #expect(request.destination.directory == "films")
    #expect(request.destination.name == "a.mkv")
    #expect(request.headers.fields == [HeaderField("A", "b"), HeaderField("User-Agent", "test/1")])
    let options = try await fixture.value("aria2.getOption", .string(first))
    #expect(options["out"]?.text == "films/a.mkv")
    #expect(options["header"]?.text == "A: b\n")
    #expect(options["split"]?.text == "3")
    #expect(options["dir"]?.text == RPCFixture.directory)
    #expect(options["timeout"]?.text == "60")
    #expect(options["pause"]?.text == "false")
    #expect(options["gid"] == nil)
    #expect(options["max-concurrent-downloads"] == nil)
    await fixture.downloader.shutdown()
  }

  @Test func wrongOptionsAddNothing() async throws {
    let fixture = try await RPCFixture()
    let value = await fixture.failure("aria2.addUri", [url("a")], ["split": "0"])
    #expect(value == "We encountered a problem while processing the option '--split'.")
    let folder = await fixture.failure("aria2.addUri", [url("a")], ["dir": "/etc"])
    #expect(folder?.hasPrefix("The option 'dir' cannot be used: ") == true)
    let name = await fixture.failure("aria2.addUri", [url("a")], ["out": "../a"])
    #expect(name?.hasPrefix("The option 'out' cannot be used: ") == true)
    let field = await fixture.failure("aria2.addUri", [url("a")], ["user-agent": "x\r\nEvil: y"])
    #expect(field?.hasPrefix("The field “User-Agent” cannot be used: ") == true)
    let counts = try await fixture.downloader.counts()
    #expect(counts.isEmpty)
    await fixture.downloader.shutdown()
  }

  @Test func addingAtAPlaceInTheQueue() async throws {
    let fixture = try await RPCFixture()
    for gid in ["1", "2", "3"] { try await fixture.add(gid + "000000000000000") }
    let options: JSONValue = ["gid": "4000000000000000", "pause": "true"]
    _ = try await fixture.value("aria2.addUri", [url("a")], options, .integer(1))
    let order = try await fixture.queue()
    #expect(order.map { $0.prefix(1) } == ["1", "4", "2", "3"])
    let negative = await fixture.failure("aria2.addUri", [url("b")], [:], .integer(-1))
    #expect(negative == "Position must be greater than or equal to 0.")
    let text = await fixture.failure("aria2.addUri", [url("b")], [:], "0")
    #expect(text == "The parameter at 2 has wrong type.")
    // It starts once it is in its place.
    _ = try await fixture.value("aria2.addUri", [url("b")], ["gid": .string(first)], .integer(.max))
    try await fixture.downloader.waitUntilIdle()
    let state = try await fixture.state(first)
    #expect(state == "complete")
    await fixture.downloader.shutdown()
  }

  @Test func aRequestCanBeChangedBeforeItIsAdded() async throws {
    let fixture = try await RPCFixture { $0.prepare = { $0.tags = ["rpc"] } }
    try await fixture.add(first)
    let tags = try await fixture.request(first)?.tags
    #expect(tags == ["rpc"])
    await fixture.downloader.shutdown()
  }

  private struct Refusal: Error, CustomStringConvertible {
    var description: String { "not on Sundays" }
  }

  @Test func theErrorOfAChangeIsTold() async throws {
    let known = try await RPCFixture { $0.prepare = { _ in throw DownloadError(.invalidRequest, "not on Mondays") } }
    let message = await known.failure("aria2.addUri", [url("a")])
    #expect(message == "not on Mondays")
    await known.downloader.shutdown()
    let other = try await RPCFixture { $0.prepare = { _ in throw Refusal() } }
    let text = await other.failure("aria2.addUri", [url("a")])
    #expect(text?.contains("not on Sundays") == true)
    await other.downloader.shutdown()
  }

  // MARK: Metalink

  private func metalink(_ url: String) -> JSONValue {
    let text = """
      <?xml version="1.0" encoding="UTF-8"?>
      <metalink xmlns="urn:ietf:params:xml:ns:metalink">
        <file name="a.bin"><url>\(url)</url></file>
        <file name="folder/b.bin"><url>https://example.org/b</url></file>
      </metalink>
      """
    return .string(Data(text.utf8).base64EncodedString())
  }

  @Test func theFilesOfAMetalinkDocument() async throws {
    let fixture = try await RPCFixture()
    let options: JSONValue = ["pause": "true", "dir": "films", "out": "other", "gid": .string(first)]
    let gids = try await fixture.value("aria2.addMetalink", metalink("https://example.org/a"), options)
    let order = try await fixture.queue()
    #expect(order.count == 2)
    #expect(gids.list?.compactMap { $0.text } == order)
    #expect(!order.contains(first))
    let requests = try await fixture.downloader.statuses(QueueMove.waiting()).map { $0.request.destination }
    #expect(requests.map { $0.directory } == ["films", "films/folder"])
    #expect(requests.map { $0.name } == ["a.bin", "b.bin"])
    await fixture.downloader.shutdown()
  }

  @Test func documentsThatCannotBeUsed() async throws {
    let fixture = try await RPCFixture()
    let text = await fixture.failure("aria2.addMetalink", "<metalink>")
    #expect(text == "The Metalink document is not Base64.")
    let other = await fixture.failure("aria2.addMetalink", .string(Data("nonsense".utf8).base64EncodedString()))
    #expect(other != nil)
    let counts = try await fixture.downloader.counts()
    #expect(counts.isEmpty)
    await fixture.downloader.shutdown()
  }

  /// The schemes that clients may use are also those of their documents.
  @Test func documentsHaveNoOtherSchemes() async throws {
    let fixture = try await RPCFixture { $0.schemes = ["https"] }
    _ = await fixture.call("aria2.addMetalink", metalink("http://example.org/a"), ["pause": "true"])
    let statuses = try await fixture.downloader.statuses()
    #expect(statuses.map { $0.request.url.absoluteString } == ["https://example.org/b"])
    await fixture.downloader.shutdown()
  }

  // MARK: What another program has added

  @Test func placesAndOptionsOfClientsArePrepared() async throws {
    let fixture = try await RPCFixture { $0.prepareChange = { $0.tags.insert("changed by a client") } }
    let request = DownloadRequest(
      URL(string: "https://example.org/own")!, id: DownloadID(first), destination: .init(directory: "own", name: "a")
    )
    .with(\.headers, ["Authorization": "Bearer own"])
    try await fixture.downloader.add(request, paused: true)
    _ = try await fixture.value("aria2.changeOption", .string(first), ["max-tries": "3"])
    let changed = try #require(try await fixture.request(first))
    #expect(changed.tags == ["changed by a client"])
    #expect(changed.headers == request.headers && changed.destination == request.destination)
    let told = try await fixture.value("aria2.getOption", .string(first))
    #expect(told["dir"]?.text == RPCFixture.directory + "/own")
    _ = try await fixture.downloader.update(DownloadID(first)) { $0.tags = [] }
    _ = try await fixture.value(
      "aria2.changeUri", .string(first), .integer(1), [], ["https://example.net/x"], .integer(0))
    let moved = try #require(try await fixture.request(first))
    #expect(moved.tags == ["changed by a client"] && moved.url.host() == "example.net")
    await fixture.downloader.shutdown()
  }

  @Test func theFolderForAllIsKeptRelative() async throws {
    let fixture = try await RPCFixture()
    _ = try await fixture.value("aria2.changeGlobalOption", ["dir": .string(RPCFixture.directory + "/films")])
    #expect(try fixture.downloader.settings(RPCSettings.self).value.options["dir"] == "films")
    try await fixture.add(first)
    _ = try await fixture.value("aria2.changeGlobalOption", ["dir": .string(RPCFixture.directory)])
    let told = try await fixture.value("aria2.getOption", .string(first))
    #expect(told["dir"]?.text == RPCFixture.directory + "/films")
    _ = try await fixture.value("aria2.changeOption", .string(first), ["out": "a"])
    let request = try #require(try await fixture.request(first))
    #expect(request.destination.directory == "films" && request.destination.name == "a")
    await fixture.downloader.shutdown()
  }

  @Test(arguments: [0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, (1 << 32) - 1] as [Int64])
  func sizesOfAnyServerHavePieces(size: Int64) async throws {
    let status = DownloadStatus(
      id: DownloadID(first), request: DownloadRequest(URL(string: "https://example.org/a")!), state: .paused,
      progress: TransferProgress(total: .known(size)), attempts: 0, resumedFrom: 0, bytesFetched: 0, name: nil,
      createdAt: Date(), updatedAt: Date())
    let told = Aria2Status(status: status, gid: GID(status.id), directory: "/d").json(nil)
    #expect(told["totalLength"]?.text == String(size))
    #expect(told["numPieces"]?.text.flatMap { Int64($0) } == Int64((Double(size) / 1_048_576).rounded(.up)))
  }

  // MARK: Telling

  @Test func theStatusOfADownload() async throws {
    let fixture = try await RPCFixture()
    try await fixture.add(first, ["out": "films/a.mkv"])
    let paused = try await fixture.status(first)
    #expect(paused["gid"]?.text == first)
    #expect(paused["status"]?.text == "paused")
    #expect(paused["totalLength"]?.text == "0")
    #expect(paused["dir"]?.text == RPCFixture.directory + "/films")
    #expect(paused["errorCode"] == nil)

    _ = try await fixture.value("aria2.unpause", .string(first))
    try await fixture.downloader.waitUntilIdle()
    let ended = try await fixture.status(first)
    #expect(ended["status"]?.text == "complete")
    #expect(ended["totalLength"]?.text == "1000")
    #expect(ended["completedLength"]?.text == "1000")
    #expect(ended["errorCode"]?.text == "0")
    #expect(ended["connections"]?.text == "0")
    let file = try #require(ended["files"]?.list?.first)
    #expect(file["path"]?.text == RPCFixture.directory + "/films/a.mkv")
    #expect(file["index"]?.text == "1")

    let part = try await fixture.value("aria2.tellStatus", .string(first), ["gid", "status", "nonsense"])
    #expect(part.keys == ["gid", "status"])
    let all = try await fixture.value("aria2.tellStatus", .string(first), [])
    #expect(all.keys == ended.keys)
    await fixture.downloader.shutdown()
  }

  @Test func aFailedDownloadHasACodeOfAria2() async throws {
    let fixture = try await RPCFixture(source: FakeSource(everyURL: FakeSource.Script.status(404)))
    _ = try await fixture.value("aria2.addUri", [url("a")], ["gid": .string(first)])
    try await fixture.downloader.waitUntilIdle()
    let status = try await fixture.status(first)
    #expect(status["status"]?.text == "error")
    #expect(status["errorCode"]?.text == "3")
    #expect(status["errorMessage"]?.text?.isEmpty == false)
    await fixture.downloader.shutdown()
  }

  @Test func theFilesAndPlacesOfADownload() async throws {
    let fixture = try await RPCFixture()
    try await fixture.add(first)
    let places: JSONValue = [["uri": url(first), "status": "waiting"]]
    let told = try await fixture.value("aria2.getUris", .string(first))
    #expect(told == places)
    let files = try await fixture.value("aria2.getFiles", .string(first))
    #expect(files.list?.first?["uris"] == places)
    let servers = await fixture.failure("aria2.getServers", .string(first))
    #expect(servers == "No active download for GID#\(first)")
    await fixture.downloader.shutdown()
  }

  @Test func waitingDownloadsInTheOrderOfTheQueue() async throws {
    let fixture = try await RPCFixture()
    for gid in [first, second, third] { try await fixture.add(gid) }
    func told(_ offset: Int64, _ count: Int64) async throws -> [String] {
      try await fixture.value("aria2.tellWaiting", .integer(offset), .integer(count), ["gid"]).gids
    }
    let pairs: [(Int64, Int64)] = [(0, 10), (1, 1), (3, 1), (0, 0), (-1, 2), (-1, 10), (-3, 1), (-4, 1)]
    var lists: [[String]] = []
    for (offset, count) in pairs { lists.append(try await told(offset, count)) }
    #expect(
      lists == [
        [first, second, third], [second], [], [], [third, second], [third, second, first], [first], [],
      ])
    let negative = await fixture.failure("aria2.tellWaiting", .integer(0), .integer(-1))
    #expect(negative == "The integer parameter at 1 has invalid value: the value must be greater than or equal to 0.")
    let missing = await fixture.failure("aria2.tellWaiting", .integer(0))
    #expect(missing == "The parameter at 1 is required but missing.")
    await fixture.downloader.shutdown()
  }

  /// The newest are told, the oldest of them first.
  @Test func stoppedDownloads() async throws {
    let fixture = try await RPCFixture()
    for gid in [first, second, third] {
      try await fixture.add(gid)
      fixture.time.advance(by: .seconds(1))
      _ = try await fixture.value("aria2.remove", .string(gid))
    }
    func told(_ offset: Int64, _ count: Int64) async throws -> [String] {
      try await fixture.value("aria2.tellStopped", .integer(offset), .integer(count), ["gid"]).gids
    }
    let pairs: [(Int64, Int64)] = [(0, 10), (0, 2), (1, 1), (3, 1), (0, 0), (-1, 2), (-2, 10), (-4, 1)]
    var lists: [[String]] = []
    for (offset, count) in pairs { lists.append(try await told(offset, count)) }
    #expect(
      lists == [
        [first, second, third], [first, second], [second], [], [], [third, second], [second, first], [],
      ])
    _ = try await fixture.value("aria2.changeGlobalOption", ["max-download-result": "2"])
    let kept = try await told(0, 10)
    #expect(kept == [second, third])
    let negative = await fixture.failure("aria2.tellStopped", .integer(0), .integer(-1))
    #expect(negative == "The integer parameter at 1 has invalid value: the value must be greater than or equal to 0.")
    await fixture.downloader.shutdown()
  }

  @Test func activeDownloadsAndSums() async throws {
    let fixture = try await RPCFixture(source: RPCFixture.holdingSource())
    for gid in [first, second, third] {
      _ = try await fixture.value("aria2.addUri", [url(gid)], ["gid": .string(gid)])
    }
    await fixture.source.held(atLeast: 2)
    let active = try await fixture.value("aria2.tellActive", ["gid", "status"])
    #expect(active.gids == [first, second])
    #expect(active.list?.first?["status"]?.text == "active")
    let connections = try await fixture.value("aria2.tellActive", ["connections"])
    #expect(connections.list?.map { $0["connections"]?.text } == ["1", "1"])
    let sums = try await fixture.value("aria2.getGlobalStat")
    #expect(sums["numActive"]?.text == "2")
    #expect(sums["numWaiting"]?.text == "1")
    #expect(sums["numStopped"]?.text == "0")
    let servers = try await fixture.value("aria2.getServers", .string(first))
    #expect(servers.list?.first?["servers"]?.list?.first?["uri"] == url(first))
    let waits = await fixture.failure("aria2.unpause", .string(third))
    #expect(waits == "GID#\(third) cannot be unpaused now")

    let paused = try await fixture.value("aria2.pauseAll")
    #expect(paused == .string("OK"))
    let states = try await fixture.downloader.counts()
    #expect(states == [.paused: 3])
    let resumed = try await fixture.value("aria2.unpauseAll")
    #expect(resumed == .string("OK"))
    fixture.source.release()
    try await fixture.downloader.waitUntilIdle()
    let end = try await fixture.value("aria2.getGlobalStat")
    #expect(end["numStopped"]?.text == "3")
    #expect(end["numStoppedTotal"]?.text == "3")
    await fixture.downloader.shutdown()
  }

  // MARK: Commands

  @Test func pausing() async throws {
    let fixture = try await RPCFixture(source: RPCFixture.holdingSource())
    _ = try await fixture.value("aria2.addUri", [url(first)], ["gid": .string(first)])
    await fixture.source.held(atLeast: 1)
    let paused = try await fixture.value("aria2.pause", .string(first))
    #expect(paused == .string(first))
    let state = try await fixture.state(first)
    #expect(state == "paused")
    let again = await fixture.failure("aria2.forcePause", .string(first))
    #expect(again == "GID#\(first) cannot be paused now")
    let resumed = try await fixture.value("aria2.unpause", .string(first))
    #expect(resumed == .string(first))
    fixture.source.release()
    try await fixture.downloader.waitUntilIdle()
    let late = await fixture.failure("aria2.pause", .string(first))
    #expect(late == "GID#\(first) cannot be paused now")
    let ended = await fixture.failure("aria2.unpause", .string(first))
    #expect(ended == "GID#\(first) cannot be unpaused now")
    await fixture.downloader.shutdown()
  }

  @Test func removing() async throws {
    let fixture = try await RPCFixture()
    try await fixture.add(first)
    try await fixture.add(second)
    let early = await fixture.failure("aria2.removeDownloadResult", .string(first))
    #expect(early == "Could not remove download result of GID#\(first)")
    let removed = try await fixture.value("aria2.remove", .string(first))
    #expect(removed == .string(first))
    let status = try await fixture.status(first)
    #expect(status["status"]?.text == "removed")
    #expect(status["errorCode"]?.text == "31")
    let again = await fixture.failure("aria2.forceRemove", .string(first))
    #expect(again == "Active Download not found for GID#\(first)")
    let result = try await fixture.value("aria2.removeDownloadResult", .string(first))
    #expect(result == .string("OK"))
    let gone = await fixture.failure("aria2.tellStatus", .string(first))
    #expect(gone == "GID \(first) is not found")
    await fixture.downloader.shutdown()
  }

  @Test func purgingRemovesWhatHasEnded() async throws {
    let fixture = try await RPCFixture()
    for gid in [first, second, third] { try await fixture.add(gid) }
    _ = try await fixture.value("aria2.remove", .string(first))
    _ = try await fixture.value("aria2.unpause", .string(second))
    try await fixture.downloader.waitUntilIdle()
    let result = try await fixture.value("aria2.purgeDownloadResult")
    #expect(result == .string("OK"))
    let ids = try await fixture.downloader.statuses().map { $0.id.rawValue }
    #expect(ids == [third])
    await fixture.downloader.shutdown()
  }

  @Test func changingThePosition() async throws {
    let fixture = try await RPCFixture()
    for gid in [first, second, third] { try await fixture.add(gid) }
    func move(_ gid: String, _ number: Int64, _ how: String) async throws -> JSONValue {
      try await fixture.value("aria2.changePosition", .string(gid), .integer(number), .string(how))
    }
    let front = try await move(third, 0, "POS_SET")
    #expect(front == .integer(0))
    let back = try await move(third, 1, "POS_CUR")
    #expect(back == .integer(1))
    let end = try await move(first, 0, "POS_END")
    #expect(end == .integer(2))
    let order = try await fixture.queue()
    #expect(order == [third, second, first])

    let how = await fixture.failure("aria2.changePosition", .string(first), .integer(0), "POS_NONE")
    #expect(how == "Illegal argument.")
    let missing = await fixture.failure("aria2.changePosition", .string(first), .integer(0))
    #expect(missing == "The parameter at 2 is required but missing.")
    let text = await fixture.failure("aria2.changePosition", .string(first), "0", "POS_SET")
    #expect(text == "The parameter at 1 has wrong type.")
    _ = try await fixture.value("aria2.remove", .string(first))
    let ended = await fixture.failure("aria2.changePosition", .string(first), .integer(0), "POS_SET")
    #expect(ended == "GID#\(first) not found in the waiting queue.")
    await fixture.downloader.shutdown()
  }

  @Test func changingThePlaces() async throws {
    let fixture = try await RPCFixture()
    try await fixture.add(first)
    func places() async throws -> [String] {
      let request = try #require(try await fixture.request(first))
      return ([request.url] + request.mirrors).map { $0.absoluteString }
    }
    let old = url(first)
    let added = try await fixture.value(
      "aria2.changeUri", .string(first), .integer(1), [],
      ["https://a.example/f", "file:///etc/passwd", "https://b.example/f", old])
    #expect(added == [.integer(0), .integer(2)])
    let three = try await places()
    #expect(three == ["https://example.org/\(first)", "https://a.example/f", "https://b.example/f"])
    let replaced = try await fixture.value(
      "aria2.changeUri", .string(first), .integer(1), [old, "https://b.example/f", "https://x.example/"],
      ["https://c.example/f"], .integer(0))
    #expect(replaced == [.integer(2), .integer(1)])
    let two = try await places()
    #expect(two == ["https://c.example/f", "https://a.example/f"])

    let index = await fixture.failure("aria2.changeUri", .string(first), .integer(2), [], [])
    #expect(index == "fileIndex is out of range")
    let position = await fixture.failure("aria2.changeUri", .string(first), .integer(1), [], [], .integer(-1))
    #expect(position == "Position must be greater than or equal to 0.")
    let none = await fixture.failure(
      "aria2.changeUri", .string(first), .integer(1), ["https://c.example/f", "https://a.example/f"], [])
    #expect(none == "A download needs a URI: add one in the same call.")
    let same = try await places()
    #expect(same == two)
    _ = try await fixture.value("aria2.remove", .string(first))
    let ended = await fixture.failure("aria2.changeUri", .string(first), .integer(1), [], [])
    #expect(ended == "Cannot remove URIs from GID#\(first)")
    await fixture.downloader.shutdown()
  }

  // MARK: Options

  @Test func changingOptions() async throws {
    let fixture = try await RPCFixture()
    try await fixture.add(first, ["split": "3", "header": "A: b", "out": "a.bin"])
    let checksum = "sha-1=" + String(repeating: "0f", count: 20)
    let changed = try await fixture.value(
      "aria2.changeOption", .string(first),
      [
        "split": "8", "max-download-limit": "1M", "user-agent": "test/1", "dir": "films", "checksum": .string(checksum),
      ])
    #expect(changed == .string("OK"))
    let options = try await fixture.value("aria2.getOption", .string(first))
    #expect(options["split"]?.text == "8")
    #expect(options["max-download-limit"]?.text == "1048576")
    #expect(options["header"]?.text == "A: b\n")
    #expect(options["checksum"]?.text == checksum)
    let request = try #require(try await fixture.request(first))
    #expect(request.headers.fields == [HeaderField("A", "b"), HeaderField("User-Agent", "test/1")])
    #expect(request.destination.directory == "films")
    #expect(request.destination.name == "a.bin")
    #expect(request.expectedDigests.map(\.hex) == [String(repeating: "0f", count: 20)])

    let short = await fixture.failure("aria2.changeOption", .string(first), ["checksum": "sha-256=0f"])
    #expect(short?.hasPrefix("The option 'checksum' cannot be used: ") == true)
    let value = await fixture.failure("aria2.changeOption", .string(first), ["split": "0"])
    #expect(value == "We encountered a problem while processing the option '--split'.")
    let folder = await fixture.failure("aria2.changeOption", .string(first), ["dir": "../x"])
    #expect(folder?.hasPrefix("The option 'dir' cannot be used: ") == true)
    let missing = await fixture.failure("aria2.changeOption", .string(first))
    #expect(missing == "The parameter at 1 is required but missing.")
    let same = try await fixture.request(first)
    #expect(same == request)
    _ = try await fixture.value("aria2.remove", .string(first))
    let ended = await fixture.failure("aria2.changeOption", .string(first), ["split": "8"])
    #expect(ended == "Cannot change option for GID#\(first)")
    await fixture.downloader.shutdown()
  }

  @Test func changingOptionsForAll() async throws {
    let fixture = try await RPCFixture { $0.options = ["rpc-listen-port": "7000", "max-concurrent-downloads": "3"] }
    let before = try await fixture.value("aria2.getGlobalOption")
    #expect(before["rpc-listen-port"]?.text == "7000")
    #expect(before["max-concurrent-downloads"]?.text == "3")
    #expect(before["dir"]?.text == RPCFixture.directory)
    #expect(before["split"]?.text == "5")
    try await fixture.add(first)
    let changed = try await fixture.value(
      "aria2.changeGlobalOption",
      [
        "max-concurrent-downloads": "4", "dir": .string(RPCFixture.directory + "/films"), "user-agent": "test/1",
        "rpc-listen-port": "80", "out": "all", "nonsense": "x", "max-overall-download-limit": "1M",
      ])
    #expect(changed == .string("OK"))
    let after = try await fixture.value("aria2.getGlobalOption")
    #expect(after["max-concurrent-downloads"]?.text == "4")
    #expect(after["rpc-listen-port"]?.text == "7000")
    #expect(after["out"] == nil)
    #expect(after["nonsense"] == nil)
    let settings = try fixture.downloader.settings(RPCSettings.self).value
    #expect(settings.concurrentDownloads == 4)
    #expect(settings.overallRate == .bytesPerSecond(1 << 20))
    #expect(settings.downloadRate == nil)

    // They are for later downloads, and what is given goes before them.
    try await fixture.add(second)
    try await fixture.add(third, ["dir": "other", "user-agent": "test/2"])
    let agents = [
      try await fixture.request(first)?.headers["User-Agent"], try await fixture.request(second)?.headers["User-Agent"],
      try await fixture.request(third)?.headers["User-Agent"],
    ]
    #expect(agents == [nil, "test/1", "test/2"])
    let folders = [
      try await fixture.request(first)?.destination.directory, try await fixture.request(second)?.destination.directory,
      try await fixture.request(third)?.destination.directory,
    ]
    #expect(folders == [nil, "films", "other"])
    await fixture.downloader.shutdown()
  }

  @Test func wrongOptionsForAllChangeNothing() async throws {
    let fixture = try await RPCFixture()
    let folder = await fixture.failure("aria2.changeGlobalOption", ["dir": "/etc", "split": "8"])
    #expect(folder?.hasPrefix("The option 'dir' cannot be used: ") == true)
    let value = await fixture.failure("aria2.changeGlobalOption", ["max-concurrent-downloads": "0"])
    #expect(value == "We encountered a problem while processing the option '--max-concurrent-downloads'.")
    let field = await fixture.failure("aria2.changeGlobalOption", ["referer": "x\r\nEvil: y"])
    #expect(field != nil)
    #expect(try fixture.downloader.settings(RPCSettings.self).value == RPCSettings())
    await fixture.downloader.shutdown()
  }

  // MARK: GIDs

  @Test func gidsCanBeAbbreviated() async throws {
    let fixture = try await RPCFixture()
    try await fixture.add(first)
    try await fixture.add(second)
    try await fixture.add("abc0000000000001")
    let other = "abc0000000000001"
    for (text, gid) in [("11", first), ("12", second), ("A", other), ("aBc0000000000001", other)] {
      let told = try await fixture.status(text)
      #expect(told["gid"]?.text == gid)
    }
    let both = await fixture.failure("aria2.tellStatus", "1")
    #expect(both == "GID 1 is not unique")
    let unknown = await fixture.failure("aria2.tellStatus", "9")
    #expect(unknown == "GID 9 is not found")
    let whole = await fixture.failure("aria2.pause", "00000000000000ff")
    #expect(whole == "GID 00000000000000ff is not found")
    let zero = await fixture.failure("aria2.tellStatus", "0000000000000000")
    #expect(zero == "GID 0000000000000000 is not found")
    for text in ["", "xyz", "1 ", "11000000000000011", "ａｂ"] {
      let invalid = await fixture.failure("aria2.tellStatus", .string(text))
      #expect(invalid == "Invalid GID \(text)")
    }
    await fixture.downloader.shutdown()
  }

  @Test func downloadsThatOthersHaveAddedHaveGIDs() async throws {
    let fixture = try await RPCFixture()
    let id: DownloadID = "a film"
    try await fixture.downloader.add(DownloadRequest("https://example.org/film", id: id), paused: true)
    let gid = GID(id).text
    #expect(GID(gid)?.text == gid)
    let told = try await fixture.value("aria2.tellWaiting", .integer(0), .integer(1))
    #expect(told.gids == [gid])
    let whole = try await fixture.status(gid)
    #expect(whole["gid"]?.text == gid)
    let part = try await fixture.status(String(gid.prefix(6)))
    #expect(part["gid"]?.text == gid)
    let removed = try await fixture.value("aria2.remove", .string(gid))
    #expect(removed == .string(gid))
    await fixture.downloader.shutdown()
  }

  // MARK: Tokens and several calls

  private static func authorize(_ token: String?) throws(RPCFailure) {
    guard token == "secret" else { throw RPCFailure.unauthorized }
  }

  private func result(
    _ fixture: RPCFixture, _ method: String, _ parameters: JSONValue...
  ) async -> Result<JSONValue, RPCFailure> {
    await fixture.aria2.perform(method, parameters, Self.authorize)
  }

  @Test func theTokenComesFirst() async throws {
    let fixture = try await RPCFixture()
    let right = await result(fixture, "aria2.saveSession", "token:secret")
    #expect(right == .success("OK"))
    let others: [[JSONValue]] = [
      [], ["token:wrong"], ["secret"], ["token:"], ["token:secret "], [["token:secret"]], ["Token:secret"],
    ]
    for parameters in others {
      let wrong = await fixture.aria2.perform("aria2.saveSession", parameters, Self.authorize)
      #expect(wrong == .failure(.unauthorized))
    }
    let status = await result(fixture, "aria2.tellStatus", "token:secret", "9")
    #expect(status == .failure(RPCFailure("GID 9 is not found")))
    await fixture.downloader.shutdown()
  }

  /// A client without a token does not learn which methods there are.
  @Test func theTokenIsCheckedBeforeTheMethod() async throws {
    let fixture = try await RPCFixture()
    let wrong = await result(fixture, "aria2.nonsense", "token:wrong")
    #expect(wrong == .failure(.unauthorized))
    let right = await result(fixture, "aria2.nonsense", "token:secret")
    #expect(right == .failure(RPCFailure("No such method: aria2.nonsense")))
    let torrent = await result(fixture, "aria2.addTorrent", "token:secret")
    #expect(torrent == .failure(RPCFailure("No such method: aria2.addTorrent")))
    await fixture.downloader.shutdown()
  }

  @Test func listsNeedNoToken() async throws {
    let fixture = try await RPCFixture()
    let methods = try await result(fixture, "system.listMethods").get().list?.compactMap { $0.text } ?? []
    #expect(methods.contains("aria2.addUri"))
    #expect(methods.contains("system.multicall"))
    #expect(!methods.contains("aria2.addTorrent"))
    #expect(Set(methods).count == methods.count)
    let notifications = try await result(fixture, "system.listNotifications").get()
    #expect(notifications.list?.contains(.string("aria2.onDownloadComplete")) == true)
    await fixture.downloader.shutdown()
  }

  @Test func severalCallsHaveTokensOfTheirOwn() async throws {
    let fixture = try await RPCFixture()
    let calls: JSONValue = [
      ["methodName": "aria2.saveSession", "params": ["token:secret"]],
      ["methodName": "aria2.saveSession", "params": ["token:wrong"]],
      ["methodName": "aria2.saveSession"],
      ["methodName": "system.multicall", "params": [[]]],
      ["params": ["token:secret"]],
      ["methodName": .integer(1)],
      "aria2.saveSession",
      ["methodName": "aria2.nonsense", "params": ["token:secret"]],
      ["methodName": "system.listNotifications"],
    ]
    let results = try await result(fixture, "system.multicall", calls).get().list ?? []
    func failure(_ message: String) -> JSONValue { ["code": .integer(1), "message": .string(message)] }
    let expected: [JSONValue] = [
      ["OK"], failure("Unauthorized"), failure("Unauthorized"), failure("Recursive system.multicall forbidden."),
      failure("Missing methodName."), failure("Missing methodName."), failure("system.multicall expected struct."),
      failure("No such method: aria2.nonsense"),
    ]
    #expect(results.count == 9)
    #expect(Array(results.prefix(8)) == expected)
    #expect(results.last?.list?.first?.list?.count == Aria2.notifications.count)
    await fixture.downloader.shutdown()
  }

  @Test func severalCallsAreBounded() async throws {
    let fixture = try await RPCFixture()
    let one: JSONValue = ["methodName": "system.listNotifications"]
    let most = await result(fixture, "system.multicall", .array(Array(repeating: one, count: JSONRPC.mostCalls)))
    let count = try most.get().list?.count
    #expect(count == JSONRPC.mostCalls)
    let more = await result(fixture, "system.multicall", .array(Array(repeating: one, count: JSONRPC.mostCalls + 1)))
    #expect(more == .failure(RPCFailure("system.multicall takes at most \(JSONRPC.mostCalls) calls.")))
    let none = await result(fixture, "system.multicall")
    #expect(none == .failure(RPCFailure("The parameter at 0 is required but missing.")))
    let empty = await result(fixture, "system.multicall", [])
    #expect(empty == .success([]))
    await fixture.downloader.shutdown()
  }

  // MARK: The server

  @Test func theServerSaysWhatItIs() async throws {
    let fixture = try await RPCFixture { $0.version = "9.9" }
    let version = try await fixture.value("aria2.getVersion")
    #expect(version["version"]?.text == "1.36.0")
    #expect(version["downpipe"]?.text == "9.9")
    let session = try await fixture.value("aria2.getSessionInfo")
    #expect(session["sessionId"]?.text == "a session")
    let saved = try await fixture.value("aria2.saveSession")
    #expect(saved == .string("OK"))
    await fixture.downloader.shutdown()
  }

  @Test func clientsMayEndTheServerIfItAllows() async throws {
    let fixture = try await RPCFixture()
    let ended = try await fixture.value("aria2.shutdown")
    #expect(ended == .string("OK"))
    #expect(fixture.shutDowns.count == 1)
    await fixture.downloader.shutdown()
    let other = try await RPCFixture { $0.allowsShutdown = false }
    let message = await other.failure("aria2.forceShutdown")
    #expect(message == "This server is not ended by its clients.")
    #expect(other.shutDowns.count == 0)
    await other.downloader.shutdown()
  }

  @Test func aDownloaderThatHasEndedFailsCalls() async throws {
    let fixture = try await RPCFixture()
    await fixture.downloader.shutdown()
    let message = await fixture.failure("aria2.getGlobalStat")
    #expect(message != nil)
  }
}
