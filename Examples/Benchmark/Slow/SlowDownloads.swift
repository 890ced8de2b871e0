import ArgumentParser
import Downpipe
import Foundation

/// Downloads all URLs of a list at once, with the library: the tool has a limit of 1,000.
struct SlowDownloads: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "slow", abstract: "Download all URLs of a list at once (a part of the comparison).",
    shouldDisplay: false)

  @Option(help: "A file with a URL on each line.") var list: String
  @Option(help: "The folder for the files and the ledger.") var directory: String
  @Option(help: "The number of downloads at once.") var jobs: Int

  func run() async throws {
    let urls = try String(contentsOfFile: list, encoding: .utf8).split(separator: "\n").compactMap {
      URL(string: String($0))
    }
    let directory = directory
    #if SQLite
      let ledger = SQLiteLedger(directory + "/.downpipe/ledger.sqlite")
    #else
      let ledger = MemoryLedger()
    #endif
    let downloader = try await Downloader {
      HTTPSource()
      Limits(concurrent: jobs, perHost: jobs)
      FileStore(directory)
      ledger
    }
    for start in stride(from: 0, to: urls.count, by: 1_000) {
      let part = urls[start..<min(start + 1_000, urls.count)]
      try await downloader.add(contentsOf: part.map { DownloadRequest($0) })
    }
    try await downloader.waitUntilIdle()
    await downloader.shutdown()
  }
}
