#if Postgres
  import Foundation
  import Synchronization

  /// What a store knows of the server's clock.
  ///
  /// The clocks of two machines may be hours apart. Therefore the table has due times by the server's clock, as it has the
  /// ends of leases. Those are translated by each statement itself: with an old difference two owners would work on one
  /// download. Due times are also read, and a record that is read and written again must keep its own: they are translated
  /// by a difference that stays the same as long as it is about right.
  ///
  /// The server is asked for its time with what is written anyway: when the ledger is opened, and every ten seconds.
  final class ServerClock: Sendable {
    /// The server's time in seconds since 1970, as a column of a statement.
    static let column = "extract(epoch FROM clock_timestamp())::float8"

    private let machine: @Sendable () -> Date
    private let known = Mutex(ClockDifference())

    /// - Parameter machine: The clock of this machine.
    init(machine: @escaping @Sendable () -> Date = { Date() }) { self.machine = machine }

    /// The time of this machine in seconds since 1970.
    var machineTime: Double { machine().timeIntervalSince1970 }

    /// Takes an answer of the server.
    ///
    /// - Parameters:
    ///   - time: The value of ``column``.
    ///   - asked: The instant before the statement was sent.
    func note(_ time: Double?, askedAt asked: ContinuousClock.Instant) {
      let answered = ContinuousClock.now
      if let time { known.withLock { $0.note(time, asked: asked, answered: answered) } }
    }

    /// The server's clock minus this machine's, in seconds.
    var difference: Double {
      let (time, instant) = (machineTime, ContinuousClock.now)
      return known.withLock { $0.seconds(machine: time, at: instant) }
    }
  }

  /// The difference between the server's clock and this machine's.
  struct ClockDifference: Sendable {
    /// The largest difference that counts as none, in seconds.
    static let slack = 0.5

    /// The server's time at an instant, and the largest error of it, in seconds.
    private var answer: (time: Double, instant: ContinuousClock.Instant, error: Double)?
    private var present = 0.0

    /// Takes an answer of the server, in seconds since 1970.
    mutating func note(_ time: Double, asked: ContinuousClock.Instant, answered: ContinuousClock.Instant) {
      // The server may have answered at any moment between the two instants.
      let error: Double = asked.duration(to: answered) / .seconds(2)
      let new = time + error
      // An answer that took long replaces no better one that it confirms.
      if let answer, answer.error <= error, abs(Self.time(answer, at: answered) - new) <= error { return }
      answer = (new, answered, error)
    }

    /// The server's clock minus the machine's, in seconds; 0 before the first answer.
    ///
    /// Between two answers a clock that never jumps stands for the server's, so that a jump of the machine's clock counts at
    /// once.
    mutating func seconds(machine: Double, at instant: ContinuousClock.Instant) -> Double {
      guard let answer else { return 0 }
      let found = Self.time(answer, at: instant) - machine
      let slack = Self.slack + answer.error
      if abs(found - present) > slack {
        // In fractions that are exact in a floating-point number: a date is the same after it was translated and back.
        present = abs(found) > slack ? (found * 1_024).rounded() / 1_024 : 0
      }
      return present
    }

    private static func time(
      _ answer: (time: Double, instant: ContinuousClock.Instant, error: Double), at instant: ContinuousClock.Instant
    ) -> Double {
      let passed: Double = answer.instant.duration(to: instant) / .seconds(1)
      return answer.time + passed
    }
  }
#endif
