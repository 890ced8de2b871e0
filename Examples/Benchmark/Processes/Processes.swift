import Foundation
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Starts programs by the launcher, each in a process group of its own.
final class Processes: Sendable {
  private let launcher: String
  private let folder: WorkFolder
  private let number = Atomic(0)

  /// - Parameter folder: Where the output of the programs goes, and their home directory, which is empty: settings of
  ///   the user do not count.
  init(folder: WorkFolder) throws {
    self.folder = folder
    launcher = try Products.path("BenchmarkLauncher")
    try FileManager.default.createDirectory(atPath: folder.path + "/home", withIntermediateDirectories: false)
  }

  /// Runs a program to its end.
  ///
  /// - Parameter directory: The working directory.
  /// - Returns: What it used, and the end of what it wrote.
  /// - Throws: ``BenchmarkError`` when it takes longer than the limit. All its processes have ended then.
  func run(
    _ command: ProgramCommand, in directory: String? = nil, timeLimit: Duration = .seconds(600)
  ) async throws -> (use: ProcessUse, output: String) {
    let process = try start(command, in: directory)
    let isLate = Mutex(false)
    let clock = Task {
      try await Task.sleep(for: timeLimit)
      isLate.withLock { $0 = true }
      process.kill()
    }
    await process.waitUntilExit()
    clock.cancel()
    let output = process.output
    defer { process.removeFiles() }
    guard !isLate.withLock({ $0 }) else {
      throw BenchmarkError("did not end in \(Int(timeLimit / .seconds(1))) s")
    }
    guard let use = ProcessUse(process.result) else { throw BenchmarkError("was killed. \(output)") }
    return (use, output)
  }

  /// Starts a program, which is killed at the latest when this process ends.
  func start(_ command: ProgramCommand, in directory: String? = nil) throws -> RunningProgram {
    let number = number.add(1, ordering: .relaxed).newValue
    var environment = [
      "HOME": folder.path + "/home", "LANG": "C.UTF-8", "TMPDIR": folder.path,
      "PATH": ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin",
    ]
    environment.merge(command.environment) { $1 }
    return try RunningProgram(
      launcher: launcher, command: command, environment: environment, directory: directory ?? folder.path,
      files: "\(folder.path)/program-\(number)")
  }
}

/// A program that runs, with all its processes.
final class RunningProgram: Sendable {
  private let identifier: Int32
  private let guardPipe: Int32
  private let files: String
  private let exits: AsyncStream<Void>
  private let isOver = Atomic(false)

  fileprivate init(
    launcher: String, command: ProgramCommand, environment: [String: String], directory: String, files: String
  ) throws {
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else { throw BenchmarkError("there are no more descriptors: raise ulimit -n") }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    guardPipe = ends[1]
    let process = Process()
    process.executableURL = URL(filePath: launcher)
    process.arguments = [files + ".use"] + command.arguments
    process.environment = environment
    process.currentDirectoryURL = URL(filePath: directory)
    process.standardInput = FileHandle(fileDescriptor: ends[0], closeOnDealloc: true)
    _ = FileManager.default.createFile(atPath: files + ".output", contents: nil)
    let output = try FileHandle(forWritingTo: URL(filePath: files + ".output"))
    process.standardOutput = output
    process.standardError = output
    let (exits, exit) = AsyncStream.makeStream(of: Void.self)
    process.terminationHandler = { _ in exit.finish() }
    try Leftovers.shared.start {
      try process.run()
      return process.processIdentifier
    }
    try? output.close()
    self.files = files
    self.exits = exits
    identifier = process.processIdentifier
  }

  deinit {
    kill()
    close(guardPipe)
  }

  /// Kills all its processes.
  func kill() {
    if !isOver.load(ordering: .relaxed) { Leftovers.kill(identifier) }
  }

  /// Call it once.
  func waitUntilExit() async {
    await withTaskCancellationHandler {
      for await _ in exits {}
    } onCancel: {
      kill()
    }
    // The processes that a killed program leaves in its group.
    kill()
    isOver.store(true, ordering: .relaxed)
    Leftovers.shared.ended(identifier)
  }

  var hasResult: Bool { FileManager.default.fileExists(atPath: files + ".use") }

  /// The line of the launcher.
  fileprivate var result: String { (try? String(contentsOfFile: files + ".use", encoding: .utf8)) ?? "" }

  /// What it wrote.
  var output: String {
    let data = FileManager.default.contents(atPath: files + ".output") ?? Data()
    return String(decoding: data, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
  }

  func removeFiles() {
    for end in [".use", ".output"] { try? FileManager.default.removeItem(atPath: files + end) }
  }
}

/// The executables of the build that this one belongs to.
enum Products {
  static func path(_ name: String) throws -> String {
    let path = executable.deletingLastPathComponent().appending(path: name).path
    guard FileManager.default.isExecutableFile(atPath: path) else {
      throw BenchmarkError("\(name) is not beside the benchmark: build it (swift build -c release --product \(name))")
    }
    return path
  }

  static var executable: URL {
    (Bundle.main.executableURL ?? URL(filePath: CommandLine.arguments[0])).resolvingSymlinksInPath()
  }
}
