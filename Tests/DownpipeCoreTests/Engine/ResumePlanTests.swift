@_spi(Ledger) import DownpipeCore
import Foundation
import HangLimit
import Testing

/// Every combination of the bytes on disk, the server's reply, and the relation of the validators.
///
/// The server's file has 100 bytes. The request is always the one that the engine would send.
@Suite(.endsHangs)
struct ResumePlanTests {
  enum OnDisk: String, CaseIterable, Sendable { case nothing, some, all, more }
  enum Answer: String, CaseIterable, Sendable {
    case whole200, right206, wrongStart206, wrongEnd206, wrongTotal206, multipart206, unreadable206, encoded206
    case notModified304, notFound404, precondition412, unsatisfiable416, unsatisfiable416WithoutTotal, unavailable503
  }
  /// How the validator in the checkpoint relates to that of the reply.
  enum Relation: String, CaseIterable, Sendable { case sameStrong, sameWeak, changed, absent }

  /// The plan without its details.
  enum Outcome: Equatable, Sendable {
    case append, begin, replace, complete
    case reject(DownloadError.Code)
    init(_ plan: ResumePlan) {
      self =
        switch plan {
        case .append: .append
        case .begin: .begin
        case .replace: .replace
        case .alreadyComplete: .complete
        case .reject(let error): .reject(error.code)
        }
    }
  }

  /// The outcomes for sameStrong, sameWeak, changed, absent.
  static let table: [OnDisk: [Answer: [Outcome]]] = {
    func all(_ code: DownloadError.Code) -> [Outcome] { .init(repeating: .reject(code), count: 4) }
    let http = all(.httpStatus)
    let begin: [Outcome] = .init(repeating: .begin, count: 4)
    // A status other than those about credentials and load may be about the range alone.
    let refused = all(.rangeRefused)
    let goOn: [Outcome] = [.append, .append, .reject(.contentChanged), .append]
    let unsatisfiable: [Outcome] = [
      .reject(.rangeNotSatisfiable), .reject(.rangeNotSatisfiable), .reject(.contentChanged),
      .reject(.rangeNotSatisfiable),
    ]
    return [
      // No bytes on disk: the whole file is requested, so any 206 is rejected.
      .nothing: [
        .whole200: begin, .right206: all(.wrongRange), .wrongStart206: all(.wrongRange),
        .wrongEnd206: all(.wrongRange), .wrongTotal206: all(.wrongRange), .multipart206: all(.multipartRange),
        .unreadable206: all(.unreadableRange), .encoded206: all(.wrongRange), .notModified304: http,
        .notFound404: http, .precondition412: http, .unsatisfiable416: http, .unsatisfiable416WithoutTotal: http,
        .unavailable503: http,
      ],
      // 40 of 100 bytes on disk. The first 40 bytes of a whole body are compared with them.
      .some: [
        .whole200: [.append, .append, .reject(.contentChanged), .append], .right206: goOn,
        .wrongStart206: all(.wrongRange),
        .wrongEnd206: all(.wrongRangeEnd), .wrongTotal206: all(.contentChanged), .multipart206: all(.multipartRange),
        .unreadable206: all(.unreadableRange), .encoded206: all(.wrongContentCoding), .notModified304: http,
        .notFound404: refused, .precondition412: refused, .unsatisfiable416: unsatisfiable,
        .unsatisfiable416WithoutTotal: all(.rangeNotSatisfiable), .unavailable503: refused,
      ],
      // All 100 bytes are on disk, but the total size is unknown.
      .all: [
        .whole200: [.append, .append, .reject(.contentChanged), .append],
        .right206: goOn, .wrongStart206: all(.wrongRange), .wrongEnd206: all(.wrongRangeEnd),
        // The file has more bytes than were known: the download continues as after an interruption.
        .wrongTotal206: goOn,
        .multipart206: all(.multipartRange), .unreadable206: all(.unreadableRange),
        .encoded206: all(.wrongContentCoding), .notModified304: http, .notFound404: refused,
        .precondition412: refused,
        .unsatisfiable416: [
          .complete, .reject(.rangeNotSatisfiable), .reject(.contentChanged), .reject(.rangeNotSatisfiable),
        ],
        .unsatisfiable416WithoutTotal: all(.rangeNotSatisfiable), .unavailable503: refused,
      ],
      // 120 bytes are on disk, but the file has 100.
      .more: [
        .whole200: all(.contentChanged), .right206: all(.wrongRangeEnd), .wrongStart206: all(.wrongRange),
        .wrongEnd206: all(.wrongRangeEnd), .wrongTotal206: goOn, .multipart206: all(.multipartRange),
        .unreadable206: all(.unreadableRange), .encoded206: all(.wrongRangeEnd), .notModified304: http,
        .notFound404: refused, .precondition412: refused, .unsatisfiable416: unsatisfiable,
        .unsatisfiable416WithoutTotal: all(.rangeNotSatisfiable), .unavailable503: refused,
      ],
    ]
  }()

