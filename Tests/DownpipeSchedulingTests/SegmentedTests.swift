import DownpipeCore
import DownpipeScheduling
import DownpipeTesting
import HangLimit
import Testing

@Suite(.endsHangs)
struct SegmentedTests {
  private static let mebibyte: Int64 = 1 << 20

  @Test("a file below the minimum, and one connection, need no session")
  func startsForLargeFiles() {
    let policy = Segmented(connections: 4, minimumSize: 100)
    #expect(policy.start(size: 99, of: TransferContext()) == nil)
    #expect(policy.start(size: 100, of: TransferContext())?.maximumConnections == 4)
    #expect(Segmented(connections: 1).start(size: .max, of: TransferContext()) == nil)
    #expect(Segmented(connections: .automatic(upTo: 1)).start(size: .max, of: TransferContext()) == nil)
    #expect(Segmented().start(size: 32 * Self.mebibyte - 1, of: TransferContext()) == nil)
    #expect(Segmented().start(size: 32 * Self.mebibyte, of: TransferContext())?.maximumConnections == 8)
  }

  @Test(arguments: [
    (Segmented.Connections.exactly(0), 1), (.exactly(-7), 1), (.exactly(33), 32), (.exactly(.max), 32), (5, 5),
    (.automatic(upTo: 0), 1), (.automatic(upTo: 1000), 32), (.automatic(upTo: 4), 4), (.automatic, 8),
  ])
  func numbersAreBounded(_ connections: Segmented.Connections, _ maximum: Int) {
    #expect(connections.maximum == maximum)
  }

  @Test func summariesNameTheSettings() {
    #expect(Segmented().summary == "up to 8 connections, for files from 32.0 MiB")
    #expect(Segmented(connections: 3, minimumSize: 0).summary == "3 connections")
    #expect(Segmented(connections: 1, minimumSize: 1).summary == "1 connection")
  }

  @Test("a fixed number is asked for from the start", arguments: [2, 8, 32])
  func fixedNumber(count: Int) throws {
    var server = SimulatedServer(perConnection: 1e6, total: 2e6, seed: 1)
    let history = try server.run(Segmented(connections: .exactly(count)), bytes: 1 << 40, for: .seconds(30))
    #expect(history.allSatisfy { $0.wanted == count })
  }

  @Test("a server that limits each connection gets as many as its total needs", arguments: 0..<8 as Range<UInt64>)
  func limitedConnections(seed: UInt64) throws {
    for (total, maximum, expected) in [
      (8e6, 8, 1...1), (16e6, 8, 2...2), (24e6, 8, 3...4), (32e6, 8, 4...4), (40e6, 8, 5...6), (200e6, 8, 8...8),
      (200e6, 4, 4...4), (200e6, 32, 24...32), (200e6, 3, 3...3), (12e6, 8, 2...2),
    ] {
      var server = SimulatedServer(perConnection: 8e6, total: total, noise: 0.05, seed: seed)
      let history = try server.run(Segmented(connections: .automatic(upTo: maximum)), bytes: 1 << 40, for: .seconds(9))
      let last = try #require(history.last)
      #expect(expected.contains(last.wanted), "total \(total), up to \(maximum): \(history.map(\.wanted))")
    }
  }

  @Test("four connections pay within two seconds")
  func growsFast() throws {
    var server = SimulatedServer(perConnection: 8e6, total: 1e9, seed: 1)
    let history = try server.run(Segmented(connections: .automatic(upTo: 4)), bytes: 1 << 40, for: .seconds(2))
    #expect(history.last?.wanted == 4, "\(history.map(\.wanted))")
  }

  @Test("a line that one connection fills gets no second one for long", arguments: 0..<8 as Range<UInt64>)
  func sharedBottleneck(seed: UInt64) throws {
    var server = SimulatedServer(perConnection: 20e6, total: 20e6, noise: 0.05, seed: seed)
    let history = try server.run(Segmented(), bytes: 1 << 40, for: .seconds(300))
    let more = history.count { $0.wanted > 1 }
    #expect(more > 0 && more * 20 < history.count, "\(more) of \(history.count)")
    #expect(history.allSatisfy { $0.wanted <= 2 })
  }

  @Test("connections that start slowly are given a second")
  func slowStart() throws {
    var server = SimulatedServer(perConnection: 8e6, total: 1e9, seed: 3)
    server.rampUp = .milliseconds(700)
    let history = try server.run(Segmented(connections: .automatic(upTo: 4)), bytes: 1 << 40, for: .seconds(5))
    #expect(history.last?.wanted == 4, "\(history.map(\.wanted))")
  }

