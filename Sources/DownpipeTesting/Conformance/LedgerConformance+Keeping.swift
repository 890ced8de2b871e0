@_spi(Ledger) import DownpipeCore
import Foundation

extension LedgerConformance {
  /// A checkpoint with all fields set.
  static let fullCheckpoint = Checkpoint(
    ranges: ByteRangeSet([0..<1_000, 5_000..<(1 << 40)]), total: .known(1 << 41),
    validator: Validator(
      entityTag: EntityTag("x\\y'z", isWeak: true), lastModified: time(-100), responseDate: time(-1)),
    resource: "https://example.org/file",
    contentCoding: "gzip", name: "na'me.bin", mediaType: "application/octet-stream",
    digests: [FileDigest(.sha256, bytes: Array(repeating: 7, count: 32))],
    marks: [
      BlockMark(range: 0..<1_000, digest: FileDigest(.sha256, bytes: Array(repeating: 8, count: 32))),
      BlockMark(range: (1 << 39)..<(1 << 40), digest: FileDigest(.crc32, bytes: [0, 1, 254, 255])),
    ], isComplete: true, freshUntil: time(3_600.5))

  /// Sets every field that a save writes.
  @Sendable static func fill(_ record: inout DownloadRecord) {
    record.notBefore = time(30)
    record.awaited = .disk
    record.error = DownloadError(
      .httpStatus, "the server said “503”", stage: "HTTPSource", httpStatus: 503, retryAfter: .seconds(30))
    record.error?.attempt = 3
    record.error?.url = "https://example.org/file"
    record.consecutiveFailures = 2
    record.repeatedFailures = 1
    record.bytesFetched = 1 << 42
    record.wasInterrupted = true
    record.isPausedTogether = true
    record.resumedFrom = 1 << 39
    record.checkpoint = fullCheckpoint
    var earlier = fullCheckpoint
    (earlier.isComplete, earlier.freshUntil) = (false, nil)
    record.versions = VersionLog(isInSecond: true, hasOther: true, earlier: earlier, mayChange: true, isWanted: true)
    record.steps = StepLog(
      completed: ["Gunzip", "na'me, with \"quotes\""],
      artifact: StoredArtifact(
        kind: .file, path: "a/b", name: "b", size: 12, mediaType: "x/y", modifiedAt: time(-7.25),
        companions: companions, location: "else'where"),
      note: "half way",
      verified: [
        VerifiedDigest(FileDigest(.crc32, bytes: [0, 1, 2, 255]), from: .checksumFile),
        VerifiedDigest(FileDigest(DigestAlgorithm("odd"), bytes: [1]), from: .init("of a step’s own")),
      ])
    record.refreshing = .fetching
    record.earlierArtifact = StoredArtifact(
      kind: .file, path: "a/earlier", name: "earlier", size: 7, mediaType: nil, modifiedAt: time(-8.5),
      companions: companions, location: "there")
  }

  /// One beside its artifact, and one that is not published yet.
  private static let companions = [
    StoredArtifact.Companion(suffix: ".na'me \"quoted\".png", size: 1 << 40, modifiedAt: time(-7.25)),
    StoredArtifact.Companion(suffix: "-2", path: ".downpipe/work/x"),
  ]

  /// A request with all fields set, and with text that needs escaping.
  static func fullRequest(_ id: DownloadID) throws -> DownloadRequest {
    let odd = "quote ' double \" back \\ percent % nul \0 line \n emoji 🛰️ accent é"
    var request = try DownloadRequest(
      "https://user@example.org:8443/a%20b/caf%E9?token=%2e&a%2Fb='#part", id: id,
      mirrors: [try mirror("https://one.example/caf%E9"), try mirror("ftp://two.example/f")],
      priority: Priority(-32768),
      intent: Intent(odd), tags: [odd, "", "plain"],
      destination: .init(directory: "deep/er", name: odd, nameUse: .fallback)
    )
    request.deadline = time(86_400.125)
    request.metadata = [odd: odd, "": ""]
    request.expectedSize = .known(.max)
    request.sizeHint = 12
    request.expectedDigests = [FileDigest(.md5, bytes: Array(0..<16)), FileDigest(.sha1, bytes: Array(0..<20))]
    request.maximumSize = 0
    request.headers = HeaderFields([
      HeaderField("Accept", "a"), HeaderField("accept", odd), HeaderField("Authorization", odd),
      HeaderField("X-All", "x", scope: .everywhere), HeaderField("X-One", "y", scope: .origin(try oneOrigin())),
    ])
    request.steps = .only(odd, "Gunzip")
    request.refresh = .whenStale
    request.headStart = .init(
      file: "/tmp/" + odd, count: 1 << 40, validator: Validator(entityTag: EntityTag("x")), total: .known(1 << 41))
    request.isNamedByServer = true
    request.pieces = PieceDigests(.crc32, length: 1 << 20, bytes: [0, 1, 2, 3, 252, 253, 254, 255])
    request.lineage = DownloadRequest.Lineage(following: DownloadRequest(request.url, id: "root"))
    return request
  }

