import Dispatch
import Downpipe
import DownpipeTesting
import Foundation
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// A folder, a server, and runs of the tool that always end.
struct DefectRun {
  let folder: TemporaryFolder
  let server: ScriptedHTTPServer

  /// Runs a test with a server and a folder of its own.
  static func with<R>(
    _ script: @escaping ScriptedHTTPServer.Script, _ body: (DefectRun) async throws -> R
  ) async throws -> R {
    let run = DefectRun(folder: try TemporaryFolder(), server: try await .start(script))
    do {
      let result = try await body(run)
      await run.server.shutdown()
      return result
    } catch {
      await run.server.shutdown()
      throw error
    }
  }

  /// Runs the tool. A run that hangs is killed, and the test fails by its status.
  /// - Parameters:
  ///   - shell: shell commands that run first, such as `ulimit -n 64`.
  ///   - onLine: gets the lines of the output as they come, with the process to signal.
  func tool(
    _ arguments: [String], shell: String = ":", onLine: (@Sendable (String, Int32) -> Void)? = nil
  ) async throws -> Command.Outcome {
    let begin = "the shell becomes the tool"
    let isOver = Watched(false)
    let outcome = try await Command.downpipe(
      arguments, by: ["bash", "-c", "\(shell); echo '\(begin)'; exec \"$0\" \"$@\""]
    ).run { line, process in
      guard line == begin else {
        onLine?(line, process)
        return
      }
      DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(Command.hangLimit)) {
        if !isOver.value { kill(process, SIGKILL) }
      }
    }
    isOver.update { $0 = true }
    return Command.Outcome(
      status: outcome.status, output: String(outcome.output.dropFirst(begin.count + 1)), errors: outcome.errors)
  }

  /// Runs `downpipe get` into the folder `out` or another one.
  func get(
    _ paths: [String], into directory: String = "out", _ more: [String] = [], shell: String = ":",
    onLine: (@Sendable (String, Int32) -> Void)? = nil
  ) async throws -> Command.Outcome {
    try await tool(
      ["get"] + paths.map { "\(server.url($0))" } + ["-d", folder.path(directory), "--json"] + more, shell: shell,
      onLine: onLine)
  }

  /// Runs `downpipe get`, and interrupts it after this many bytes.
  func getInterrupted(_ path: String, at bytes: Int64, _ more: [String] = []) async throws {
    let outcome = try await get([path], more) { line, process in
      if ToolLine(line)?.bytes == bytes { kill(process, SIGINT) }
    }
    try #require(outcome.status == 130, "\(outcome.everything)")
  }

  /// Returns the bytes of the file that the last line of a run names.
  func published(by outcome: Command.Outcome) throws -> [UInt8] {
    let path = try #require(outcome.results.last?.path, "\(outcome.everything)")
    return [UInt8](try Data(contentsOf: URL(filePath: path, directoryHint: .notDirectory)))
  }

  /// Returns the files in the folders of partials.
  func unfinished(in directory: String = "out") throws -> [String] {
    try folder.contents().filter {
      $0.hasPrefix("\(directory)/.downpipe/partials/") || $0.hasPrefix("\(directory)/.downpipe/work/")
    }
  }

  /// Changes a ledger directly.
  func change(ledger: String, _ statement: String) async throws {
    let script = """
      import sqlite3, sys
      db = sqlite3.connect(sys.argv[1])
      changed = db.execute(sys.argv[2]).rowcount
      db.commit()
      db.close()
      sys.exit(0 if changed > 0 else "no row was changed")
      """
    let outcome = try await Command("python3", ["-c", script, folder.path(ledger), statement]).run()
    try #require(outcome.status == 0, "\(outcome.everything)")
  }
}
