public import DownpipeCore
public import Foundation

/// Checks that a source keeps the contract of ``DownpipeCore/Source``.
///
/// ```swift
/// try await SourceConformance(MySource(), url: url, content: bytes).run()
/// ```
/// Use a content of at least 1 MiB that does not repeat itself, such as ``DownloadFixtures/pattern(size:seed:)``:
/// only then a byte at the wrong place shows up, and cancelling in the middle means something.
public struct SourceConformance: Sendable {
  let source: any Source
  let url: URL
  let content: [UInt8]
  let supportsRanges: Bool
  let unsupportedURL: URL?
  let stallingURL: URL?
  let missingURL: URL?
  let limit: Duration
  let exclusions: [ConformanceExclusion]

  /// Describes what is to be checked.
  ///
  /// - Parameters:
  ///   - source: the source, not yet started.
  ///   - url: a URL it takes.
  ///   - content: the bytes behind the URL; at least 16.
  ///   - supportsRanges: whether ranges of the URL can be had. Without, a reply must still say the truth.
  ///   - unsupportedURL: a URL that the source does not take; `nil` for a source that takes every URL.
  ///   - stallingURL: a URL whose head comes, but not all of its body.
  ///   - missingURL: a URL that the source takes, and behind which there is nothing.
  ///   - limit: the longest a rule may take.
  ///   - exclusions: rules that are not checked.
  public init(
    _ source: any Source, url: URL, content: [UInt8], supportsRanges: Bool = true,
    unsupportedURL: URL? = URL(string: "downpipe-unsupported://nowhere/file"), stallingURL: URL? = nil,
    missingURL: URL? = nil, limit: Duration = .seconds(10), excluding exclusions: [ConformanceExclusion] = []
  ) {
    self.source = source
    self.url = url
    self.content = content
    self.supportsRanges = supportsRanges
    self.unsupportedURL = unsupportedURL
    self.stallingURL = stallingURL
    self.missingURL = missingURL
    self.limit = limit
    self.exclusions = exclusions
  }

  /// Checks every rule.
  /// - Throws: ``ConformanceFailure`` with all that are broken.
  public func run() async throws {
    precondition(content.count >= 16, "the rules about ranges need a content of 16 bytes or more")
    let report = ConformanceReport("SourceConformance(\(source.name))", excluding: exclusions, limit: limit)
    let started = Watched<(any SourceSession)?>(nil)
    let source = source
    await report.check("starts", "start(in:) returns the session that serves the downloader") {
      let running = try await source.start(in: SourceContext())
      started.update { $0 = running }
    }
    let session: any SourceSession = started.value ?? NotStarted()
    report.build(on: "starts")
    await checkURLs(session, report)
    await checkWhole(session, report)
    await checkCoverage(session, report)
    await checkRanges(session, report)
    await checkConcurrency(session, report)
    await checkValidators(session, report)
    await checkEndings(session, report)
    // The last one, because the session is of no use afterwards.
    await report.check(
      "stop-ends", "stop() returns, even when a reply was dropped without being read",
      needs: ["discard-ends-the-request"]
    ) {
      _ = try await session.open(request())
      await session.stop()
    }
    try report.finish()
  }

  func request(_ range: RequestedRange? = nil, validator: Validator? = nil) -> SourceRequest {
    SourceRequest(url: url, range: range, validator: validator)
  }

  func checkURLs(_ session: any SourceSession, _ report: ConformanceReport) async {
    await report.check("accepts-its-url", "accepts(_:) says the same for the same URL") {
      for _ in 0..<3 { try expect(source.accepts(url), "accepts(_:) is false for \(url)") }
    }
    await report.check("refuses-other-urls", "a URL that is not accepted is not opened", when: unsupportedURL != nil) {
      guard let other = unsupportedURL else { return }
      try expect(!source.accepts(other), "accepts(_:) is true for \(other)")
      try await expectError(when: "opening \(other)") {
        try await session.open(SourceRequest(url: other)).body.discard()
      }
    }
    await report.check(
      "missing-file", "an answer without bytes is a reply that says so, or a DownloadError", when: missingURL != nil
    ) {
      guard let missing = missingURL else { return }
      let reply: SourceReply
      do {
        reply = try await session.open(SourceRequest(url: missing))
      } catch is DownloadError {
        return
      }
      reply.body.discard()
      guard case .none = reply.coverage else { throw Deviation("the coverage of \(missing) is \(reply.coverage)") }
    }
  }