  @Test(arguments: OnDisk.allCases, Answer.allCases)
  func row(onDisk: OnDisk, answer: Answer) throws {
    let outcomes = try #require(Self.table[onDisk]?[answer])
    for (relation, expected) in zip(Relation.allCases, outcomes) {
      let checkpoint = Self.checkpoint(onDisk, relation)
      let question = ResumePlan.question(for: checkpoint, validation: .overlap(10))
      let request = SourceRequest(url: Self.url, range: question.range, validator: question.validator)
      let reply = Self.reply(answer, to: request, relation)
      let plan = ResumePlan.decide(
        checkpoint: checkpoint, request: request, reply: reply, validation: .overlap(10))
      #expect(Outcome(plan) == expected, "\(onDisk) × \(answer) × \(relation): \(plan)")
      try Self.checkInvariant(plan, checkpoint: checkpoint, request: request, reply: reply)
    }
  }

  /// For all rows: bytes are only appended if the reply's range continues the bytes on disk.
  static func checkInvariant(
    _ plan: ResumePlan, checkpoint: Checkpoint, request: SourceRequest, reply: SourceReply
  ) throws {
    switch plan {
    case .append(let offset, let comparing):
      let have = checkpoint.ranges.prefixLength
      #expect(offset == have)
      switch reply.coverage {
      case .range(let range, _): #expect(range.lowerBound == offset - comparing)
      case .whole: #expect(comparing == have, "every byte on disk is compared with the whole body")
      default: Issue.record("a reply without bytes was appended")
      }
      #expect(reply.contentCoding == checkpoint.contentCoding)
      let relation = checkpoint.validator?.compare(to: reply.validator) ?? .absent
      #expect(relation != .changed)
      #expect(relation == .sameStrong || comparing > 0, "nothing proves that these bytes are of the same file")
    case .begin, .replace:
      #expect(reply.coverage == .whole)
    case .alreadyComplete, .reject:
      break
    }
  }

  // MARK: Validation policies

  @Test func strictBeginsAgainWithoutAStrongValidator() {
    let checkpoint = Self.checkpoint(.some, .sameWeak)
    #expect(ResumePlan.question(for: checkpoint, validation: .strict).range == nil)
    let request = SourceRequest(url: Self.url, range: RequestedRange(from: 40))
    let plan = ResumePlan.decide(
      checkpoint: checkpoint, request: request, reply: Self.reply(.right206, to: request, .sameWeak),
      validation: .strict)
    #expect(Outcome(plan) == .reject(.unproven))
  }

  @Test func digestTrustsTheEndOnlyWhenThereIsADigest() {
    let large = Checkpoint(ranges: ByteRangeSet(0..<100_000))
    #expect(ResumePlan.question(for: large, validation: .digest, hasDigest: false).range == nil)
    let question = ResumePlan.question(for: large, validation: .digest, hasDigest: true)
    #expect(question.range == RequestedRange(from: 100_000 - 65_536))
    let checkpoint = Self.checkpoint(.some, .absent)
    let request = SourceRequest(url: Self.url, range: RequestedRange(from: 30))
    let reply = Self.reply(.right206, to: request, .absent)
    let trusting = ResumePlan.decide(
      checkpoint: checkpoint, request: request, reply: reply, validation: .digest, hasDigest: true)
    #expect(trusting == .append(at: 40, comparing: 10))
    let wary = ResumePlan.decide(
      checkpoint: checkpoint, request: request, reply: reply, validation: .digest, hasDigest: false)
    #expect(Outcome(wary) == .reject(.unproven))
  }

  @Test func overlapAsksForTheBytesItCompares() {
    let question = ResumePlan.question(for: Self.checkpoint(.some, .absent), validation: .overlap(10))
    #expect(question.range == RequestedRange(from: 30))
    #expect(ResumePlan.question(for: Self.checkpoint(.some, .absent), validation: .overlap(4096)).range == nil)
  }

  @Test func aStrongValidatorGoesOutAsIfRange() {
    let question = ResumePlan.question(for: Self.checkpoint(.some, .sameStrong), validation: .overlap(10))
    #expect(question.range == RequestedRange(from: 30))
    #expect(question.validator?.ifRange == "\"v1\"")
    #expect(ResumePlan.question(for: Self.checkpoint(.some, .sameWeak)).validator?.ifRange == nil)
  }

