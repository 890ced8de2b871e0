#if Postgres
  import DownpipeColumns
  @_spi(Ledger) import DownpipeCore
  import Foundation
  import Synchronization

  /// What a store remembers between its transactions: rows that never change, its ranking, and which candidates are held.
  final class StoreMemory: Sendable {
    /// The largest number of kinds in memory; a ledger may have a kind for each of ten million downloads.
    private static let mostKinds = 50_000

    private struct Kinds {
      var byNumber: [Int64: Kind] = [:]
      var numbers: [Kind: Int64] = [:]
    }

    /// The owner of this store, and the number of its row in `opening`.
    let owner: (text: String, number: Int64)
    let schema: String
    private let kinds = Mutex(Kinds())
    private let owners = Mutex<[Int64: String]>([:])
    private let ranking = Mutex((ranking: Ranking.arrival, number: 0))
    private let held = Mutex(HeldCandidates())
    private let taken = Atomic(0)

    /// How this worker fares.
    let condition = Mutex(WorkerCondition())

    /// The clocks of this machine and of the server.
    let clock: ServerClock

    init(owner: (text: String, number: Int64), schema: String, clock: ServerClock = ServerClock()) {
      self.clock = clock
      self.owner = owner
      self.schema = schema
      owners.withLock { $0[owner.number] = owner.text }
    }

    /// The time of this machine.
    var clockNow: PostgresValue { .real(clock.machineTime) }

    // MARK: Rows

    func kind(_ number: Int64) -> Kind? { kinds.withLock { $0.byNumber[number] } }
    func number(of kind: Kind) -> Int64? { kinds.withLock { $0.numbers[kind] } }

    func remember(_ kind: Kind, _ number: Int64) {
      kinds.withLock { kinds in
        if kinds.byNumber.count >= Self.mostKinds { kinds = Kinds() }
        kinds.byNumber[number] = kind
        kinds.numbers[kind] = number
      }
    }

    func owner(_ number: Int64) -> String? { owners.withLock { $0[number] } }

    func remember(owner: String, _ number: Int64) {
      owners.withLock { owners in
        if owners.count >= Self.mostKinds { owners = [:] }
        owners[number] = owner
      }
    }

    // MARK: Ranking

    /// The ranking of downloads that this store adds or changes, and the number of rankings that it has had: a name alone
    /// does not tell a ranking from its replacement.
    var currentRanking: (ranking: Ranking, number: Int) { ranking.withLock { $0 } }

    func set(_ new: Ranking) -> Int {
      ranking.withLock { current in
        current = (new, current.number + 1)
        return current.number
      }
    }

    // MARK: Leases

    /// The number of downloads that the last lease has taken, which is a guess for the next one.
    var lastTaken: Int { taken.load(ordering: .relaxed) }
    func tookOnce(_ count: Int) { taken.store(count, ordering: .relaxed) }

    /// The candidates that a lease need not ask about; see ``LeaseSelection/hold(until:)``.
    func held(for request: LeaseRequest) -> Set<Candidate> {
      held.withLock { $0.begin(request) }
    }

    func hold(_ candidate: Candidate, until due: Duration?, for request: LeaseRequest) {
      held.withLock { $0.hold(candidate, until: due, for: request) }
    }
  }

  /// The candidates that are held, for one version of the rules.
  private struct HeldCandidates {
    private var version: Int?
    private var hasOrder = false
    private var candidates: [Candidate: Duration?] = [:]

    mutating func begin(_ request: LeaseRequest) -> Set<Candidate> {
      if request.rulesVersion != version || hasOrder != (request.order != nil) {
        (version, hasOrder) = (request.rulesVersion, request.order != nil)
        candidates = [:]
      }
      candidates = candidates.filter { $0.value.map { $0 > request.instant } ?? true }
      return Set(candidates.keys)
    }

    mutating func hold(_ candidate: Candidate, until due: Duration?, for request: LeaseRequest) {
      if request.rulesVersion == version { candidates[candidate] = .some(due) }
    }
  }
#endif