  func checkWhole(_ session: any SourceSession, _ report: ConformanceReport) async {
    await report.check("whole-file", "without a range the whole is delivered, and called whole") {
      let (reply, body) = try await read(session, request())
      try expectEqual(reply.coverage, .whole, "the coverage")
      try body.expectBytes(content[...])
    }
    report.build(on: "whole-file")
    await report.check("length-is-true", "the declared length is that of the body") {
      for range in ranges {
        let (reply, body) = try await read(session, request(range))
        guard case .known(let length) = reply.length else { continue }
        try expectEqual(length, Int64(body.bytes.count), "the length declared for \(describe(range))")
      }
    }
    await report.check("chunks-are-not-empty", "no chunk is empty") {
      let (_, body) = try await read(session, request())
      try expectEqual(body.emptyChunks, 0, "the number of empty chunks")
    }
    await report.check("chunks-come-one-at-a-time", "the sink is never called while it runs, nor after the end") {
      let (_, body) = try await read(session, request())
      // A sink that was kept is called when the source is at work again.
      _ = try await read(session, request())
      try expectEqual(body.overlaps, 0, "the number of calls that overlap or come too late")
    }
    await report.check("file-body-has-the-bytes", "a body's file holds what its chunks hold") {
      let reply = try await session.open(request())
      let file = try reply.body.file.map { try Artifact(location: .path($0), name: "body").readBytes() }
      let body = ReceivedBody(limit: content.count)
      try await reply.body.forEachChunk(body.sink)
      if let file {
        try expect(sameBytes(file[...], body.bytes[...]), "the body's file holds other bytes than its chunks")
      }
    }
  }

  func checkConcurrency(_ session: any SourceSession, _ report: ConformanceReport) async {
    await report.check(
      "concurrent-opens", "replies that are read at the same time do not mix", needs: ["coverage-is-true"]
    ) {
      try await withThrowingTaskGroup(of: Void.self) { group in
        for range in ranges + ranges {
          group.addTask {
            let (reply, body) = try await read(session, request(range))
            try expectTruth(reply, body, for: range)
          }
        }
        try await group.waitForAll()
      }
    }
  }

  func checkValidators(_ session: any SourceSession, _ report: ConformanceReport) async {
    await report.check("validator-is-stable", "the same bytes have the same validator at each opening") {
      let first = try await head(session, request()).validator
      let second = try await head(session, request()).validator
      try expect(
        first?.entityTag == second?.entityTag && first?.lastModified == second?.lastModified,
        "two openings gave \(describe(first)) and \(describe(second))")
    }
    await report.check(
      "range-has-the-validator", "a range has the validator of the whole", when: supportsRanges,
      needs: ["validator-is-stable", "coverage-is-true"]
    ) {
      let whole = try await head(session, request()).validator
      let part = try await head(session, request(RequestedRange(from: 1))).validator
      try expect(
        (whole ?? Validator()).compare(to: part) != .changed,
        "the whole has \(describe(whole)), a range of it \(describe(part))")
    }
    await report.check(
      "stale-validator-is-noticed",
      "a range is asked for with the validator: when that is not the file's, the reply is not a range of the same file",
      when: supportsRanges, needs: ["validator-is-stable", "coverage-is-true"]
    ) {
      guard let validator = try await head(session, request()).validator, validator.isStrong else { return }
      var stale = Validator()
      if validator.entityTag != nil {
        stale.entityTag = EntityTag("downpipe-conformance-stale")
      } else {
        stale.lastModified = Date(timeIntervalSince1970: 1)
        stale.responseDate = Date(timeIntervalSince1970: 1_000_000)
      }
      let reply = try await head(session, request(RequestedRange(from: 1), validator: stale))
      if case .range = reply.coverage {
        try expectEqual(stale.compare(to: reply.validator), .changed, "a range came, and the comparison of validators")
      }
    }
  }
}

/// Stands for the session of a source that did not start: nothing is opened, and no rule that opens is checked.
private struct NotStarted: SourceSession {
  func open(_ request: SourceRequest) async throws -> SourceReply { throw Deviation("the source did not start") }
}
