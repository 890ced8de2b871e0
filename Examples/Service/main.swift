// Downloads that stop on SIGTERM and go on at the next start: swift run ServiceExample FOLDER URL...
import Downpipe
import DownpipeService
import Logging
import ServiceLifecycle
import UnixSignals

guard CommandLine.arguments.count > 2 else {
  throw DownloadError(.invalidRequest, "usage: ServiceExample FOLDER URL...")
}
let folder = CommandLine.arguments[1]
// The ids make the next start continue these downloads.
let requests = try CommandLine.arguments.dropFirst(2).map { try DownloadRequest($0, id: DownloadID($0)) }

let downloader = try await Downloader {
  HTTPSource()
  Limits(concurrent: 3)
  Retry(.exponential(attempts: 5))
  FileStore(folder)
  #if SQLite
    SQLiteLedger("\(folder)/.downpipe/ledger.sqlite")
  #endif
}
let service = DownloaderService(downloader) { downloader in
  try await downloader.add(contentsOf: requests)
  try await downloader.waitUntilIdle()
}
// Without gracefulShutdownSignals, SIGTERM would end the process at once.
let group = ServiceGroup(
  configuration: .init(
    services: [.init(service: service, successTerminationBehavior: .gracefullyShutdownGroup)],
    gracefulShutdownSignals: [.sigterm, .sigint], logger: Logger(label: "downloads")))
try await group.run()
