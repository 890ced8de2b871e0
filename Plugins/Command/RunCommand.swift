#if Command && (os(Linux) || os(macOS))
  public import DownpipeCore
  import DownpipePOSIX

  /// A step that runs a program for the artifact, and passes the artifact on unchanged.
  ///
  /// ```swift
  /// let downloader = try await Downloader {
  ///   HTTPSource()
  ///   FileStore("~/Downloads")
  ///   MoveInto("~/Movies")
  ///   RunCommand("/usr/bin/mediainfo", arguments: ["--Output=JSON", .path])
  /// }
  /// ```
  /// **Arguments** are values: each reaches the program as one argument, and no shell reads it. So blanks, quotes and
  /// dollar signs in a name that a server has chosen have no meaning. A path is absolute, and a name that begins with a
  /// dash gets `./` before it, so that neither is taken for an option.
  ///
  /// **The program** gets the environment, no input (`/dev/null`), and none of this process's open files. It leads a
  /// session of its own. Its working directory is that of this process unless another is given. It must not change, move
  /// or remove the artifact: a step of your own that returns its output does that.
  ///
  /// **The end.** The status 0 means success. With any other, and when a signal ended the program, the download fails
  /// with `.processing` and the end of what the program printed; of its output and error output together the last
  /// ``maximumOutput`` bytes are kept. When the time limit has passed, or the task is cancelled, the program and the
  /// programs that it has started get SIGTERM, and SIGKILL if it has not ended five seconds later. Those that leave its
  /// session go on. The output of a program that still runs when the first one ends is not waited for.
  ///
  /// **At least once.** The program runs once for each download, and again if the process ended before the ledger
  /// recorded the step: let it do work that can be repeated.
  ///
  /// It is in the module DownpipeCommand, and needs the trait `Command`.
  public struct RunCommand: UniversalPostProcessor {
    /// The number of bytes of the program's output that are kept: the last 64 KiB.
    public static let maximumOutput = 65_536

    /// The absolute path of the program, or a name that is looked up in the environment's `PATH`.
    public let program: String
    /// The arguments after the program's name.
    public let arguments: [Argument]
    /// The absolute path of the working directory; that of this process when `nil`.
    public let workingDirectory: String?
    /// The variables of the program's environment.
    public let environment: Environment
    /// How long the program may run.
    public let timeLimit: Duration

    let time: any TimeSource
    /// The time between SIGTERM and SIGKILL.
    let grace: Duration

    /// Creates a step that runs a program.
    ///
    /// - Parameters:
    ///   - program: The path of the program, in which `~` is the home directory. A name without a slash is looked up in
    ///     the `PATH` of the program's environment.
    ///   - arguments: The arguments; the artifact's path by default.
    ///   - workingDirectory: The working directory; that of this process when `nil`.
    ///   - environment: The variables of the program's environment; those of this process by default.
    ///   - timeLimit: How long the program may run; ten minutes by default.
    public init(
      _ program: String, arguments: [Argument] = [.path], workingDirectory: String? = nil,
      environment: Environment = .inherited, timeLimit: Duration = .seconds(600)
    ) {
      self.init(
        program, arguments: arguments, workingDirectory: workingDirectory, environment: environment,
        timeLimit: timeLimit, time: SystemTime(), grace: .seconds(5))
    }

    init(
      _ program: String, arguments: [Argument] = [.path], workingDirectory: String? = nil,
      environment: Environment = .inherited, timeLimit: Duration = .seconds(600), time: any TimeSource, grace: Duration
    ) {
      self.program = program.contains("/") ? PathText.absolute(program) : program
      self.arguments = arguments
      self.workingDirectory = workingDirectory.map(PathText.absolute)
      self.environment = environment
      self.timeLimit = timeLimit
      self.time = time
      self.grace = grace
    }

    /// The program must not change the file.
    public var keepsContent: Bool { true }

    /// The program with its arguments, the settings that differ from the defaults, and the time limit.
    public var summary: String {
      var parts = [([program] + arguments.map(\.description)).joined(separator: " ")]
      if let workingDirectory { parts.append("in \(workingDirectory)") }
      if environment != .inherited { parts.append(environment.description) }
      parts.append("at most \(timeLimit.inSeconds)")
      return parts.joined(separator: ", ")
    }

    /// Runs the program.
    ///
    /// - Throws: `DownloadError` with `.processing` if the program cannot be started, ends with another status than 0,
    ///   exceeds its time limit, or needs the path of an artifact in memory; with `.storage` if the artifact is missing.
    ///   `CancellationError` when the task is cancelled; the program has ended then.
    public func process(_ artifact: Artifact, in context: ProcessingContext) async throws -> Artifact {
      try Task.checkCancellation()
      if let path = artifact.path {
        try reporting("read the status of", path) { () throws(SystemError) in
          _ = try FileSystem.system.status(Entry(path), following: true)
        }
      }
      let command = Command(
        program: program, arguments: try arguments.map { try $0.value(for: artifact, in: context) },
        workingDirectory: workingDirectory, environment: environment, grace: grace)
      let ending = try await limited { try await command.run(keeping: Self.maximumOutput) }
      try Task.checkCancellation()
      guard !ending.isSuccess else { return artifact }
      throw DownloadError(.processing, "\(program) \(ending.words)\(ending.output.shown)", stage: name)
    }

    /// Runs `body` for as long as the program may run.
    private func limited(_ body: @escaping @Sendable () async throws -> Command.Ending) async throws -> Command.Ending {
      let ending = try await withThrowingTaskGroup(of: Command.Ending?.self) { group in
        group.addTask { try await body() }
        group.addTask {
          try await time.sleep(for: timeLimit)
          return nil
        }
        // Cancelling the other task ends the program; the group waits for it.
        defer { group.cancelAll() }
        return try await group.next() ?? nil
      }
      guard let ending else {
        throw DownloadError(
          .processing,
          "\(program) was ended because it ran for more than \(timeLimit.inSeconds): raise the timeLimit of RunCommand "
            + "if it needs longer", stage: name)
      }
      return ending
    }
  }
#endif
