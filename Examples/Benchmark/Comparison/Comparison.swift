import Foundation
import NIOCore
import NIOPosix

/// Runs all programs on the same work in turn.
final class Comparison: Sendable {
  struct Settings: Sendable {
    var runs = 5
    /// Ends a Downpipe that hangs. It must not decide whether a busy machine has a result.
    var timeLimit = Duration.seconds(600)
    /// Ends another program. One that hangs, as axel does when a mirror dies, has no result.
    var peerTimeLimit = Duration.seconds(180)
    /// Says what happens.
    var note: @Sendable (String) -> Void = { _ in }
  }

  let settings: Settings
  let programs: Programs
  let processes: Processes
  let memory: WorkFolder
  let disk: WorkFolder
  let nginx: Nginx
  let contents: Contents
  let group: any EventLoopGroup

  private init(
    settings: Settings, programs: Programs, processes: Processes, memory: WorkFolder, disk: WorkFolder, nginx: Nginx,
    contents: Contents, group: any EventLoopGroup
  ) {
    self.settings = settings
    self.programs = programs
    self.processes = processes
    self.memory = memory
    self.disk = disk
    self.nginx = nginx
    self.contents = contents
    self.group = group
  }

  /// Runs rows and removes everything that they needed.
  ///
  /// - Parameters:
  ///   - folder: A folder in memory.
  ///   - diskFolder: A folder on disk.
  static func run(
    _ rows: [Row], isQuick: Bool, programs: Programs, settings: Settings, folder: String, diskFolder: String
  ) async throws -> Results {
    // Before nginx starts, which inherits it.
    for case .slow(let count, _) in rows.map(\.work) { DescriptorLimit.raise(to: 3 * count + 1_000) }
    let memory = try WorkFolder(in: folder)
    let disk = try WorkFolder(in: diskFolder)
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    defer {
      memory.remove()
      disk.remove()
    }
    do {
      let processes = try Processes(folder: memory)
      let contents = try Contents(folder: memory)
      let nginx = try await Nginx(
        programs.nginx, root: contents.root, folder: memory, processes: processes, group: group)
      let comparison = Comparison(
        settings: settings, programs: programs, processes: processes, memory: memory, disk: disk, nginx: nginx,
        contents: contents, group: group)
      var results = Results(
        machine: Machine(programs: await programs.versions(processes)), isQuick: isQuick, runs: settings.runs)
      do {
        for row in rows { results.rows.append(try await comparison.measure(row)) }
      } catch {
        await nginx.stop()
        throw error
      }
      await nginx.stop()
      try await group.shutdownGracefully()
      return results
    } catch {
      try? await group.shutdownGracefully()
      throw error
    }
  }

  /// One run of each program that is not measured, and then the measured ones: A B C, A B C, ….
  private func measure(_ row: Row) async throws -> RowResult {
    settings.note("\(row.name): \(row.title)")
    var result = RowResult(name: row.name, title: row.title, ideal: row.ideal)
    if case .queue(let downloads) = row.work {
      result.text = try await queue(downloads)
      return result
    }
    if case .slow(let count, _) = row.work {
      let possible = slowDownloads(row)
      result.downloads = possible
      if possible < count { result.text = "\(possible) at once: the limit of open files (ulimit -n) permits no more." }
    }
    let prepared: PreparedRow
    do {
      prepared = try await prepare(row)
    } catch let error as BenchmarkError {
      result.text = "Not run: \(error)"
      settings.note("  not run: \(error)")
      return result
    }
    let peers: [any Peer] = [programs.downpipe] + programs.others.filter { row.peers.contains($0.name) }
    result.entries = peers.map { Entry(program: $0.name) }
    for round in 0...settings.runs {
      for (index, peer) in peers.enumerated() where result.entries[index].failure == nil {
        if round > 1, row.measuredOnce.contains(peer.name) { continue }
        // Nothing is lost without the run for the caches when the server decides the time.
        if round == 0, row.measuredOnce.contains(peer.name) { continue }
        do {
          try await prepared.run(peer, round: round, &result.entries[index])
        } catch let error as BenchmarkError {
          result.entries[index].failure = error.description
        }
        note(result.entries[index], round)
      }
    }
    await prepared.finish()
    return result
  }

  private func note(_ entry: Entry, _ round: Int) {
    let figures =
      entry.failure
      ?? entry.wallSeconds.last.map {
        "\(Shown.seconds($0)), CPU \(Shown.seconds(entry.cpuSeconds.last ?? 0)), "
          + "\(Shown.bytes(entry.peakMemory.last ?? 0))"
      } ?? "done"
    settings.note("  \(round == 0 ? "warm-up" : "run \(round)"), \(entry.program): \(figures)")
  }

  private func queue(_ downloads: Int) async throws -> String {
    let (use, output) = try await processes.run(
      ProgramCommand(
        Products.executable.path,
        ["queue", "--folder", memory.path, "--downloads", "\(downloads)"]
          + (settings.runs < 5 ? ["--samples", "10"] : [])))
    return use.status == 0 ? output : "failed: \(output)"
  }
}
