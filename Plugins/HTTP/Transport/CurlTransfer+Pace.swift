#if LIBCURL
  import CCurl
  import DownpipeCore

  // When a transfer waits, and how long the server may.
  extension CurlTransfer {
    func push(_ bytes: RawSpan, to reader: CurlThread.Reader) throws {
      if let limit = reader.limit, received > limit { throw PendingResponse.tooLarge(limit) }
      if isPartOfLargeBody(bytes.byteCount) {
        try loop.block.add(bytes, of: self, to: reader.sink)
      } else {
        try loop.block.empty(for: self, to: reader.sink)
        try reader.sink(bytes)
      }
      let pause = reader.pace.pause(after: bytes.byteCount)
      if pause > .zero { wait(pause) }
    }

    /// Whether chunks like this one are collected: libcurl delivers full chunks, and more are to come.
    private func isPartOfLargeBody(_ count: Int) -> Bool {
      count >= Self.largestChunk / 2 && length.map { $0 - received >= Int64(count) } ?? true
    }

    /// The most that libcurl delivers at a time (CURL_MAX_WRITE_SIZE).
    private static let largestChunk = 16 * 1024

    /// Gives the sink the chunks that were collected.
    func pushCollected() throws {
      guard case .pushing(let reader) = phase else { return loop.block.drop(self) }
      try loop.block.empty(for: self, to: reader.sink)
    }

    private func wait(_ pause: Duration) {
      // The sink may have taken long.
      let until = ContinuousClock.now + pause
      pausedUntil = until
      loop.setAlarm(until, for: order.id)
    }

    func pause() -> Int {
      isPaused = true
      return Int(CURL_WRITEFUNC_PAUSE)
    }

    /// Goes on after a pause, unless the transfer is still too fast.
    func goOn() {
      if let pausedUntil {
        guard loop.now >= pausedUntil else { return }
        self.pausedUntil = nil
        lastActivity = loop.now
        if case .pushing(let reader) = phase {
          let more = reader.pace.pause(after: 0)
          if more > .zero { return wait(more) }
        }
      }
      guard isPaused, let handle, !isDone else { return }
      isPaused = false
      lastActivity = loop.now
      // Calls back with what libcurl holds. If that ends the transfer, libcurl does not finish with it.
      let code = curl_easy_pause(handle.pointer, CURLPAUSE_CONT)
      if code != CURLE_OK { finish(code) }
    }

    /// The error of the time limit that is exceeded.
    func exceededLimit(_ settings: CurlSettings, _ now: ContinuousClock.Instant) -> (any Error)? {
      if isDone || isOver { return nil }
      if let drainDeadline, now > drainDeadline { return PendingResponse.unwanted }
      if case .holding = phase { return nil }
      if isPaused || pausedUntil != nil { return nil }
      guard let limit = settings.idleTimeLimit, let lastActivity, now - lastActivity > limit else { return nil }
      return DownloadError(.timedOut, "the server sent nothing for \(limit.inSeconds); try again later")
    }
  }
#endif
