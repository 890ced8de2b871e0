public import DownpipeCore
import Foundation

/// Checks what an HTTP source makes of the answers that real servers send, well-formed or not.
///
/// ```swift
/// try await RawAnswers(MySource()).run()
/// ```
/// Each rule is one answer, which a server on this machine sends byte for byte before it closes the connection. A rule
/// says that the source delivers exactly the bytes of the file, or that it fails and no file can be published. Where
/// HTTP leaves the choice to the recipient, both are right, and other bytes are wrong. The message of an error blames no
/// Transfer-Encoding that the server has not sent.
///
/// The rules complement those of ``SourceConformance``, which every source keeps.
public struct RawAnswers: Sendable {
  /// The names of the rules, in the order in which they are checked.
  public static var rules: [String] { RawAnswer.all.map(\.name) }

  private let source: any Source
  private let limit: Duration
  private let exclusions: [ConformanceExclusion]

  /// Creates a suite.
  ///
  /// - Parameters:
  ///   - source: The source to check, not started. It must fetch `http:` URLs of this machine.
  ///   - limit: The longest time for a rule.
  ///   - exclusions: Rules that are not checked, each with its reason. Their answers are not sent.
  public init(
    _ source: any Source, limit: Duration = .hangLimit, excluding exclusions: [ConformanceExclusion] = []
  ) {
    self.source = source
    self.limit = limit
    self.exclusions = exclusions
  }

  /// Checks every rule.
  /// - Throws: ``ConformanceFailure`` that lists all broken rules.
  public func run() async throws {
    let report = ConformanceReport("RawAnswers(\(source.name))", excluding: exclusions, limit: limit)
    let answers = Dictionary(uniqueKeysWithValues: RawAnswer.all.map { ($0.name, $0) })
    try await withScriptedServer { request in
      let parts = request.target.split(separator: "/", maxSplits: 1)
      guard let answer = parts.first.flatMap({ answers[String($0)] }) else { return .status(404) }
      return answer.reply(to: parts.count > 1 ? String(parts[1]) : "", host: request.headers["Host"] ?? "")
    } _: { server in
      for answer in RawAnswer.all {
        let url = server.url("/\(answer.name)/\(RawAnswer.start)")
        // A session of its own, so that an answer cannot spoil a connection that the next rule uses.
        await report.check(answer.name, "\(answer.summary): \(answer.expectation)") {
          let session = try await source.start(in: SourceContext())
          try await withCleanup {
            await session.stop()
          } _: {
            try await answer.check { try await session.open(SourceRequest(url: url)) }
          }
        }
      }
    }
    try report.finish()
  }
}
