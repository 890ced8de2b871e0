#if LIBCURL
  /// Recognises that libcurl waits within one call, by its progress callback, and when it has waited long enough.
  ///
  /// libcurl calls back once a second while it waits on its own. A sink that takes long looks different: its turn has other
  /// callbacks in between, or one.
  struct WaitGuard {
    /// How long a wait may be while other transfers or commands are held up, and at most.
    private static let patience = Duration.seconds(2)
    private static let longest = Duration.seconds(5)

    private var turn: ContinuousClock.Instant?
    private var began: ContinuousClock.Instant?
    private var last: ContinuousClock.Instant?

    mutating func mustEnd(_ loop: CurlLoop) -> Bool { mustEnd(turn: loop.now, at: .now, isCalled: loop.hasCommands) }

    /// - Parameters:
    ///   - turn: The start of the present turn of the thread.
    ///   - isCalled: Whether commands wait for the thread.
    mutating func mustEnd(turn: ContinuousClock.Instant, at now: ContinuousClock.Instant, isCalled: Bool) -> Bool {
      defer { last = now }
      guard self.turn == turn, let last, let began else {
        (self.turn, self.began) = (turn, now)
        return false
      }
      // Something else than a wait has taken the time.
      if now - last > .milliseconds(1500) { self.began = now }
      let waited = now - (self.began ?? began)
      return waited >= Self.longest || (isCalled && waited >= Self.patience)
    }
  }
#endif
