@_spi(Ledger) import DownpipeCore
import Foundation
import Testing

extension ResumePlanTests {
  @Test("coded bytes are continued only with the same strong entity tag, which names the coded form")
  func codedBytes() {
    func question(
      _ coding: String, _ validator: Validator?, trust: RangeTrust = .full
    ) -> (Checkpoint, RequestedRange?) {
      var checkpoint = Self.checkpoint(.some, .sameStrong)
      checkpoint.contentCoding = coding
      checkpoint.validator = validator
      return (checkpoint, ResumePlan.question(for: checkpoint, validation: .overlap(10), trust: trust).range)
    }
    let long = Date(timeIntervalSince1970: 0)
    let dated = Validator(lastModified: long, responseDate: long.addingTimeInterval(100))
    let weak = Validator(entityTag: EntityTag("v1", isWeak: true))
    let (checkpoint, range) = question("gzip", Self.strong)
    #expect(range == RequestedRange(from: 30))
    #expect(question("gzip", dated).1 == nil && question("gzip", weak).1 == nil && question("gzip", nil).1 == nil)
    #expect(question("gzip", Self.strong, trust: .overlap).1 == nil)
    #expect(question("decoded-gzip", Self.strong).1 == nil, "there is no range of what the transport has decoded")

    func outcome(_ change: (inout SourceReply) -> Void) -> Outcome {
      let request = SourceRequest(url: Self.url, range: range)
      var reply = Self.reply(.encoded206, to: request, .sameStrong)
      change(&reply)
      return Outcome(
        ResumePlan.decide(checkpoint: checkpoint, request: request, reply: reply, validation: .overlap(10)))
    }
    #expect(outcome { _ in } == .append)
    #expect(outcome { $0.contentCoding = nil } == .reject(.wrongContentCoding))
    #expect(outcome { $0.contentCoding = "br" } == .reject(.wrongContentCoding))
    #expect(outcome { $0.validator = nil } == .reject(.unproven))
    #expect(outcome { $0.validator = weak } == .reject(.unproven))
    #expect(outcome { $0.validator = Validator(entityTag: EntityTag("v2")) } == .reject(.unproven))
  }

  @Test(arguments: [204, 205])
  func noContentIsNoFile(status: Int) throws {
    let request = SourceRequest(url: Self.url)
    let reply = try SourceReply(httpStatus: status, headers: [], url: Self.url, body: .empty)
    let plan = ResumePlan.decide(checkpoint: Checkpoint(), request: request, reply: reply)
    guard case .reject(let error) = plan else {
      Issue.record("\(status) is no file")
      return
    }
    #expect(error.code == .httpStatus && error.httpStatus == status)
    #expect(error.message.contains("there is no file"))
  }
}
