public import DownpipeCore
public import Foundation

/// Checks that a source keeps the contract of ``/DownpipeCore/Source``.
///
/// ```swift
/// try await SourceConformance(MySource(), url: url, content: bytes).run()
/// ```
/// Use a content of at least 1 MiB that does not repeat, such as ``DownloadFixtures/pattern(size:seed:)``, so that
/// misplaced bytes are detected and a transfer can be cancelled before its end.
public struct SourceConformance: Sendable {
  let source: any Source
  let url: URL
  let content: [UInt8]
  let supportsRanges: Bool
  let unsupportedURL: URL?
  let stallingURL: URL?
  let missingURL: URL?
  let end: Body.End?
  let limit: Duration
  let exclusions: [ConformanceExclusion]

  /// Creates a suite.
  ///
  /// - Parameters:
  ///   - source: The source to check, not started.
  ///   - url: A URL that the source accepts.
  ///   - content: The content of the URL, at least 16 bytes.
  ///   - supportsRanges: Whether ranges of the URL are available. If not, replies must still describe their bytes
  ///     correctly.
  ///   - unsupportedURL: A URL that the source does not accept; `nil` for a source that accepts every URL.
  ///   - stallingURL: A URL whose body stops before its end without closing.
  ///   - missingURL: A URL that the source accepts and that has no content.
  ///   - end: What bodies with the whole file report at their end, for a source of such bodies and for one that wraps it;
  ///     not checked when `nil`.
  ///   - limit: The longest time for a rule.
  ///   - exclusions: Rules that are not checked, each with its reason.
  public init(
    _ source: any Source, url: URL, content: [UInt8], supportsRanges: Bool = true,
    unsupportedURL: URL? = URL(string: "downpipe-unsupported://nowhere/file"), stallingURL: URL? = nil,
    missingURL: URL? = nil, end: Body.End? = nil, limit: Duration = .hangLimit,
    excluding exclusions: [ConformanceExclusion] = []
  ) {
    self.source = source
    self.url = url
    self.content = content
    self.supportsRanges = supportsRanges
    self.unsupportedURL = unsupportedURL
    self.stallingURL = stallingURL
    self.missingURL = missingURL
    self.end = end
    self.limit = limit
    self.exclusions = exclusions
  }

  /// Checks every rule.
  /// - Throws: ``ConformanceFailure`` that lists all broken rules.
  public func run() async throws {
    precondition(content.count >= 16, "the content must have at least 16 bytes")
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
    await checkPace(session, report)
    // The last rule, because the session cannot be used afterwards.
    await report.check(
      "stop-ends", "stop() returns, even with a reply that was not read",
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
    await report.check("accepts-its-url", "accepts(_:) is always the same for one URL") {
      for _ in 0..<3 { try expect(source.accepts(url), "accepts(_:) is false for \(url)") }
    }
    await report.check("refuses-other-urls", "a URL that is not accepted cannot be opened", when: unsupportedURL != nil)
    {
      guard let other = unsupportedURL else { return }
      try expect(!source.accepts(other), "accepts(_:) is true for \(other)")
      try await expectError(when: "opening \(other)") {
        try await session.open(SourceRequest(url: other)).body.discard()
      }
    }
    await report.check(
      "missing-file", "a URL without content gives a reply without bytes or a DownloadError", when: missingURL != nil
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
    await report.check("whole-file", "a request without a range delivers the whole file with the coverage .whole") {
      let (reply, body) = try await read(session, request())
      try expectEqual(reply.coverage, .whole, "the coverage")
      try body.expectBytes(content[...])
    }
    report.build(on: "whole-file")
    await report.check("length-is-true", "the length of the reply is that of the body") {
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
    await report.check("chunks-come-one-at-a-time", "the sink is not called while it runs or after the end") {
      let (_, body) = try await read(session, request())
      // A source that kept the sink would call it during the next transfer.
      _ = try await read(session, request())
      try expectEqual(body.overlaps, 0, "the number of calls that overlap or come too late")
    }
    await report.check("file-body-has-the-bytes", "the file of a body has the same bytes as its chunks") {
      let reply = try await session.open(request())
      let file = try reply.body.file.map { try Artifact(location: .path($0), name: "body").readBytes() }
      let body = ReceivedBody(limit: content.count)
      try await reply.body.forEachChunk(body.sink)
      if let file {
        try expect(sameBytes(file[...], body.bytes[...]), "the file of the body and its chunks differ")
      }
    }
  }

  func checkConcurrency(_ session: any SourceSession, _ report: ConformanceReport) async {
    await report.check(
      "concurrent-opens", "replies that are read at the same time are not mixed",
      needs: ["coverage-is-true", "chunks-come-one-at-a-time"]
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

  /// The validator with a weak tag: conditions compare weakly (RFC 9110 §13.1.2).
  private func weak(_ validator: Validator) -> Validator {
    var weak = validator
    weak.entityTag = validator.entityTag.map { EntityTag($0.opaque, isWeak: true) }
    return weak
  }

  func checkValidators(_ session: any SourceSession, _ report: ConformanceReport) async {
    await report.check("validator-is-stable", "equal bytes have equal validators") {
      let first = try await head(session, request()).validator
      let second = try await head(session, request()).validator
      try expect(
        first?.entityTag == second?.entityTag && first?.lastModified == second?.lastModified,
        "two replies have \(describe(first)) and \(describe(second))")
    }
    await report.check(
      "not-modified",
      "a request whose condition is the validator of the file is answered with notModified, or with the whole file",
      needs: ["validator-is-stable"]
    ) {
      guard let validator = try await head(session, request()).validator else { return }
      for condition in [validator, weak(validator)] {
        var ask = request()
        ask.condition = condition
        ask.conditionSize = Int64(content.count)
        let (reply, body) = try await read(session, ask)
        // A source without conditional requests.
        if reply.coverage == .whole {
          try body.expectBytes(content[...])
          continue
        }
        try expectEqual(reply.coverage, .none(.notModified), "the coverage for \(describe(condition))")
        try body.expectBytes([])
        try expect(
          condition.compare(to: reply.validator) != .changed,
          "the file has \(describe(condition)), and the reply that it is not modified has \(describe(reply.validator))")
      }
    }
    await report.check(
      "modified", "a request with a condition that does not hold delivers the whole file", needs: ["whole-file"]
    ) {
      guard let validator = try await head(session, request()).validator else { return }
      var ask = request()
      ask.condition =
        validator.entityTag == nil
        ? Validator(lastModified: Date(timeIntervalSince1970: 1))
        : Validator(entityTag: EntityTag("downpipe-conformance-other"), lastModified: validator.lastModified)
      ask.conditionSize = Int64(content.count)
      let (reply, body) = try await read(session, ask)
      try expectEqual(reply.coverage, .whole, "the coverage")
      try body.expectBytes(content[...])
    }
    await report.check(
      "range-has-the-validator", "a range has the validator of the whole file", when: supportsRanges,
      needs: ["validator-is-stable", "coverage-is-true"]
    ) {
      let whole = try await head(session, request()).validator
      let part = try await head(session, request(RequestedRange(from: 1))).validator
      try expect(
        (whole ?? Validator()).compare(to: part) != .changed,
        "the whole file has \(describe(whole)), and a range \(describe(part))")
    }
    await report.check(
      "stale-validator-is-noticed",
      "a range with a validator that does not match is not answered with a range",
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

/// The session of a source that did not start. The rules that open URLs are not checked with it.
private struct NotStarted: SourceSession {
  func open(_ request: SourceRequest) async throws -> SourceReply { throw Deviation("the source did not start") }
}
