import ArgumentParser
import Dispatch
import Downpipe
import Foundation

#if SQLite
  import CSQLiteShim
#endif

/// The start of the process. It is not asynchronous, because the first asynchronous function needs threads.
@main
enum EntryPoint {
  static func main() {
    OutputFile.openMissing()
    DescriptorLimit.raise()
    ProcessLimits.check()
    Task {
      await RootCommand.main()
      exit(0)
    }
    dispatchMain()
  }
}

/// The `downpipe` tool.
struct RootCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "downpipe",
    abstract: "Download files, and resume interrupted downloads.",
    usage: """
      downpipe [<options>] <url> ...
      downpipe <subcommand> [<options>]
      """,
    discussion: """
      “downpipe <url>” is short for “downpipe get <url>”; “downpipe get --help” lists its options. Run a command again to \
      resume it: finished files are not fetched again.

      Exit status: 0 if all files are finished, 1 if some failed, 2 for wrong usage or too low a process limit, 130 if interrupted.
      """,
    version: ToolVersion.current,
    subcommands: [
      GetCommand.self, AddCommand.self, ServeCommand.self, WorkCommand.self, StatusCommand.self, ListCommand.self,
      ResumeCommand.self,
      RetryCommand.self, RestartCommand.self, VerifyCommand.self,
      RemoveCommand.self, ExportCommand.self, ImportCommand.self, ImportResumeDataCommand.self,
    ],
    defaultSubcommand: GetCommand.self
  )

  /// Runs a command, and ends the process with the exit status that scripts rely on.
  static func main() async {
    // The write that fails reports these two: a reader that is gone, and a limit on the size of files.
    signal(SIGPIPE, SIG_IGN)
    signal(SIGXFSZ, SIG_IGN)
    #if SQLite
      // Nothing reads these counts.
      _ = downpipe_leave_out_memory_counts()
    #endif
    let arguments = Array(CommandLine.arguments.dropFirst())
    do {
      if let quick = QuickGet(arguments) { return try await quick.prepared().run() }
      var command = try await asyncParseAsRoot(arguments.isEmpty ? ["--help"] : arguments)
      if var asyncCommand = command as? any AsyncParsableCommand {
        try await asyncCommand.run()
      } else {
        try command.run()
      }
    } catch let error as UsageError {
      OutputFile.warn(error.description)
      Foundation.exit(2)
    } catch let error as DownloadError {
      // The command itself failed, not one download: a ledger that can no longer be written, for example.
      OutputFile.warn(error.sentence)
      Foundation.exit(1)
    } catch is OutputFile.Abandoned {
      Foundation.exit(Interruption.exitStatus)
    } catch is OutputFile.BrokenPipe {
      // The reader has read enough.
      Foundation.exit(0)
    } catch {
      let status = exitCode(for: error)
      // The parser's own status for wrong usage is 64 (sysexits.h).
      if status != .validationFailure { exit(withError: error) }
      try? OutputFile.standardError.write(fullMessage(for: error).redactingURLs + "\n")
      Foundation.exit(2)
    }
  }
}

extension DownloadError {
  /// The stage and the message.
  var sentence: String { (stage.map { "\($0): " } ?? "") + message }
}
