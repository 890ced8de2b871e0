#if Postgres
  import Foundation
  import Synchronization

  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Musl)
    import Musl
  #elseif canImport(Darwin)
    import Darwin
  #endif

  /// Ends the waits of connections for their sockets, once and for all.
  final class Interruption: Sendable {
    /// Why a wait has ended.
    enum End: Sendable {
      case ready
      case timedOut
      case interrupted
    }

    private let ends: (read: CInt, write: CInt)
    private let isFired = Atomic(false)

    /// - Throws: ``PostgresFault`` if no pipe can be made.
    init() throws(PostgresFault) {
      var made: [CInt] = [-1, -1]
      guard pipe(&made) == 0 else {
        throw PostgresFault(.unreachable, "no pipe can be made: \(String(cString: strerror(errno)))")
      }
      for end in made { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
      ends = (made[0], made[1])
    }

    deinit {
      close(ends.read)
      close(ends.write)
    }

    var hasFired: Bool { isFired.load(ordering: .acquiring) }

    /// Ends all waits, also those that begin later.
    func fire() {
      guard !isFired.exchange(true, ordering: .acquiringAndReleasing) else { return }
      var byte: UInt8 = 0
      _ = write(ends.write, &byte, 1)
    }

    /// Waits for some time, or until the waits are ended. Blocks the thread.
    func pause(for time: Duration) {
      // A negative descriptor is passed over by `poll`.
      _ = wait(for: -1, until: .now + time)
    }

    /// Waits until a socket can be read or written. Blocks the thread.
    func wait(for socket: CInt, toWrite: Bool = false, until deadline: ContinuousClock.Instant) -> End {
      while true {
        if hasFired { return .interrupted }
        let left = ContinuousClock.now.duration(to: deadline)
        // Rounded up, so that a wait of less than a millisecond is not busy.
        let milliseconds = max(0, left / .milliseconds(1)).rounded(.up)
        var polled = [
          pollfd(fd: socket, events: Int16(toWrite ? POLLOUT | POLLIN : POLLIN), revents: 0),
          pollfd(fd: ends.read, events: Int16(POLLIN), revents: 0),
        ]
        let count = poll(&polled, 2, CInt(min(milliseconds, 1e6)))
        if polled[0].revents != 0 { return .ready }
        if count == 0, left <= .zero { return .timedOut }
      }
    }
  }
#endif
