import Downpipe
import DownpipeTesting
import Foundation

/// One scenario from its first run to its last, with a server and folders of its own.
final class KillTestInstance {
  /// What the tool was doing when it was killed.
  enum Phase: String, CaseIterable {
    case startUp = "start-up"
    case transfer
    /// All bytes of the started files had been sent, and some files were not finished.
    case steps = "steps and publishing"
    /// All files were finished, and the process still ran.
    case end
  }

  let folder: KillTestFolder
  let server: KillTestServer
  private let scenario: KillTestScenario
  private let arguments: [String]
  private var runs: [String] = []
  private var generator: SeededGenerator
  private var finished: Set<String> = []
  private(set) var problems: [String] = []

  init(_ kind: KillTestScenario.Kind, seed: UInt64) async throws {
    generator = SeededGenerator(seed: seed)
    folder = try KillTestFolder(destinationElsewhere: .random(using: &generator))
    scenario = try await KillTestScenario(kind, in: folder.path, using: &generator)
    let server = try await KillTestServer(scenario.files, companions: scenario.companions, seed: generator.next())
    self.server = server
    var arguments = ["get", "-d", folder.work, "--json"] + scenario.options
    if scenario.moves { arguments += ["--move-into", folder.destination] }
    arguments += scenario.files.map { server.url($0) }
    self.arguments = arguments
  }

  /// The folder of finished files.
  private var results: String { scenario.moves ? folder.destination : folder.work }

  // MARK: Runs

  /// Runs the command, and kills it at a moment drawn now unless it ends before.
  ///
  /// - Returns: what the tool was doing when it was killed; `nil` when it ended by itself.
  func run(kills: Bool) async throws -> Phase? {
    let left = server.left
    let moment =
      kills
      ? KillTestMoment.draw(
        bytes: left.map(\.bytes).reduce(0, +), results: left.map { results + "/" + $0.file.finalName },
        duration: KillTestScenario.duration(of: left), using: &generator) : nil
    let process = KillTestProcess(killedAt: moment)
    server.begin(process)
    let ending = try await process.run(arguments, output: output, errors: errors)
    let lines = text(output).split(separator: "\n").map(String.init)
    let objects = lines.compactMap(EndToEnd.NginxDownloadTests.object)
    note(objects)
    runs.append(
      "\(ending.killed == nil ? "ended with \(ending.status)" : "killed")"
        + (moment.map { ", planned: \($0)" } ?? ", not to be killed"))
    look(for: "right after it")
    problems += server.problems

    switch ending.killed {
    case .hung?:
      problems.append("it has not ended within two minutes")
      return nil
    case .asPlanned? where ending.status == 128 + 9: return phase
    case .asPlanned?, nil:
      if ending.status != 0 { problems.append("it has ended with the status \(ending.status)") }
      for object in objects where object["event"] as? String == "failed" { problems.append("failed: \(object)") }
      return nil
    }
  }

  private func note(_ objects: [[String: Any]]) {
    for object in objects where object["event"] as? String == "finished" {
      guard let path = (object["url"] as? String).flatMap(URL.init(string:))?.path else { continue }
      finished.insert(path)
    }
    server.finished(finished)
  }

  private var phase: Phase {
    if finished.count == scenario.files.count { return .end }
    if server.requests == 0 { return .startUp }
    return server.left.contains { $0.bytes > 0 } ? .transfer : .steps
  }

  // MARK: Expectations

  /// Checks the finished files that exist: at any time, they are complete and have the right names.
  private func look(for time: String) {
    let expected = Dictionary(uniqueKeysWithValues: scenario.files.map { ($0.finalName, $0) })
    for name in visible(results) {
      guard let file = expected[name] else {
        problems.append("\(results)/\(name) should not be there \(time)")
        continue
      }
      if let tree = file.finalTree {
        for (path, bytes) in tree
        where FileManager.default.contents(atPath: results + "/" + name + "/" + path) != Data(bytes) {
          problems.append("\(name)/\(path) is missing or has wrong bytes, \(time)")
        }
        continue
      }
      let bytes = FileManager.default.contents(atPath: results + "/" + name)
      if bytes != Data(file.finalBytes ?? file.bytes) {
        problems.append("\(name) has \(bytes?.count ?? -1) bytes, which are not the right ones, \(time)")
      }
    }
    for path in finished {
      guard let file = scenario.files.first(where: { $0.path == path }) else { continue }
      if !visible(results).contains(file.finalName) {
        problems.append("\(file.finalName) is called finished, but is not there \(time)")
      }
    }
  }

