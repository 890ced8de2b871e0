@_spi(Ledger) import DownpipeCore
import DownpipeTesting
import Foundation

/// A ledger with downloads in all phases, made by the calls that an engine makes, in an order that a seed decides.
struct RandomQueue {
  private var random: SeededGenerator
  private var now = Date(timeIntervalSince1970: 1_750_000_000)
  private var arrival: Int64 = 1_750_000_000_000_000
  private let store: any LedgerStore
  private var ids: [DownloadID] = []

  init(_ store: any LedgerStore, seed: UInt64) {
    self.store = store
    random = SeededGenerator(seed: seed)
  }

  private static let texts = [
    "plain", "quote ' double \" back \\ percent %", "nul \0 one \u{1} tab \t line \n return \r", "emoji 🛰️ é e\u{301}",
    "\u{7F}\u{85}\u{2028}\u{2029}", "", "[1]", "{\"a\":null}", "NULL", "1e9",
  ]

  private mutating func number(_ range: Range<Int>) -> Int { Int.random(in: range, using: &random) }
  private mutating func happens(_ chance: Double) -> Bool { Double.random(in: 0..<1, using: &random) < chance }
  private mutating func text() -> String { Self.texts[number(0..<Self.texts.count)] }
  private mutating func date() -> Date { now.addingTimeInterval(Double.random(in: -1e7...1e7, using: &random)) }
  private mutating func size() -> Int64 { Int64.random(in: 0...(1 << 42), using: &random) }
  private mutating func some(of share: Double) -> [DownloadID] { ids.filter { _ in happens(share) } }
  private mutating func digest() -> FileDigest {
    FileDigest(.sha256, bytes: (0..<32).map { _ in UInt8.random(in: 0...255, using: &random) })
  }

  /// Adds downloads, and lets some of them run, fail, finish, be paused, changed, cancelled, refreshed and removed.
  mutating func fill(_ count: Int) async throws {
    let batch = 40
    for first in stride(from: 0, to: count, by: batch) {
      let new = (first..<min(count, first + batch)).map { happens(0.1) ? DownloadID("\($0) \(text())") : "\($0)" }
      _ = try await store.add(
        try new.map { id in
          // Equal places happen where several programs add.
          if happens(0.9) { arrival += Int64(number(1..<1_000)) }
          return LedgerAddition(
            request: try request(id), arrival: arrival, location: happens(0.6) ? "folder \(number(0..<3))" : nil)
        }, at: now)
      ids += new
      try await work()
    }
    // Some are still active at the end.
    _ = try await store.lease(LeaseRequest(now: now, until: now + 86_400) { _ in .take })
  }

  private mutating func request(_ id: DownloadID) throws -> DownloadRequest {
    var request = try DownloadRequest("https://h\(number(0..<4)).example/\(id.rawValue)?a=%2f", id: id)
    if happens(0.4) { return request }
    request.priority = Priority(Int16(number(-3..<4)))
    if happens(0.3) { request.intent = Intent(text()) }
    request.tags = Set((0..<number(0..<4)).map { _ in text() })
    for _ in 0..<number(0..<3) { request.metadata[text()] = text() }
    if happens(0.3) { request.expectedSize = .known(size()) }
    if happens(0.3) { request.sizeHint = .known(size()) }
    if happens(0.2) { request.maximumSize = size() }
    if happens(0.2) { request.deadline = date() }
    if happens(0.2) { request.mirrors = [try DownloadRequest("ftp://mirror.example/caf%E9").url] }
    if happens(0.3) {
      request.headers = HeaderFields([HeaderField("Authorization", "Bearer \(number(0..<9))"), HeaderField("x", "ü")])
    }
    if happens(0.3) { request.destination = .init(directory: "a/b", name: "n\(id)", nameUse: .fallback) }
    if happens(0.2) { request.expectedDigests = [digest(), digest()] }
    if happens(0.1) { request.pieces = PieceDigests(.crc32, length: 1 << 20, bytes: [0, 1, 2, 255]) }
    if happens(0.2) { request.steps = .only("Gunzip", text()) }
    if happens(0.2) { request.refresh = .whenStale }
    if happens(0.1) { request.isNamedByServer = true }
    if happens(0.1) { request.lineage = .init(following: try DownloadRequest("https://a.example/", id: "root")) }
    if happens(0.1) { request.headStart = .init(file: "/tmp/\(text())", count: size(), total: .known(size())) }
    // On earlier ones, and some that do not exist: those that come later could close a cycle.
    if happens(0.2), let other = ids.randomElement(using: &random) { request.after = [other] }
    if happens(0.05) { request.after.insert("missing \(text())") }
    return request
  }

