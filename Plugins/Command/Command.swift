#if Command && (os(Linux) || os(macOS))
  import DownpipeCore
  import Subprocess

  #if canImport(System)
    import System
  #else
    import SystemPackage
  #endif

  /// One run of a program.
  struct Command: Sendable {
    let program: String
    let arguments: [String]
    let workingDirectory: String?
    let environment: RunCommand.Environment
    /// The time between SIGTERM and SIGKILL when the task is cancelled.
    let grace: Duration

    /// How a program has ended.
    struct Ending: Sendable {
      let isSuccess: Bool
      /// How it has ended, in words.
      let words: String
      let output: LastOutput
    }

    /// Runs the program to its end. If the task is cancelled, the program and its descendants are ended first.
    ///
    /// - Throws: `DownloadError` with `.processing` if it cannot be started; `CancellationError`.
    func run(keeping limit: Int) async throws -> Ending {
      var options = PlatformOptions()
      // A session is a process group, too: signals reach the descendants, and none reaches this process.
      options.createSession = true
      options.teardownSequence = [.send(signal: .terminate, toProcessGroup: true, allowedDurationToNextStep: grace)]
      do {
        let result = try await Subprocess.run(
          program.hasPrefix("/") ? .path(FilePath(program)) : .name(program), arguments: Arguments(arguments),
          environment: variables, workingDirectory: workingDirectory.map { FilePath($0) }, platformOptions: options,
          input: .none, output: .sequence, error: .combinedWithOutput
        ) { execution in
          var output = LastOutput(limit: limit)
          for try await block in execution.standardOutput {
            block.withUnsafeBytes { output.append($0) }
          }
          return output
        }
        return Ending(
          isSuccess: result.terminationStatus.isSuccess, words: Self.words(result.terminationStatus),
          output: result.closureResult)
      } catch {
        // Subprocess reports a cancelled run by the error of whichever of its calls was cancelled.
        try Task.checkCancellation()
        guard let error = error as? SubprocessError else { throw error }
        throw DownloadError(
          .processing, "\(program) could not be run: \(error.description)", stage: "RunCommand", cause: error)
      }
    }

    private var variables: Subprocess.Environment {
      let given = Dictionary(
        uniqueKeysWithValues: environment.variables.map { (Subprocess.Environment.Key(stringLiteral: $0), $1) })
      return environment.isInherited ? .inherit.updating(given.mapValues { $0 }) : .custom(given)
    }

    private static func words(_ status: TerminationStatus) -> String {
      switch status {
      case .exited(let code): "ended with the status \(code)"
      case .signaled(let signal): "was ended by the signal \(signal)"
      }
    }
  }
#endif