  private func visible(_ folder: String) -> [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).filter { !$0.hasPrefix(".") }
  }

  /// Checks everything after the last run.
  func verify() async throws {
    look(for: "at the end")
    for file in scenario.files where !finished.contains(file.path) {
      problems.append("nothing was said of the end of \(file.path)")
    }
    var expected: Set<String> = [
      ".downpipe/", ".downpipe/partials/", ".downpipe/work/", ".downpipe/ledger.sqlite", ".downpipe/ledger.sqlite-wal",
      ".downpipe/ledger.sqlite-shm", ".downpipe/name",
    ]
    var names: Set<String> = []
    for file in scenario.files {
      guard let tree = file.finalTree else {
        names.insert(file.finalName)
        continue
      }
      names.insert(file.finalName + "/")
      for path in tree.keys {
        names.insert("\(file.finalName)/\(path)")
        names.insert("\(file.finalName)/\(path.split(separator: "/")[0])/")
      }
    }
    if scenario.moves {
      compare(folder.destination, with: names)
    } else {
      expected.formUnion(names)
    }
    compare(folder.work, with: expected)

    if let log = scenario.log {
      // A step that was interrupted runs once more, and no other one.
      let kills = runs.count { $0.hasPrefix("killed") }
      let lines = text(log).split(separator: "\n").map { URL(filePath: String($0)).lastPathComponent }
      for file in scenario.files {
        let count = lines.count { $0 == file.finalName }
        if !(1...1 + kills).contains(count) {
          problems.append("the program has run \(count) times for \(file.finalName), after \(kills) kills")
        }
      }
    }

    let orphans = try await Command.downpipe(["list", "--orphans", "-d", folder.work]).run()
    if orphans.status != 0 || !orphans.output.isEmpty {
      problems.append("there are orphans: \(orphans.output)\(orphans.errors)")
    }
    let listed = try await Command.downpipe(["list", "--json", "-d", folder.work]).run()
    let records = listed.lines.compactMap { EndToEnd.NginxDownloadTests.object(String($0)) }
    if records.count != scenario.files.count || records.contains(where: { $0["state"] as? String != "finished" }) {
      problems.append("the ledger has not finished everything: \(listed.output)\(listed.errors)")
    }
  }

  /// Checks that no other file exists; files of the folder of the storage may be missing.
  private func compare(_ folder: String, with expected: Set<String>) {
    let present = KillTestFolder.names(folder)
    let extra = Set(present).subtracting(expected).sorted()
    if !extra.isEmpty { problems.append("left behind in \(folder): \(extra.joined(separator: ", "))") }
    for name in expected.subtracting(present) where !name.hasPrefix(".downpipe/") {
      problems.append("\(folder)/\(name) is missing")
    }
  }

  // MARK: Reports

  private var output: String { folder.path + "/output" }
  private var errors: String { folder.path + "/errors" }

  private func text(_ path: String) -> String {
    String(decoding: FileManager.default.contents(atPath: path) ?? Data(), as: UTF8.self)
  }

  /// Everything that helps to find the cause of a failure.
  var report: String {
    """
    \(problems.joined(separator: "\n"))
    command: downpipe \(arguments.joined(separator: " "))
    runs:
      \(runs.joined(separator: "\n  "))
    requests, the latest last:
      \(server.log.suffix(60).joined(separator: "\n  "))
    output of the last run:
    \(text(output).suffix(4000))\(text(errors).suffix(2000))
    folders, which are kept:
    \(folder.path)
      \(KillTestFolder.listing(folder.path).joined(separator: "\n  "))
    \(folder.destination)
      \(KillTestFolder.listing(folder.destination).joined(separator: "\n  "))
    """
  }
}
