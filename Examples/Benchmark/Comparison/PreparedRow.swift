import Foundation
import NIOCore

/// A row whose files are there.
struct PreparedRow: Sendable {
  let row: Row
  let comparison: Comparison
  /// The name of the file on the server.
  var file = ""
  var kind = Assignment.Kind.file
  /// The name of the result, if it is not the first of ``expected``.
  var name: String?
  /// Lists of URLs, by whether their server counts bytes.
  var lists: [Bool: (urls: String, curl: String)] = [:]
  /// The names of the results and the paths of their originals.
  var expected: [(name: String, original: String)] = []

  /// Runs a program once.
  ///
  /// - Parameter round: 0 is not measured: its bytes are counted.
  /// - Throws: ``BenchmarkError`` when the program failed or its result is wrong.
  func run(_ peer: any Peer, round: Int, _ entry: inout Entry) async throws {
    let work = row.isOnDisk ? comparison.disk : comparison.memory
    let folder = try work.folder("result")
    defer { try? FileManager.default.removeItem(atPath: folder) }
    if row.isOnDisk { WorkFolder.flushDisks() }
    let isCounted = round == 0
    let network = try await ImitatedNetwork(row.route, isCounted: isCounted, comparison)
    let firstByte = row.work == .firstByte ? try await FirstByteServer(comparison.group) : nil
    var assignment = Assignment(kind: kind, folder: folder)
    assignment.name = name ?? expected.first?.name ?? "file.bin"
    assignment.urls = firstByte.map { ["http://127.0.0.1:\($0.port)/file.bin"] } ?? network.urls(file)
    if case .direct(.tls) = row.route { assignment.certificate = comparison.nginx.certificate }
    if let lists = lists[isCounted] { (assignment.list, assignment.curlList) = lists }
    guard let command = peer.command(for: assignment) else { throw BenchmarkError("cannot do this") }

    let isBase = isCounted && entry.isEachStated(row)
    let settings = comparison.settings
    let limit = peer.name == DownpipePeer.title ? settings.timeLimit : settings.peerTimeLimit
    let measured: (use: ProcessUse, output: String)
    do {
      measured = try await comparison.processes.run(
        isBase ? try base(peer, assignment) : command, in: folder, timeLimit: limit)
    } catch {
      network.stop()
      await firstByte?.stop()
      throw error
    }
    network.stop()
    await firstByte?.stop()
    let use = measured.use
    guard use.status == 0 else {
      throw BenchmarkError("failed with status \(use.status). \(measured.output.suffix(300))")
    }
    if isBase {
      entry.baseMemory = Double(use.peakMemory)
      return
    }
    for (name, original) in expected {
      if let difference = Comparing.difference(of: "\(folder)/\(name)", from: original) {
        throw BenchmarkError("wrong result: \(difference)")
      }
    }
    if let passed = network.passedBytes {
      entry.fetchedBytes = max(passed, entry.fetchedBytes ?? 0)
    } else if isCounted, firstByte == nil {
      entry.fetchedBytes = try await comparison.nginx.bytesSent()
    }
    guard round > 0 else { return }
    if let firstByte {
      guard let time = firstByte.firstByte else { throw BenchmarkError("asked for nothing") }
      entry.wallSeconds.append(Double(time - use.start) / 1e9)
    } else {
      entry.wallSeconds.append(use.wallSeconds)
    }
    entry.cpuSeconds.append(use.cpuSeconds)
    entry.peakMemory.append(Double(use.peakMemory))
  }

  /// The same command for one download, whose memory is the base.
  private func base(_ peer: any Peer, _ assignment: Assignment) throws -> ProgramCommand {
    var assignment = assignment
    let first = try String(contentsOfFile: assignment.list, encoding: .utf8).split(separator: "\n").first ?? ""
    assignment.list = try comparison.memory.write(first + "\n", to: "one.txt")
    guard let command = peer.command(for: assignment) else { throw BenchmarkError("cannot do this") }
    return command
  }

  func finish() async {
    for list in lists.values {
      for path in [list.urls, list.curl] { try? FileManager.default.removeItem(atPath: path) }
    }
  }
}

extension Entry {
  fileprivate func isEachStated(_ row: Row) -> Bool {
    if case .slow = row.work { true } else { false }
  }
}
