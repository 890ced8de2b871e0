import DownpipeCore
import HangLimit
import Testing

@Suite(.endsHangs)
struct FailureTableTests {
  /// All codes, listed a second time.
  static let codes: [DownloadError.Code: FailureTable.Action] = [
    .network: .resume, .tooManyOpenFiles: .waitForDescriptors, .offline: .waitForNetwork, .hostNotFound: .resume,
    .tls: .giveUp,
    .timedOut: .resume,
    .fileNotFound: .giveUp, .httpStatus: .giveUp, .invalidResponse: .resume, .tooManyRedirects: .giveUp,
    .insecureRedirect: .giveUp,
    .privateAddress: .giveUp,
    .contentChanged: .refresh,
    .sizeChanged: .refresh, .rangeRefused: .resume, .unproven: .resume, .wrongRange: .resume, .wrongRangeEnd: .resume,
    .unreadableRange: .resume, .multipartRange: .resume, .rangeIgnored: .resume, .rangeNotSatisfiable: .resume,
    .wrongContentCoding: .resume, .linkExpired: .refresh, .lengthMismatch: .resume, .digestMismatch: .restart,
    .pieceMismatch: .resume,
    .damaged: .restart,
    .noSpace: .waitForDisk, .inUse: .waitForOwner, .permission: .giveUp, .storage: .giveUp, .alreadyExists: .giveUp,
    .unsafePath: .giveUp, .tooLarge: .giveUp, .unsupportedURL: .giveUp, .invalidRequest: .giveUp,
    .invalidPipeline: .giveUp, .processing: .giveUp, .ledger: .resume, .cancelled: .giveUp, .removed: .giveUp,
    .shutDown: .giveUp, .notOwner: .giveUp,
  ]

  /// All statuses in IANA's registry.
  static let registered: [Int] =
    Array(100...104) + Array(200...208) + [226] + Array(300...308) + Array(400...418) + Array(421...426)
    + [428, 429, 431, 451] + Array(500...508) + [510, 511]

  static let resumed: Set<Int> = [202, 408, 421, 423, 425, 429, 500, 502, 503, 504]
  static let restarted: Set<Int> = [206]
  static let refreshed: Set<Int> = [401, 403, 410]

  @Test func everyCodeHasARow() {
    for (code, action) in Self.codes {
      #expect(FailureTable.standard.row(.code(code))?.action == action, "\(code)")
    }
    let rows = FailureTable.standard.rows.filter { if case .code = $0.key { true } else { false } }
    #expect(rows.count == Self.codes.count)
  }

  @Test func everyRegisteredStatusHasARow() {
    for status in Self.registered {
      let action: FailureTable.Action =
        Self.resumed.contains(status)
        ? .resume
        : Self.restarted.contains(status)
          ? .restart
          : Self.refreshed.contains(status) ? .refresh : .giveUp
      #expect(FailureTable.standard.row(.httpStatus(status))?.action == action, "\(status)")
    }
    let rows = FailureTable.standard.rows.filter { if case .httpStatus = $0.key { true } else { false } }
    #expect(rows.count == Self.registered.count)
  }

  @Test func everyRowHasAReasonAndAKeyOfItsOwn() {
    let rows = FailureTable.standard.rows
    #expect(rows.allSatisfy { $0.reason.count > 5 })
    #expect(Set(rows.map(\.key)).count == rows.count)
  }

  @Test(arguments: [
    (520, FailureTable.Key.httpStatusClass(5), FailureTable.Action.resume), (599, .httpStatusClass(5), .resume),
    (499, .httpStatusClass(4), .giveUp), (399, .httpStatusClass(3), .giveUp), (299, .httpStatusClass(2), .giveUp),
    (199, .httpStatusClass(1), .giveUp), (600, .code(.httpStatus), .giveUp), (999, .code(.httpStatus), .giveUp),
    (0, .code(.httpStatus), .giveUp), (-1, .code(.httpStatus), .giveUp), (404, .httpStatus(404), .giveUp),
  ])
  func statusesFallBackToTheirClass(status: Int, key: FailureTable.Key, action: FailureTable.Action) {
    let row = FailureTable.standard.row(for: DownloadError(.httpStatus, "x", httpStatus: status))
    #expect(row.key == key)
    #expect(row.action == action)
  }

  @Test func theCodeGovernsWhereTheStatusIsNotTheFailure() {
    let error = DownloadError(.contentChanged, "another tag", httpStatus: 404)
    #expect(FailureTable.standard.row(for: error).key == .code(.contentChanged))
    #expect(FailureTable.standard.row(for: DownloadError(.httpStatus, "none")).key == .code(.httpStatus))
  }

  @Test func unknownCodesAreOther() {
    #expect(FailureTable.standard.row(for: DownloadError(.init("mine"), "x")).key == .other)
    let table = FailureTable.standard.with(.code(.init("mine")), .resume, because: "it passes")
    #expect(table.row(for: DownloadError(.init("mine"), "x")).action == .resume)
  }

  @Test func anEmptyTableGivesUp() {
    let row = FailureTable().row(for: DownloadError(.network, "x"))
    #expect(row.action == .giveUp)
    #expect(!row.reason.isEmpty)
  }

  @Test func withReplacesInPlaceAndLeavesTheOriginal() {
    let table = FailureTable.standard.with(.httpStatus(404), .resume, because: "it is being uploaded", attempts: 3)
    #expect(table.rows.count == FailureTable.standard.rows.count)
    #expect(
      table.row(.httpStatus(404)) == .init(.httpStatus(404), .resume, because: "it is being uploaded", attempts: 3))
    #expect(FailureTable.standard.row(.httpStatus(404))?.action == .giveUp)
    #expect(table.rows.map(\.key) == FailureTable.standard.rows.map(\.key))
    #expect(table.with(.httpStatus(799), .giveUp, because: "new").rows.last?.key == .httpStatus(799))
  }

  @Test func ofSeveralRowsTheLastCounts() {
    let table = FailureTable([
      .init(.code(.network), .giveUp, because: "first"), .init(.code(.network), .resume, because: "second"),
    ])
    #expect(table.rows == [.init(.code(.network), .resume, because: "second")])
  }

  @Test func printsARowALine() {
    let table = FailureTable([
      .init(.code(.network), .resume, because: "connections come back"),
      .init(.httpStatus(404), .giveUp, because: "the file is not there"),
      .init(.httpStatusClass(5), .restart, because: "why not", attempts: 2),
    ])
    #expect(
      "\(table)" == """
        network   resume   connections come back
        HTTP 404  give up  the file is not there
        HTTP 5xx  restart  why not (2 attempts at most)
        """)
    #expect("\(FailureTable.standard)".split(separator: "\n").count == FailureTable.standard.rows.count)
  }
}