  @Test("some bytes are compared even with a strong validator: not every server changes it with the content")
  func aStrongValidatorIsNotEnough() {
    var checkpoint = Self.checkpoint(.some, .sameStrong)
    checkpoint.ranges = ByteRangeSet(0..<100_000)
    let few = RequestedRange(from: 100_000 - 65_536)
    #expect(ResumePlan.question(for: checkpoint).range == few)
    #expect(ResumePlan.question(for: checkpoint, validation: .strict).range == few)
    #expect(ResumePlan.question(for: checkpoint, validation: .digest).range == few)
    checkpoint.ranges = ByteRangeSet(0..<65_536)
    #expect(ResumePlan.question(for: checkpoint).range == nil, "all bytes if there are fewer")
  }

  @Test("bytes behind a gap are not given up because few are before it", arguments: [0, 1, 65_536, 65_537])
  func fewBytesBeforeAGap(have: Int64) {
    var checkpoint = Self.checkpoint(.some, .sameStrong)
    checkpoint.ranges = ByteRangeSet([0..<have, 200_000..<300_000].filter { !$0.isEmpty })
    let question = ResumePlan.question(for: checkpoint)
    #expect(question.range == RequestedRange(from: max(0, have - 65_536)))
    #expect(question.validator?.ifRange == "\"v1\"")
    // Nothing but a strong validator proves that the rest of the file is the same.
    #expect(ResumePlan.question(for: checkpoint, trust: .none).range == nil)
    checkpoint.validator = Self.checkpoint(.some, .sameWeak).validator
    if have <= 65_536 { #expect(ResumePlan.question(for: checkpoint).range == nil) }
  }

  @Test("the less a server is trusted, the less the request depends on it")
  func trustDecidesTheQuestion() {
    let checkpoint = Self.checkpoint(.some, .sameStrong)
    func question(_ trust: RangeTrust) -> ResumePlan.Question {
      ResumePlan.question(for: checkpoint, validation: .overlap(10), trust: trust)
    }
    #expect(question(.full).range == RequestedRange(from: 30))
    #expect(question(.overlap).range == RequestedRange(from: 30))
    #expect(ResumePlan.question(for: checkpoint, validation: .strict, trust: .overlap).range == nil)
    #expect(question(.none).range == nil)
    #expect(question(.none).validator == nil)
  }

  @Test("a whole body is only compared if it can be the file on disk")
  func wholeBodiesThatCannotBe() {
    func outcome(_ change: (inout SourceReply) -> Void) -> Outcome {
      let checkpoint = Self.checkpoint(.some, .absent)
      let request = SourceRequest(url: Self.url, range: RequestedRange(from: 30))
      var reply = Self.reply(.whole200, to: request, .absent)
      change(&reply)
      return Outcome(
        ResumePlan.decide(checkpoint: checkpoint, request: request, reply: reply, validation: .overlap(10)))
    }
    #expect(outcome { _ in } == .append)
    #expect(outcome { $0.length = .unknown } == .append)
    #expect(outcome { $0.length = .known(99) } == .reject(.contentChanged))
    #expect(outcome { $0.length = .known(39) } == .reject(.contentChanged))
    #expect(outcome { $0.contentCoding = "gzip" } == .reject(.wrongContentCoding))
  }

  // MARK: Resources, digests and pages

  private static func decide(
    _ change: (inout Checkpoint, inout SourceRequest, inout SourceReply) -> Void, answer: Answer = .right206,
    hasDigest: Bool = false, validation: ResumeValidation = .overlap(10)
  ) -> Outcome {
    var checkpoint = checkpoint(.some, .sameStrong)
    checkpoint.resource = url.resourceKey
    let question = ResumePlan.question(for: checkpoint, validation: .overlap(10))
    var request = SourceRequest(url: url, range: question.range, validator: question.validator)
    var reply = reply(answer, to: request, .sameStrong)
    change(&checkpoint, &request, &reply)
    return Outcome(
      ResumePlan.decide(
        checkpoint: checkpoint, request: request, reply: reply, validation: validation, hasDigest: hasDigest))
  }

  @Test("a validator applies to its own resource only")
  func resources() throws {
    let elsewhere = try #require(URL(string: "https://mirror.example/file"))
    #expect(Self.decide { _, _, _ in } == .append)
    #expect(Self.decide({ _, request, _ in request.url = elsewhere }, validation: .strict) == .reject(.unproven))
    #expect(Self.decide({ _, _, reply in reply.finalURL = elsewhere }, validation: .strict) == .reject(.unproven))
    // If a comparison is sufficient, it is sufficient here, too.
    #expect(Self.decide { _, request, _ in request.url = elsewhere } == .append)
    // The query is often a signature and does not make another resource.
    let signed = try #require(URL(string: Self.url.absoluteString + "?signature=2"))
    #expect(Self.decide { _, request, _ in request.url = signed } == .append)
  }

  @Test("equal strong digests of the whole file outweigh different entity tags, weak digests do not")
  func digestsOutweighTags() {
    func outcome(_ digest: FileDigest) -> Outcome {
      Self.decide { checkpoint, request, reply in
        checkpoint.digests = [digest]
        request.range = RequestedRange(from: 30)
        reply.coverage = .range(30..<100, total: .known(100))
        reply.length = .known(70)
        reply.validator = Validator(entityTag: EntityTag("v2"))
        reply.digests = [digest]
      }
    }
    #expect(outcome(FileDigest(.sha256, bytes: Array(repeating: 1, count: 32))) == .append)
    #expect(outcome(FileDigest(.md5, bytes: Array(repeating: 1, count: 16))) == .reject(.contentChanged))
  }

  @Test("a web page is not the rest of another file", arguments: [Answer.right206, .whole200])
  func pages(answer: Answer) {
    func outcome(_ onDisk: String?, _ came: String?) -> Outcome {
      Self.decide(
        { checkpoint, _, reply in
          checkpoint.mediaType = onDisk
          reply.mediaType = came
          reply.validator = nil
        }, answer: answer)
    }
    #expect(outcome("video/mp4", "text/html; charset=utf-8") == .reject(.contentChanged))
    #expect(outcome("text/html", "text/html") == .append)
    #expect(outcome(nil, "text/html") == .append)
    #expect(outcome("video/mp4", "video/webm") == .append)
  }

  // MARK: Sizes

  @Test("a known size is kept if a reply does not give it")
  func knownSizes() {
    let shortened = Self.decide({ _, _, reply in reply.length = .known(40) }, answer: .whole200)
    #expect(shortened == .reject(.contentChanged), "40 of 100 bytes are not the whole file, even if a cache says so")
    let beyond = Self.decide { _, _, reply in
      reply.coverage = .range(30..<120, total: .unknown)
      reply.length = .known(90)
    }
    #expect(beyond == .reject(.contentChanged))
  }

  @Test("a whole body without a range in the request is another version by its validator, or the bytes on disk")
  func wholeBodies() {
    for relation in Relation.allCases {
      let request = SourceRequest(url: Self.url)
      func outcome(_ onDisk: OnDisk) -> Outcome {
        Outcome(
          ResumePlan.decide(
            checkpoint: Self.checkpoint(onDisk, relation), request: request,
            reply: Self.reply(.whole200, to: request, relation)))
      }
      #expect(outcome(.some) == (relation == .changed ? .replace : .append))
      #expect(outcome(.all) == (relation == .changed ? .replace : relation == .sameStrong ? .complete : .append))
    }
  }

  @Test func aShorterRangeThanAskedForIsTaken() {
    let checkpoint = Self.checkpoint(.some, .sameStrong)
    let request = SourceRequest(url: Self.url, range: RequestedRange(from: 40))
    let reply = SourceReply(
      coverage: .range(40..<60, total: .known(100)), length: .known(20), validator: Self.strong, body: .empty)
    #expect(
      ResumePlan.decide(checkpoint: checkpoint, request: request, reply: reply) == .append(at: 40, comparing: 0))
  }

