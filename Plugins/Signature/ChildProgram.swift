#if os(Linux) || os(macOS)
  import DownpipeCore
  import DownpipePOSIX
  import Synchronization

  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Musl)
    import Musl
  #elseif canImport(Darwin)
    import Darwin
  #endif

  /// A program that runs without a shell and is killed when the task is cancelled.
  struct ChildProgram: Sendable {
    let path: String
    let arguments: [String]
    /// The whole environment, as `NAME=value`.
    let environment: [String]
    /// The files that get what the program prints.
    let output: String
    let errors: String

    private enum Process {
      case waiting
      case running(pid_t)
      case ended
      case cancelled
    }

    /// Runs the program and returns its exit status, or 128 and the number of the signal that ended it.
    ///
    /// - Throws: ``DownloadError`` with `.processing`; `CancellationError`.
    func run() async throws -> Int {
      let process = SharedProcess()
      return try await withTaskCancellationHandler {
        let status = try await BlockingThreads.run { _ in try run(process) }
        try Task.checkCancellation()
        return status
      } onCancel: {
        process.cancel()
      }
    }

    /// The process, which is killed only while it has not been reaped: later its number may be that of another one.
    private final class SharedProcess: Sendable {
      let state = Mutex(Process.waiting)

      func cancel() {
        state.withLock { state in
          if case .running(let id) = state { kill(id, SIGKILL) }
          if case .waiting = state { state = .cancelled }
        }
      }
    }

    private func run(_ process: SharedProcess) throws -> Int {
      let id = try process.state.withLock { state in
        if case .cancelled = state { throw CancellationError() }
        let id = try spawn()
        state = .running(id)
        return id
      }
      // Leaves the process as it is until the number is no longer used.
      var info = siginfo_t()
      while waitid(P_PID, id_t(id), &info, WEXITED | WNOWAIT) != 0 {
        if errno != EINTR { break }
      }
      return try process.state.withLock { state in
        state = .ended
        var status: CInt = 0
        var result = waitpid(id, &status, 0)
        while result < 0, errno == EINTR { result = waitpid(id, &status, 0) }
        guard result == id else {
          throw DownloadError(
            .processing, "the result of \(path) is unknown: another part of the program has waited for it")
        }
        let signal = Int(status & 0x7F)
        return signal == 0 ? Int(status >> 8 & 0xFF) : 128 + signal
      }
    }

    private func spawn() throws -> pid_t {
      #if canImport(Darwin)
        var actions: posix_spawn_file_actions_t?
        var attributes: posix_spawnattr_t?
      #else
        var actions = posix_spawn_file_actions_t()
        var attributes = posix_spawnattr_t()
      #endif
      posix_spawn_file_actions_init(&actions)
      posix_spawnattr_init(&attributes)
      defer {
        posix_spawn_file_actions_destroy(&actions)
        posix_spawnattr_destroy(&attributes)
      }
      posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
      posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_EXCL, 0o600)
      posix_spawn_file_actions_addopen(&actions, 2, errors, O_WRONLY | O_CREAT | O_EXCL, 0o600)
      // What this program ignores or blocks is not for the other one.
      var signals = sigset_t()
      sigemptyset(&signals)
      posix_spawnattr_setsigmask(&attributes, &signals)
      for signal in [SIGPIPE, SIGINT, SIGTERM, SIGCHLD] { sigaddset(&signals, signal) }
      posix_spawnattr_setsigdefault(&attributes, &signals)
      var flags = Int(POSIX_SPAWN_SETSIGMASK) | Int(POSIX_SPAWN_SETSIGDEF)
      #if canImport(Darwin)
        flags |= Int(POSIX_SPAWN_CLOEXEC_DEFAULT)
      #endif
      posix_spawnattr_setflags(&attributes, Int16(flags))

      let words = ([path] + arguments).map { strdup($0) }
      let variables = environment.map { strdup($0) }
      defer { for text in words + variables { free(text) } }
      var id: pid_t = 0
      let code = posix_spawn(&id, path, &actions, &attributes, words + [nil], variables + [nil])
      guard code == 0 else {
        throw DownloadError(.processing, "\(path) could not be started: \(String(cString: strerror(code)))")
      }
      return id
    }
  }
#endif
