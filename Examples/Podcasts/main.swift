// Podcasts, the newest first: swift run Podcasts https://example.org/feed.xml ~/Podcasts
import Downpipe
import Foundation

guard CommandLine.arguments.count == 3 else {
  print("usage: Podcasts <feed> <folder>")
  exit(2)
}
let feeds = try await Downloader {
  HTTPSource()
  MemoryStore()
}
let artifact = try await feeds.add(CommandLine.arguments[1]).value
await feeds.shutdown()
guard case .memory(let bytes) = artifact.location else { exit(1) }

let podcasts = try await Podcasts(CommandLine.arguments[2])
try await podcasts.refresh(Feed(Data(bytes)))
for line in try await podcasts.list() { print(line) }
try await podcasts.downloader.waitUntilIdle()
for line in try await podcasts.list() { print(line) }
await podcasts.downloader.shutdown()
