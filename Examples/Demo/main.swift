// A slow and faulty server on this machine, and a pipeline that copes with it: swift run Demo [FOLDER]
//
// The plug-ins are imported one by one instead of all by `Downpipe`, so that the first build is a short one.
import DownpipeChecksum
import DownpipeCore
import DownpipeFiles
import DownpipeGzip
import DownpipeScheduling
import DownpipeTesting
import Foundation

#if LIBCURL
  import DownpipeHTTP
#else
  import DownpipeURLSession

  typealias HTTPSource = URLSessionSource
#endif

let folder = CommandLine.arguments.dropFirst().first ?? NSTemporaryDirectory() + "downpipe-demo"

let pipeline = Pipeline {
  HTTPSource()
  PriorityQueue()
  Limits(concurrent: 3)
  Retry(.exponential(attempts: 3, base: .seconds(1), cap: .seconds(5)))
  FileStore(folder, onConflict: .replace)
  VerifyChecksum()
  Gunzip(otherFiles: .keep)
}
print("\(DemoFile.all.count) files from a slow and faulty server, through this pipeline:\n\n\(pipeline)\n")

let server = try await DemoFile.startServer()
let downloader = try await Downloader(pipeline)
let changes = downloader.changes(every: .milliseconds(100))
let requests = try DemoFile.all.map { try $0.request(to: server) }
try await downloader.add(contentsOf: requests)

var display = Display(requests.map(\.id))
for await batch in changes {
  display.show(batch.statuses)
  if display.isComplete { break }
}
await downloader.shutdown()
await server.shutdown()

// The same checks that a user would make by hand: `.ci/demo` relies on the exit status.
let wrong = zip(DemoFile.all, requests).filter { file, request in
  display.statuses[request.id].map { !file.isAsExpected($0, in: folder) } ?? true
}
guard wrong.isEmpty else {
  print("\nNot as expected: \(wrong.map(\.0.name).joined(separator: ", "))")
  exit(1)
}
print("\nAll as expected: every file in \(folder) is right, and the damaged one was refused.")
