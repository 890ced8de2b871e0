import Downpipe
import Foundation

/// The program that runs for a finished file, and its arguments.
struct FinishCommand: Sendable, Hashable {
  /// An absolute path, or a name that is looked up in `PATH`.
  let program: String
  /// The arguments as they were given.
  let arguments: [String]

  /// The argument that stands for the path of the file.
  static let path = "{}"

  /// `nil` if no program is to be run.
  ///
  /// - Throws: ``UsageError`` for a program that does not exist, or arguments without a program.
  init?(program: String?, arguments: [String]) throws(UsageError) {
    guard let program else {
      guard arguments.isEmpty else { throw UsageError("--on-finish-arg needs --on-finish: the program") }
      return nil
    }
    guard !program.isEmpty, !([program] + arguments).contains(where: { $0.utf8.contains(0) }) else {
      throw UsageError("--on-finish needs the path or the name of a program")
    }
    if program.contains("/") {
      let path = try Folder.absolutePath(program)
      guard Self.isProgram(path) else {
        throw UsageError("--on-finish: “\(program)” is not a program that you can run")
      }
      self.program = path
    } else {
      let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin").split(separator: ":")
      guard folders.contains(where: { Self.isProgram("\($0)/\(program)") }) else {
        throw UsageError(
          "--on-finish: there is no program “\(program)” in PATH. Arguments are given with --on-finish-arg")
      }
      self.program = program
    }
    self.arguments = arguments
  }

  private static func isProgram(_ path: String) -> Bool {
    Folder.isRegularFile(path) && FileManager.default.isExecutableFile(atPath: path)
  }

  private static let key = "downpipe.on-finish"

  /// What a request carries; `nil` if it is missing or unreadable.
  init?(_ metadata: [String: String]) {
    guard let text = metadata[Self.key], let words = try? JSONDecoder().decode([String].self, from: Data(text.utf8)),
      let program = words.first
    else { return nil }
    self.program = program
    arguments = Array(words.dropFirst())
  }

  func attach(to metadata: inout [String: String]) {
    guard let data = try? JSONEncoder().encode([program] + arguments) else { return }
    metadata[Self.key] = String(decoding: data, as: UTF8.self)
  }
}

/// Which programs a command runs. A ledger is a file, and may come from another user: what it names runs only if the
/// user has named it, too, or allows all of it.
enum ProgramRule: Sendable, Hashable {
  case none
  case only(FinishCommand)
  case all

  /// - Throws: ``DownloadError`` with `.permission`.
  func check(_ command: FinishCommand) throws(DownloadError) {
    switch self {
    case .all: return
    case .only(let own) where own == command: return
    case .only:
      throw DownloadError(
        .permission,
        "another command has asked for the program “\(command.program.prefix(200).escaped)” to be run for the file "
          + "meanwhile: run that command again, or this one for its own program")
    case .none:
      throw DownloadError(
        .permission,
        "the ledger names the program “\(command.program.prefix(200).escaped)” to be run for the file: if the ledger is "
          + "yours, run “downpipe resume --allow-programs”")
    }
  }
}
