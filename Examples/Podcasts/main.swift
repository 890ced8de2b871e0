// Downloads a podcast, the newest episode first: swift run Podcasts https://example.org/feed.json ~/Podcasts
import Downpipe
import Foundation

guard CommandLine.arguments.count == 3 else {
  print("usage: Podcasts <feed> <folder>")
  exit(2)
}
do {
  let feeds = try await Downloader {
    HTTPSource()
    MemoryStore()
  }
  let feed = try await feeds.add(CommandLine.arguments[1]).value
  await feeds.shutdown()

  let podcasts = try await Podcasts(CommandLine.arguments[2])
  try await podcasts.refresh(PodcastFeed(Data(try feed.read(first: 1 << 24))))
  for line in try await podcasts.list() { print(line) }
  try await podcasts.downloader.waitUntilIdle()
  for line in try await podcasts.list() { print(line) }
  await podcasts.downloader.shutdown()
} catch {
  print(error.localizedDescription)
  exit(1)
}
