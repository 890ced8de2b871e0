#if Postgres
  import DownpipeColumns
  @_spi(Ledger) import DownpipeCore

  /// What a lease has passed over, because another transaction had locked it.
  enum PassedOver: Sendable {
    /// A download, by its generation.
    case download(Int64)
    /// All downloads that count for a limit of all workers, by its key.
    case limit(String)
  }

  /// The search of one lease.
  struct LeaseSearch {
    let request: LeaseRequest
    /// The candidates that are not asked about any more.
    private(set) var skipped: Set<Candidate>
    private(set) var held: [(candidate: Candidate, due: Duration?)] = []
    private(set) var taken: [DownloadRecord] = []
    /// The generations of the downloads of the queue that were locked and considered.
    var seen: [Int64] = []
    /// What could not be locked, and may still be taken.
    var passedOver: PassedOver?
    var isOver = false
    /// Whether the request takes no more downloads.
    private(set) var isStopped = false
    /// What comes before this key in the queue was considered, but for skipped candidates.
    var last = WaitingKey.first

    init(_ request: LeaseRequest, held: Set<Candidate>) {
      self.request = request
      skipped = held
    }

    /// What is known of a limit of all workers.
    enum Leased {
      /// The number of leased downloads that count for it.
      case count(Int)
      /// Another worker has locked it.
      case busy
    }

    /// The limits of all workers that this search has looked at.
    var leased: [String: Leased] = [:]
    /// How many of them it has tried to lock.
    var locks = 0
    /// The taken downloads that count for limits of all workers.
    private(set) var counted: [(key: String, generation: Int64)] = []

    mutating func skip(_ candidate: Candidate) { skipped.insert(candidate) }

    /// Asks about a locked download. A damaged record is passed over.
    /// - Parameter keys: The limits of all workers that it counts for, which have room.
    mutating func consider(_ found: FoundRecord, countingFor keys: [String] = []) {
      let record = found.record
      guard found.damage == nil else { return }
      let line = record.candidate.withoutSize
      guard !skipped.contains(line) else { return }
      var candidate = line
      candidate.size = record.likelySize
      switch request.select(candidate) {
      case .take:
        taken.append(record)
        for key in keys {
          if case .count(let count) = leased[key] { leased[key] = .count(count + 1) }
          counted.append((key, record.generation))
        }
      case .skip: skipped.insert(line)
      case .hold(let due):
        skipped.insert(line)
        held.append((line, due))
      case .stop: (isOver, isStopped, passedOver) = (true, true, nil)
      }
    }

    /// Notes that some of the downloads that were to be locked could not be.
    mutating func notePassedOver(_ generations: [Int64], _ locked: [FoundRecord]) {
      guard passedOver == nil, locked.count < generations.count else { return }
      let found = Set(locked.map(\.record.generation))
      passedOver = generations.first { !found.contains($0) }.map(PassedOver.download)
    }
  }

  /// A waiting download and its kind.
  struct Head: Comparable {
    var key: WaitingKey
    var kind: Int64

    static func < (left: Self, right: Self) -> Bool { (left.key, left.kind) < (right.key, right.kind) }

    /// Reads rows of kind, rank, arrival and generation. A damaged one is left out.
    static func read(_ rows: borrowing PostgresRows) -> [Head] {
      var heads: [Head] = []
      for row in 0..<rows.count {
        guard let kind = rows.integer(row, 0), let rank = rows.key(row, 1), let arrival = rows.integer(row, 2),
          let generation = rows.integer(row, 3)
        else { continue }
        heads.append(Head(key: WaitingKey(rank: rank, arrival: arrival, generation: generation), kind: kind))
      }
      return heads
    }
  }

  /// The lanes of a search, merged in the order of their first downloads.
  struct Lanes {
    private let order: CandidateOrder?
    private var lanes: [Int64: ArraySlice<Head>] = [:]
    private var groups: [Int64: String] = [:]
    private var queue = MinHeap<Head>()
    private var groupedQueue = GroupedQueue<Head>()

    init(_ order: CandidateOrder?) { self.order = order }

    mutating func append(_ head: Head, _ kind: Kind) {
      if let order, groups[head.kind] == nil { groups[head.kind] = order.group(kind.candidate) }
      if lanes[head.kind] == nil { insert(head) }
      lanes[head.kind, default: []].append(head)
    }

    private mutating func insert(_ head: Head) {
      if let group = groups[head.kind] { groupedQueue.insert(head, in: group) } else { queue.insert(head) }
    }

    /// Removes and returns the first head; ``advance(_:)`` follows.
    mutating func pop() -> Head? {
      if let order { groupedQueue.removeFirst(order.precedence) } else { queue.removeFirst() }
    }

    /// Whether the popped head of a lane is the last one that was read.
    func isEmpty(_ kind: Int64) -> Bool { lanes[kind]?.count == 1 }

    /// Puts the next download of a lane in the place of the popped one.
    mutating func advance(_ kind: Int64) {
      _ = lanes[kind]?.popFirst()
      if let next = lanes[kind]?.first { insert(next) } else { lanes[kind] = nil }
    }
  }
#endif