  @Test func contentLengthMustAgreeWithContentRange() {
    let checkpoint = Self.checkpoint(.some, .sameStrong)
    let request = SourceRequest(url: Self.url, range: RequestedRange(from: 40))
    let reply = SourceReply(
      coverage: .range(40..<100, total: .known(100)), length: .known(61), validator: Self.strong, body: .empty)
    let plan = ResumePlan.decide(checkpoint: checkpoint, request: request, reply: reply)
    #expect(Outcome(plan) == .reject(.lengthMismatch))
  }

  @Test(arguments: [Answer.whole200, .right206])
  func anExpectedSizeIsHeldAgainstTheAnswer(answer: Answer) {
    let checkpoint = Self.checkpoint(answer == .whole200 ? .nothing : .some, .sameStrong)
    let question = ResumePlan.question(for: checkpoint, validation: .overlap(10))
    let request = SourceRequest(url: Self.url, range: question.range, validator: question.validator)
    let reply = Self.reply(answer, to: request, .sameStrong)
    let plan = ResumePlan.decide(checkpoint: checkpoint, request: request, reply: reply, expectedSize: 99)
    #expect(Outcome(plan) == .reject(.lengthMismatch))
  }

  @Test(
    "a status that is about the request, and not about its range, leads to no other request",
    arguments: [
      (401, nil, false, true), (407, nil, false, true), (429, nil, false, true), (503, 5, false, true),
      (503, nil, false, false), (403, nil, true, true), (403, nil, false, false), (400, nil, false, false),
      (404, nil, false, false), (405, nil, false, false), (406, nil, false, false), (500, nil, false, false),
      (501, nil, false, false), (302, nil, false, false),
    ] as [(Int, Int64?, Bool, Bool)])
  func refusedRanges(status: Int, retryAfter: Int64?, canRefresh: Bool, isAboutTheRequest: Bool) {
    let checkpoint = Self.checkpoint(.some, .sameStrong)
    let request = SourceRequest(url: Self.url, range: RequestedRange(from: 30))
    var reply = SourceReply(coverage: .none(.status(status)), body: .empty)
    reply.retryAfter = retryAfter.map { .seconds($0) }
    func outcome(_ request: SourceRequest) -> Outcome {
      Outcome(ResumePlan.decide(checkpoint: checkpoint, request: request, reply: reply, canRefresh: canRefresh))
    }
    #expect(outcome(request) == .reject(isAboutTheRequest ? .httpStatus : .rangeRefused))
    #expect(outcome(SourceRequest(url: Self.url)) == .reject(.httpStatus))
  }

