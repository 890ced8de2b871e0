#if LIBCURL
  import HangLimit
  import Testing

  @testable import DownpipeHTTP

  /// Which waits of libcurl hold up a thread for too long.
  @Suite("Waits of libcurl", .endsHangs)
  struct WaitGuardTests {
    private let start = ContinuousClock.now

    /// Whether the guard ends the wait at each of these times, in seconds after the start of one turn of the thread.
    private func ends(at times: [Double], isCalled: Bool) -> [Bool] {
      var waits = WaitGuard()
      return times.map { waits.mustEnd(turn: start, at: start + .seconds($0), isCalled: isCalled) }
    }

    @Test func waitsEndSoonerWhenCommandsAreHeldUp() {
      #expect(ends(at: [0, 1, 1.9, 2, 3], isCalled: true) == [false, false, false, true, true])
      #expect(ends(at: [0, 1, 2, 3, 4, 5], isCalled: false) == [false, false, false, false, false, true])
    }

    /// libcurl calls back once a second while it waits: a longer gap is a sink that takes long.
    @Test func slowSinksAreNoWaits() {
      #expect(ends(at: [0, 10, 10.5, 11.5, 12.1], isCalled: true) == [false, false, false, false, true])
      #expect(ends(at: [0, 3, 6, 9, 12], isCalled: true).allSatisfy { !$0 })
    }

    @Test func eachTurnBeginsAnew() {
      var waits = WaitGuard()
      for second in 0..<20 {
        let turn = start + .seconds(second)
        let ends = waits.mustEnd(turn: turn, at: turn, isCalled: true)
        #expect(!ends)
      }
    }
  }
#endif