  /// What happens in a while.
  private mutating func work() async throws {
    now += Double.random(in: 0...1_000, using: &random)
    let leased = try await store.lease(LeaseRequest(now: now, until: now + 60) { _ in .take })
    for var record in leased {
      end(&record)
      var fields: RecordFields = [.state, .checkpoint, .steps]
      if happens(0.1) {
        record.request.url = try DownloadRequest("https://fresh.example/\(number(0..<99))").url
        fields.insert(.link)
      }
      _ = try await store.save(record, fields, at: now)
      now += 0.125
    }
    let events: [Lifecycle.Event] = [
      .pause, .pauseAll, .resume, .cancel, .discard, .restart, .refresh, .resumeTogether,
    ]
    for event in events { _ = try await store.transition(.ids(some(of: 0.02)), event, at: now) }
    let (name, priority) = (text(), Priority(Int16(number(-9..<9))))
    _ = try await store.update(.ids(some(of: 0.05)), at: now) { record in
      record.request.destination.name = name
      record.request.priority = priority
    }
    _ = try await store.remove(.ids(some(of: 0.01)))
  }

  /// The end of a run, or its present state.
  private mutating func end(_ record: inout DownloadRecord) {
    let total = size()
    if happens(0.8) {
      record.checkpoint = Checkpoint(
        ranges: ByteRangeSet([0..<max(1, total / 3), total / 2..<max(1, total / 2) + 1]), total: .known(total),
        validator: Validator(entityTag: EntityTag(text()), lastModified: date(), responseDate: date()),
        resource: "https://h.example/", contentCoding: happens(0.1) ? "gzip" : nil, name: text(), mediaType: "a/b",
        digests: happens(0.2) ? [digest()] : [],
        marks: happens(0.2) ? [BlockMark(range: 0..<10, digest: digest())] : [], isComplete: happens(0.3),
        freshUntil: happens(0.2) ? date() : nil)
      record.bytesFetched = total
      record.resumedFrom = total / 4
    }
    let artifact = StoredArtifact(
      kind: happens(0.9) ? .file : .directory, path: "a/\(text())", name: text(), size: total, mediaType: nil,
      modifiedAt: date(), isReused: happens(0.1))
    switch number(0..<6) {
    case 0: record.apply(.pause)
    case 1:
      record.apply(.failedForGood)
      record.error = DownloadError(
        .httpStatus, "the server said \(text())", stage: "HTTPSource", httpStatus: 404, retryAfter: .date(date()))
      record.consecutiveFailures = number(0..<5)
    case 2:
      record.apply(.failedForNow)
      (record.notBefore, record.awaited, record.repeatedFailures) = (date(), .disk, number(0..<5))
      record.error = DownloadError(.timedOut, text())
    case 3:
      record.apply(.bytesComplete)
      record.steps = StepLog(completed: ["Gunzip", text()], artifact: artifact, note: text())
    default:
      record.apply(.bytesComplete)
      record.steps = StepLog(completed: [text()], artifact: artifact, note: happens(0.1) ? text() : nil)
      record.apply(.stepsComplete)
    }
  }
}