  @Test func statusAndRetryAfterAreHandedOn() {
    let request = SourceRequest(url: Self.url)
    var reply = Self.reply(.unavailable503, to: request, .absent)
    reply.retryAfter = .seconds(7)
    guard case .reject(let error) = ResumePlan.decide(checkpoint: Checkpoint(), request: request, reply: reply) else {
      Issue.record("503 must be refused")
      return
    }
    #expect(error.httpStatus == 503)
    #expect(error.retryAfter == .seconds(7))
  }

  // MARK: The cells

  static let url = URL(filePath: "/file")
  static let strong = Validator(entityTag: EntityTag("v1"))

  static func checkpoint(_ onDisk: OnDisk, _ relation: Relation) -> Checkpoint {
    let validator: Validator? =
      switch relation {
      case .sameStrong, .changed: strong
      case .sameWeak: Validator(entityTag: EntityTag("v1", isWeak: true))
      case .absent: nil
      }
    switch onDisk {
    case .nothing: return Checkpoint()
    case .some: return Checkpoint(ranges: ByteRangeSet(0..<40), total: .known(100), validator: validator)
    case .all: return Checkpoint(ranges: ByteRangeSet(0..<100), validator: validator)
    case .more: return Checkpoint(ranges: ByteRangeSet(0..<120), validator: validator)
    }
  }

  static func reply(_ answer: Answer, to request: SourceRequest, _ relation: Relation) -> SourceReply {
    let start = request.range?.start ?? 0
    var contentCoding: String?
    let coverage: Coverage
    switch answer {
    case .whole200: coverage = .whole
    case .right206: coverage = .range(start..<max(100, start + 1), total: .known(100))
    case .wrongStart206: coverage = .range(start + 1..<max(100, start + 2), total: .known(200))
    case .wrongEnd206: coverage = .range(start..<max(101, start + 1), total: .known(100))
    case .wrongTotal206: coverage = .range(start..<200, total: .known(200))
    case .multipart206: coverage = .multipart
    case .unreadable206: coverage = .unreadable("bytes 9-3/2")
    case .encoded206:
      coverage = .range(start..<max(100, start + 1), total: .known(100))
      contentCoding = "gzip"
    case .notModified304: coverage = .none(.notModified)
    case .notFound404: coverage = .none(.status(404))
    case .precondition412: coverage = .none(.preconditionFailed)
    case .unsatisfiable416: coverage = .none(.rangeNotSatisfiable(total: .known(100)))
    case .unsatisfiable416WithoutTotal: coverage = .none(.rangeNotSatisfiable(total: .unknown))
    case .unavailable503: coverage = .none(.status(503))
    }
    let validator: Validator? =
      switch relation {
      case .sameStrong: strong
      case .sameWeak: Validator(entityTag: EntityTag("v1", isWeak: true))
      case .changed: Validator(entityTag: EntityTag("v2"))
      case .absent: nil
      }
    let length: ByteCount =
      switch coverage {
      case .range(let range, _): .known(range.upperBound - range.lowerBound)
      case .whole: .known(100)
      default: .unknown
      }
    return SourceReply(
      coverage: coverage, length: length, validator: validator, contentCoding: contentCoding, body: .empty)
  }
}
