import ArgumentParser
import DownpipeCore
import DownpipeTesting
import Foundation

/// A web server for trials of a fleet: one process that is many hosts, with files that nothing stores, replies that fail, and
/// an account of how many requests each host had at once.
@main
struct FaultyServer: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "A web server that fails on purpose, for trials of a fleet.",
    subcommands: [Serve.self, List.self, Check.self])

  /// Serves files until the end of the input.
  struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Serve files until the end of the input.")

    @Option(help: "Listen on this address.") var address = "127.0.0.1"
    @Option(help: "Listen on this port; on a free one if 0.") var port = 0
    @Option(help: "The seed of the faults.") var seed: UInt64 = 1
    @Option(help: "How many milliseconds a reply is late on average.") var delay = 50
    @Option(help: "How many replies of a thousand fail.") var faults = 60
    @Option(help: "Write a line for each request to this file.") var log: String?

    func run() async throws {
      let log = try RequestLog(log)
      let replies = FaultyReplies(
        seed: seed, delay: .milliseconds(delay), faultsInAThousand: faults, log: log)
      let server = try await ScriptedHTTPServer.start(
        host: address, port: port, onLoss: { log.end($0.connection, as: .lost) }, replies.reply)
      FileHandle.standardOutput.write(Data("ready \(server.port)\n".utf8))
      await withCheckedContinuation { continuation in
        Thread.detachNewThread {
          while !FileHandle.standardInput.availableData.isEmpty {}
          continuation.resume()
        }
      }
      let (total, most, files) = try log.close()
      print("\(total) requests for \(files) files; at most \(most) at once from one host")
      await server.shutdown()
    }
  }

  /// Prints URLs for a queue.
  struct List: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Print URLs of files.")

    @Option(help: "The number of files.") var files = 400
    @Option(help: "The number of hosts.") var hosts = 20
    @Option(help: "The first two numbers of the hosts' addresses.") var network = "127.0"
    @Option(help: "The port of the server.") var port: Int
    @Option(help: "The seed of sizes and hosts.") var seed: UInt64 = 1

    func run() {
      var generator = SeededGenerator(seed: seed)
      let all = (0..<files).map { ServedFile(number: $0, using: &generator) }
      for url in ServedHosts(network: network, count: hosts).urls(of: all, port: port, using: &generator) { print(url) }
    }
  }

  /// Compares the files that workers have saved with what the server has sent.
  struct Check: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Check that folders have all files, with the bytes of the server.")

    @Option(help: "The number of files that there must be.") var files = 400
    @Option(help: "How many may be there twice, because their workers were killed before the database knew of them.")
    var extra = 0
    @Argument(help: "The folders of the workers.") var folders: [String]

    func run() throws {
      var seen: Set<Int> = []
      var count = 0
      for folder in folders {
        for name in try FileManager.default.contentsOfDirectory(atPath: folder) where name != ".downpipe" {
          let path = "\(folder)/\(name)"
          guard let file = ServedFile(name), try file.matches(URL(filePath: path)) else {
            throw ValidationError("\(path) is not a file of the server")
          }
          seen.insert(file.number)
          count += 1
        }
      }
      guard seen == Set(0..<files) else { throw ValidationError("\(seen.count) of \(files) files are there") }
      guard count <= files + extra else { throw ValidationError("\(count - files) files are there twice") }
      print("\(files) files with the bytes of the server, \(count - files) of them twice")
    }
  }
}