  private static func oneOrigin() throws -> Origin {
    try expectValue(Origin("https://one.example:8443"), "the origin of a mirror")
  }

  private static func mirror(_ text: String) throws -> URL {
    try expectValue(HTTPURL.parse(text), "“\(text)” is not a URL")
  }

  /// Valid ids that need escaping or are easily confused.
  static let oddIDs: [DownloadID] = [
    " ", "a\0b", "a\0c", "a", "A", "' OR 1=1 --", "\"", "\\", "%", "_", "🛰️", "é", "NULL", "1", "01", "1.0",
    DownloadID(String(repeating: "x", count: 255)), DownloadID(String(repeating: "x", count: 254)),
  ]

  func checkKeeping(_ report: ConformanceReport) async {
    await report.check("request-is-kept", "a record keeps its whole request, also after a restart") {
      let (ledger, store) = try await opened()
      var addition = LedgerAddition(
        request: try Self.fullRequest("full"), arrival: .max)
      addition.request.after = Set(Self.oddIDs)
      try await store.rank(by: Ranking(name: "test") { _ in Rank(value: .max) })
      _ = try await store.add([addition], at: Self.start)
      try expectEqual(try await store.known("full").request, addition.request, "the request")
      try await store.close()
      let second = try await ledger.open()
      let record = try await second.known("full")
      try expectEqual(record.request, addition.request, "the request after a restart")
      try expectEqual(record.waitsFor, addition.request.after, "the dependencies after a restart")
      try expectEqual(record.rank, Rank(value: .max), "the rank after a restart")
      try expectEqual(record.arrival, .max, "the order of arrival after a restart")
    }
    await report.check("save-is-kept", "a record keeps all saved fields, also after a restart") {
      let (ledger, store) = try await filled(["a"])
      var record = try expectValue(try await store.leased().first, "nothing was leased")
      Self.fill(&record)
      record.phase = .failed
      try expect(try await store.save(record, [.state, .checkpoint, .steps], at: Self.time(3)), "save was refused")
      record.owner = nil
      record.updatedAt = Self.time(3)
      try expectEqual(try await store.known("a"), record, "the record")
      try await store.close()
      let second = try await ledger.open()
      try expectEqual(try await second.known("a"), record, "the record after a restart")
    }
    await report.check("odd-text-is-kept", "ids and tags can be any text and are not confused") {
      let (_, store) = try await opened()
      let additions = try Self.oddIDs.enumerated().map {
        try Self.addition($1, order: Int64($0), tags: [$1.rawValue])
      }
      let outcomes = try await store.add(additions, at: Self.start)
      try expect(outcomes.allSatisfy(\.isNew), "different ids were confused")
      for id in Self.oddIDs {
        try expectEqual(try await store.known(id).id, id, "the id of a record")
        try expectEqual(
          try await store.records(DownloadQuery(tag: id.rawValue)).map(\.id), [id], "the downloads with the tag “\(id)”"
        )
      }
      for id in Self.oddIDs {
        try expectEqual(try await store.remove(.ids([id])).map(\.id), [id], "the records removed")
      }
    }
    await report.check("equal-ids-are-one", "ids that are equal strings name one download") {
      let (_, store) = try await opened()
      _ = try await store.add([try Self.addition("caf\u{E9}", order: 1, tags: ["\u{E9}"])], at: Self.start)
      let outcome = try await store.add([try Self.addition("cafe\u{301}", order: 2, tags: ["\u{E9}"])], at: Self.start)
      try expectEqual(outcome.map(\.isNew), [false], "isNew of the second spelling of the id")
      _ = try await store.known("cafe\u{301}")
      try expectEqual(
        try await store.counts(.tag("e\u{301}"))[.waiting] ?? 0, 1, "the number of downloads with the tag")
    }
  }
}
