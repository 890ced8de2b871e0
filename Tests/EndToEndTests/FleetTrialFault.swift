#if os(Linux) && Postgres
  import DownpipeTesting

  /// Something that the trial of a fleet does to a worker or to the database.
  enum FleetTrialFault: Sendable, Hashable, CustomStringConvertible {
    enum Kind: String, Sendable, CaseIterable { case kill, pause, cutFromDatabase, cutFromWeb, database }

    /// How packets get lost.
    enum Loss: String, Sendable, CaseIterable {
      /// They disappear.
      case blackhole
      /// The router answers that there is no route.
      case unreachable
    }

    enum Database: Hashable, Sendable, CustomStringConvertible {
      /// Sessions are ended, and the server starts again.
      case restart
      /// The server crashes, and recovers.
      case crash
      /// The server is stopped for some time.
      case outage(Duration)
      /// The primary crashes, and the standby is promoted.
      case failOver
      /// The primary's machine cannot be reached any more, and the standby is promoted.
      case failOverOfMachine

      var description: String {
        switch self {
        case .restart: "restart of the database"
        case .crash: "crash of the database"
        case .outage: "outage of the database"
        case .failOver: "fail-over after a crash"
        case .failOverOfMachine: "fail-over after the loss of a machine"
        }
      }
    }

    /// SIGKILL; the worker is started again after a while.
    case kill(worker: Int, away: Duration)
    /// SIGSTOP, and SIGCONT after a while.
    case pause(worker: Int, Duration)
    case cutFromDatabase(worker: Int, Loss, Duration)
    case cutFromWeb(worker: Int, Loss, Duration)
    case database(Database)

    var description: String {
      switch self {
      case .kill(let worker, _), .pause(let worker, _): "\(kind.rawValue) w\(worker + 1)"
      case .cutFromDatabase(let worker, let loss, _), .cutFromWeb(let worker, let loss, _):
        "\(kind.rawValue) w\(worker + 1), \(loss.rawValue)"
      case .database(let fault): "\(fault)"
      }
    }

    var worker: Int? {
      switch self {
      case .kill(let worker, _), .pause(let worker, _), .cutFromDatabase(let worker, _, _),
        .cutFromWeb(let worker, _, _):
        worker
      case .database: nil
      }
    }

    var kind: Kind {
      switch self {
      case .kill: .kill
      case .pause: .pause
      case .cutFromDatabase: .cutFromDatabase
      case .cutFromWeb: .cutFromWeb
      case .database: .database
      }
    }
  }

  /// A fault that has happened. Times are those of `WallClock`.
  struct FleetTrialEvent: Sendable, Hashable {
    var fault: FleetTrialFault
    var begin: UInt64
    /// When it was over: the worker was started or continued, the network mended, the database there again.
    var end: UInt64
  }

  /// The faults of a trial, in their order, by its seed.
  struct FleetTrialPlan: Sendable {
    /// Those of the workers; several at once, but one of each worker.
    let faults: [FleetTrialFault]
    /// Those of the database, in turn, beside the others.
    let database: [FleetTrialFault.Database]

    /// How many workers have a fault at once.
    static func mostAtOnce(of workers: Int) -> Int { max(1, workers / 2) }

    init(_ settings: FleetTrialSettings) {
      var generator = SeededGenerator(seed: settings.seed)
      func seconds(_ range: ClosedRange<Double>) -> Duration { .seconds(Double.random(in: range, using: &generator)) }
      // Of each pair of cuts one is longer than a lease, and one is shorter.
      let (short, long): (ClosedRange<Double>, ClosedRange<Double>) =
        settings.isShort ? (4...10, 36...45) : (8...25, 45...90)
      var rounds: [[FleetTrialFault]] = []
      for round in 0..<(settings.isShort ? 2 : 4) {
        var faults: [FleetTrialFault] = []
        for worker in 0..<settings.workers {
          let loss = FleetTrialFault.Loss.allCases.randomElement(using: &generator) ?? .blackhole
          faults.append(.kill(worker: worker, away: seconds(0.2...8)))
          switch round {
          case 0: faults.append(.pause(worker: worker, settings.pause))
          case 1:
            faults.append(.cutFromDatabase(worker: worker, loss, seconds(long)))
            faults.append(.cutFromWeb(worker: worker, loss, seconds(short)))
          case 2:
            faults.append(.cutFromDatabase(worker: worker, loss, seconds(short)))
            faults.append(.cutFromWeb(worker: worker, loss, seconds(long)))
          default: faults.append(.kill(worker: worker, away: seconds(0.2...20)))
          }
        }
        rounds.append(faults.shuffled(using: &generator))
      }
      faults = rounds.flatMap { $0 }
      let outage = FleetTrialFault.Database.outage(settings.isShort ? .seconds(10) : .seconds(45))
      database = [.restart, .crash, .failOver, .crash, outage, .failOverOfMachine, .restart]
    }

    /// How long the faults of the workers take, if they follow each other without a pause.
    func duration(workers: Int) -> Duration {
      let sum = faults.reduce(Duration.zero) { sum, fault in
        switch fault {
        case .kill(_, let time), .pause(_, let time), .cutFromDatabase(_, _, let time), .cutFromWeb(_, _, let time):
          sum + time + .seconds(2)
        case .database: sum
        }
      }
      return sum / Self.mostAtOnce(of: workers)
    }
  }
#endif
