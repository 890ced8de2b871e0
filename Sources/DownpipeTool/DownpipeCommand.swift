import ArgumentParser
import Downpipe
import Foundation

/// The `downpipe` tool.
@main
struct DownpipeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "downpipe",
    abstract: "Downloads files, goes on where it was interrupted, and unpacks and files what it got.",
    discussion: """
      Running the same command again goes on: files that are finished are not fetched again.

      Exit status: 0 when all files are finished, 1 when some failed, 2 for wrong usage, 130 when interrupted.
      """,
    subcommands: [
      GetCommand.self, ListCommand.self, ResumeCommand.self, RemoveCommand.self, ImportCommand.self,
    ]
  )

  /// Runs a command and ends the process with the status that scripts rely on.
  static func main() async {
    OutputFile.openMissing()
    DescriptorLimit.raise()
    do {
      var command = try await asyncParseAsRoot(nil)
      if var asyncCommand = command as? any AsyncParsableCommand {
        try await asyncCommand.run()
      } else {
        try command.run()
      }
    } catch let error as UsageError {
      OutputFile.complain(error.description)
      Foundation.exit(2)
    } catch let error as DownloadError {
      // What failed is the command as a whole, such as a ledger that cannot be written any more; not one download.
      OutputFile.complain(error.sentence)
      Foundation.exit(1)
    } catch is OutputFile.Abandoned {
      Foundation.exit(Interruption.exitStatus)
    } catch is OutputFile.BrokenPipe {
      // Whoever read has read enough.
      Foundation.exit(0)
    } catch {
      let status = exitCode(for: error)
      // The parser's own status for wrong usage is 64 (sysexits.h).
      if status != .validationFailure { exit(withError: error) }
      try? OutputFile.standardError.write(fullMessage(for: error) + "\n")
      Foundation.exit(2)
    }
  }
}

extension DownloadError {
  /// The stage and the message.
  var sentence: String { (stage.map { "\($0): " } ?? "") + message }
}