  @Test("nothing is tried for a rest that takes less than two seconds")
  func shortRest() throws {
    var server = SimulatedServer(perConnection: 1e9, total: 4e9, seed: 1)
    let history = try server.run(Segmented(), bytes: 1_900_000_000, for: .seconds(5))
    #expect(history.allSatisfy { $0.wanted == 1 })
  }

  @Test("when the throughput falls, more connections are tried")
  func throttledLater() throws {
    var server = SimulatedServer(perConnection: 50e6, total: 50e6, seed: 5)
    let policy = Segmented(connections: .automatic(upTo: 4))
    let session = try #require(policy.start(size: 1 << 40, of: TransferContext()))
    let before = server.run(session, bytes: 1 << 40, for: .seconds(5))
    #expect(before.last?.wanted == 1)
    server.perConnection = 2e6
    let after = server.run(session, bytes: 1 << 40, for: .seconds(5))
    #expect(after.last?.wanted == 4, "\(after.map(\.wanted))")
  }

  @Test("a limit per host ends the trial, and the number that is open stays")
  func limitedByTheEngine() throws {
    var server = SimulatedServer(perConnection: 8e6, total: 1e9, seed: 1)
    server.opened = 2
    let history = try server.run(Segmented(), bytes: 1 << 40, for: .seconds(9))
    #expect(history.last.map { $0.open == 2 && $0.wanted == 2 } == true, "\(history.map(\.wanted))")
  }

  @Test(
    "refused connections lower the number, and are asked for again at growing intervals",
    arguments: [Segmented(connections: .automatic), Segmented(connections: 8), Segmented(connections: 3)])
  func refusals(policy: Segmented) throws {
    var server = SimulatedServer(perConnection: 8e6, total: 1e9, seed: 1)
    server.accepted = 2
    let history = try server.run(policy, bytes: 1 << 40, for: .seconds(120))
    let tooMany = history.dropFirst(12).count { $0.wanted > 2 }
    #expect(tooMany * 10 < history.count, "\(history.map(\.wanted))")
    #expect(history.dropFirst(12).allSatisfy { $0.wanted >= 2 }, "\(history.map(\.wanted))")
    // When the server accepts more, they are used.
    server.accepted = 32
    let session = try #require(policy.start(size: 1 << 40, of: TransferContext()))
    server.accepted = 2
    _ = server.run(session, bytes: 1 << 40, for: .seconds(10))
    server.accepted = 32
    let later = server.run(session, bytes: 1 << 40, for: .seconds(120))
    #expect((later.last?.wanted ?? 0) >= 3, "\(later.map(\.wanted))")
  }

  @Test("one lost connection lowers nothing; a second one soon after does")
  func losses() throws {
    let session = try #require(Segmented(connections: 4).start(size: 1 << 40, of: TransferContext()))
    func wanted(_ open: Int, _ refusals: Int, at milliseconds: Int) -> Int {
      session.connections(
        after: SegmentMeasurement(
          connections: open, bytesPerSecond: 1e6, bytesLeft: 1 << 40, refusals: refusals,
          time: .milliseconds(milliseconds)))
    }
    #expect(wanted(4, 0, at: 0) == 4)
    #expect(wanted(3, 1, at: 250) == 4)
    #expect(wanted(4, 0, at: 500) == 4)
    #expect(wanted(4, 1, at: 6000) == 4)
    #expect(wanted(3, 1, at: 6250) == 3)
    // These were on their way already.
    #expect(wanted(3, 2, at: 6500) == 3)
    #expect(wanted(3, 0, at: 11_250) == 3)
    #expect(wanted(3, 0, at: 11_500) == 4)
  }

  @Test("any measurements give a number from 1 to the maximum", arguments: 0..<8 as Range<UInt64>)
  func anyMeasurements(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    for policy in [Segmented(), Segmented(connections: 5), Segmented(connections: .automatic(upTo: 2))] {
      let session = try #require(policy.start(size: 1 << 40, of: TransferContext()))
      var time = Duration.zero
      for _ in 0..<5_000 {
        time += .milliseconds(Int.random(in: 0...3_000, using: &generator))
        let speeds = [0, 1, 1e3, 1e6, 1e9, 1e12, .infinity, .nan, -1]
        let wanted = session.connections(
          after: SegmentMeasurement(
            connections: .random(in: 0...40, using: &generator),
            bytesPerSecond: speeds.randomElement(using: &generator) ?? 0,
            bytesLeft: .random(in: 0...(1 << 40), using: &generator),
            refusals: [0, 0, 0, 1, 5].randomElement(using: &generator) ?? 0, time: time))
        #expect((1...policy.connections.maximum).contains(wanted))
      }
    }
  }
}
