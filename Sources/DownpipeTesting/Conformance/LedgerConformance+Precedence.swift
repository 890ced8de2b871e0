@_spi(Ledger) import DownpipeCore
import Foundation
import Synchronization

extension LedgerConformance {
  func checkHoldingAndPrecedence(_ report: ConformanceReport) async {
    await report.check("hold-ends", "held candidates are considered again at their instant, and in a new version") {
      let (_, store) = try await opened()
      let hosts = ["closed", "closed", "later", "open", "open"]
      _ = try await store.add(
        try hosts.enumerated().map { try Self.shared(DownloadID("\($0)"), order: Int64($0), host: $1) }, at: Self.start)
      func lease(at instant: Duration, version: Int) async throws -> [String] {
        var request = LeaseRequest(now: Self.start, until: Self.time(60)) { candidate in
          switch candidate.host {
          case "closed": version == 2 ? .take : .hold(until: nil)
          case "later": instant >= .seconds(5) ? .take : .hold(until: .seconds(5))
          default: .take
          }
        }
        (request.instant, request.rulesVersion) = (instant, version)
        return try await store.lease(request).map(\.id.rawValue)
      }
      try expectEqual(
        try await lease(at: .seconds(1), version: 1), ["3", "4"], "the downloads leased beside held ones")
      // New downloads of a held candidate are held too, and others are not.
      let more = try [("5", "closed"), ("6", "open")].enumerated()
        .map { try Self.shared(DownloadID($1.0), order: Int64(10 + $0), host: $1.1) }
      _ = try await store.add(more, at: Self.start)
      try expectEqual(try await lease(at: .seconds(4), version: 1), ["6"], "the downloads leased before the instant")
      try expectEqual(try await lease(at: .seconds(5), version: 1), ["2"], "the downloads leased at the instant")
      try expectEqual(try await lease(at: .seconds(5), version: 2), ["0", "1", "5"], "those leased in a new version")
    }
    await report.check("precedence", "candidates are leased in the order of precedence, then of rank") {
      let (_, store) = try await opened()
      let hosts = ["a", "a", "a", "b", "b", "c"]
      _ = try await store.add(
        try hosts.enumerated().map { try Self.shared(DownloadID("\($0)"), order: Int64($0), host: $1) }, at: Self.start)
      let taken = Mutex<[String: UInt64]>([:])
      func request(most: Int) -> LeaseRequest {
        let left = Mutex(most)
        var request = LeaseRequest(now: Self.start, until: Self.time(60)) { candidate in
          let mayTake = left.withLock { left in
            left -= 1
            return left >= 0
          }
          guard mayTake else { return .stop }
          taken.withLock { $0[candidate.host, default: 0] += 1 }
          return .take
        }
        request.order = CandidateOrder(group: \.host) { host in taken.withLock { $0[host, default: 0] } }
        return request
      }
      try expectEqual(
        try await store.lease(request(most: 4)).map(\.id.rawValue), ["0", "3", "5", "1"], "the first four leased")
      // A newcomer with nothing taken goes first.
      _ = try await store.add([try Self.shared("6", order: 10, host: "d")], at: Self.start)
      try expectEqual(
        try await store.lease(request(most: 9)).map(\.id.rawValue), ["6", "4", "2"], "the downloads leased after them")
    }
  }

  func checkSettings(_ report: ConformanceReport) async {
    await report.check("settings-are-kept", "the settings kept last are returned, also by a later opening") {
      let (ledger, store) = try await opened()
      try expectEqual(try await store.settings(), nil, "the settings of a new ledger")
      for text in ["{}", #"{"jobs":5,"name":"Ω ' \"","list":[1,null]}"#] {
        try await store.keep(settings: Data(text.utf8))
      }
      let expected = Data(#"{"jobs":5,"name":"Ω ' \"","list":[1,null]}"#.utf8)
      try expectEqual(try await store.settings(), expected, "the settings")
      // A ranking is kept in a similar way and must not replace them.
      try await store.rank(by: .arrival)
      try await store.close()
      try expectEqual(try await ledger.open().settings(), expected, "the settings after a restart")
    }
  }

  /// An addition whose candidate differs from others by its host only.
  private static func shared(_ id: DownloadID, order: Int64, host: String) throws -> LedgerAddition {
    var addition = try addition(id, order: order, host: host)
    addition.request.intent = .prefetch
    return addition
  }
}
