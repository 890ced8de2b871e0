import DownpipeCore
import Foundation

extension SourceConformance {
  /// Ranges of every kind, and the whole file (`nil`).
  var ranges: [RequestedRange?] {
    let total = Int64(content.count)
    return [
      nil, RequestedRange(from: 0), RequestedRange(from: 1), RequestedRange(from: total / 2),
      RequestedRange(from: total - 1), RequestedRange(from: 0, to: 1), RequestedRange(from: total / 4, to: total / 2),
      RequestedRange(from: total / 2, to: total), RequestedRange(from: total / 2, to: total + 100),
    ]
  }

  func describe(_ range: RequestedRange?) -> String { range?.field ?? "the whole" }

  func describe(_ validator: Validator?) -> String {
    guard let validator, !validator.isEmpty else { return "no validator" }
    return [validator.entityTag?.field, validator.lastModified.map { "Last-Modified \($0)" }]
      .compactMap { $0 }.joined(separator: ", ")
  }

  func checkCoverage(_ session: any SourceSession, _ report: ConformanceReport) async {
    await report.check("coverage-is-true", "the coverage describes the bytes, for every requested range") {
      for range in ranges {
        let (reply, body) = try await read(session, request(range))
        try expectTruth(reply, body, for: range)
      }
    }
  }

  func checkRanges(_ session: any SourceSession, _ report: ConformanceReport) async {
    let total = Int64(content.count)
    let served: [(rule: String, range: RequestedRange, bytes: ByteRange)] = [
      ("range-to-the-end", RequestedRange(from: total / 2), (total / 2)..<total),
      ("range-from-the-beginning", RequestedRange(from: 0), 0..<total),
      ("last-byte", RequestedRange(from: total - 1), (total - 1)..<total),
      ("bounded-range", RequestedRange(from: total / 4, to: total / 2), (total / 4)..<(total / 2)),
      ("range-over-the-end", RequestedRange(from: total / 2, to: total + 100), (total / 2)..<total),
    ]
    for (rule, range, bytes) in served {
      await report.check(
        rule, "exactly the requested range is delivered", when: supportsRanges,
        needs: ["coverage-is-true"]
      ) {
        let (reply, body) = try await read(session, request(range))
        // A range that covers the whole file may be answered with the whole file.
        let isWhole = reply.coverage == .whole && bytes == 0..<total
        guard case .range(bytes, _) = reply.coverage else {
          try expect(isWhole, "the coverage of \(describe(range)) is \(reply.coverage)")
          return try body.expectBytes(content[...])
        }
        try body.expectBytes(content[Int(bytes.lowerBound)..<Int(bytes.upperBound)])
      }
    }
    await report.check("range-beyond-the-end", "a range after the end of the file has no bytes", when: supportsRanges) {
      for start in [total, total + 10] {
        let (reply, body) = try await read(session, request(RequestedRange(from: start)))
        guard case .none(.rangeNotSatisfiable(let said)) = reply.coverage else {
          throw Deviation("the coverage of \(describe(RequestedRange(from: start))) is \(reply.coverage)")
        }
        if case .known(let said) = said { try expectEqual(said, total, "the total") }
        try body.expectBytes([])
      }
    }
  }

  /// Compares the bytes with the coverage of the reply.
  func expectTruth(_ reply: SourceReply, _ body: ReceivedBody, for range: RequestedRange?) throws {
    try expect(reply.contentCoding == nil, "the reply has the content coding \(reply.contentCoding ?? "")")
    switch reply.coverage {
    case .whole:
      try body.expectBytes(content[...])
    case .range(let claimed, let total):
      try expect(
        claimed.lowerBound >= 0 && claimed.upperBound <= Int64(content.count) && !claimed.isEmpty,
        "for \(describe(range)) the reply claims \(claimed), and the file has \(content.count) bytes")
      if case .known(let total) = total { try expectEqual(total, Int64(content.count), "the total of a range") }
      try body.expectBytes(content[Int(claimed.lowerBound)..<Int(claimed.upperBound)])
    case .none:
      // Other rules check whether the reply should have had bytes.
      try body.expectBytes([])
    case .multipart, .unreadable:
      throw Deviation("for \(describe(range)) the coverage is \(reply.coverage)")
    }
  }
}
