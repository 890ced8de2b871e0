// The pipeline of the README as a program: swift run Quickstart URL [FOLDER]
import Downpipe

guard CommandLine.arguments.count >= 2 else { throw DownloadError(.invalidRequest, "usage: Quickstart URL [FOLDER]") }
let url = CommandLine.arguments[1]
let folder = CommandLine.arguments.count > 2 ? CommandLine.arguments[2] : "~/Downloads"

let downloader = try await Downloader {
  HTTPSource()
  PriorityQueue()
  Limits(concurrent: 3, perHost: 2)
  Online()
  WiFiOnly()  // Unmetered() permits Ethernet, too
  Retry(.exponential(attempts: 5))
  FileStore(folder)
  #if SQLite
    SQLiteLedger("\(folder)/.downpipe/ledger.sqlite")
  #endif
  VerifyChecksum()
  if url.hasSuffix(".gz") { Gunzip() }
  MoveInto("\(folder)/Finished")
}

// The id makes a second run continue this download: a request without an id is a new download each time.
let film = try await downloader.add(DownloadRequest(url, id: DownloadID(url), priority: .high))
for await event in film.events {
  if case .progress(let progress) = event.kind { print(progress.formatted()) }
  if case .state(.waiting(.gate(_, let text))) = event.kind { print(text) }
}
let artifact = try await film.value
print("→", artifact.path ?? artifact.name)
await downloader.shutdown()
