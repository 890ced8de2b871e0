#if os(Linux) && Postgres
  import Foundation

  @testable import FaultyServer

  /// How many requests each host had at once, from the log of the server.
  ///
  /// A request counts from its arrival until the last byte of the reply is handed to the system, or until its connection
  /// has ended. The limit is one of leased downloads, and a server cannot see leases. So there are requests that must not be
  /// held against the fleet, because the server still has them when the worker has provably lost them: those of a worker
  /// that was killed, stopped or cut off from the web during the request. They are left out from the beginning of the fault
  /// on. Nothing is left out for workers that are cut off from the database.
  struct FleetTrialCount {
    /// A fault of a worker, after which its open requests are left out.
    struct Excuse: Hashable {
      var kind: FleetTrialFault.Kind
      /// The address of the worker.
      var address: String
      var begin: UInt64
      var end: UInt64
    }

    /// A time in which a host had more requests than it may.
    struct Excess: Hashable {
      var host: String
      var count: Int
      var begin: UInt64
      var end: UInt64
      /// The requests at its beginning.
      var requests: [ServedRequest]
    }

    /// The most requests of one host at once, without those that are left out, and with them.
    private(set) var most = 0
    private(set) var mostWithExcused = 0
    private(set) var excesses: [Excess] = []
    /// The numbers of requests that were left out, by the kind of the fault.
    private(set) var excused: [FleetTrialFault.Kind: Int] = [:]
    /// How long such requests went on after the fault, at most, in nanoseconds.
    private(set) var longestAfter: [FleetTrialFault.Kind: UInt64] = [:]

    init(_ requests: [ServedRequest], limit: Int, excuses: [Excuse]) {
      let byAddress = Dictionary(grouping: excuses, by: \.address)
      var hosts: [String: [(request: ServedRequest, until: UInt64)]] = [:]
      for request in requests {
        let address = request.client.split(separator: ":").first.map(String.init) ?? ""
        let fault = (byAddress[address] ?? []).filter { $0.begin <= request.finish && request.start <= $0.end }
          .min { $0.begin < $1.begin }
        if let fault {
          excused[fault.kind, default: 0] += 1
          if request.finish > fault.end {
            longestAfter[fault.kind] = max(longestAfter[fault.kind] ?? 0, request.finish - fault.end)
          }
        }
        hosts[request.host, default: []].append((request, min(request.finish, fault?.begin ?? .max)))
      }
      for (host, all) in hosts.sorted(by: { $0.key < $1.key }) {
        mostWithExcused = max(mostWithExcused, Self.sweep(all.map { ($0.request, $0.request.finish) }) { _, _, _ in })
        var excess: Excess?
        let most = Self.sweep(all.filter { $0.until > $0.request.start }) { count, at, open in
          if count > limit {
            var over = excess ?? Excess(host: host, count: count, begin: at, end: at, requests: open())
            over.count = max(over.count, count)
            excess = over
          } else if var over = excess {
            over.end = at
            excesses.append(over)
            excess = nil
          }
        }
        self.most = max(self.most, most)
      }
    }

    /// Goes through the beginnings and ends of one host's requests in their order.
    private static func sweep(
      _ requests: [(request: ServedRequest, until: UInt64)], _ look: (Int, UInt64, () -> [ServedRequest]) -> Void
    ) -> Int {
      let steps = requests.flatMap { [($0.request.start, 1), ($0.until, -1)] }.sorted { $0 < $1 }
      var (count, most) = (0, 0)
      for (at, step) in steps {
        count += step
        most = max(most, count)
        look(count, at) { requests.filter { $0.request.start <= at && at < $0.until }.map(\.request) }
      }
      return most
    }
  }
#endif
