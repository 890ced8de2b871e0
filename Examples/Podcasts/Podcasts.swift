import Downpipe
import Foundation

/// Ranks by priority, then the newest episode first, across all shows.
struct NewestFirst: SchedulingPolicy {
  func rank(_ context: RankingContext) -> Rank {
    let published = context.metadata["published"].flatMap { try? Date($0, strategy: .iso8601) }
    return Rank().descending(context.priority).descending(published ?? .distantPast)
  }
}

/// Downloads the episodes of podcasts, each show into a folder of its own.
struct Podcasts: Sendable {
  let downloader: Downloader

  init(_ folder: String, network: some Gate = Online()) async throws {
    downloader = try await Downloader {
      HTTPSource()
      FileStore(folder)
      #if SQLite
        SQLiteLedger("\(folder)/.downpipe/ledger.sqlite")
      #endif
      NewestFirst()
      Limits(concurrent: 2, perHost: 2)
      Retry(.exponential(attempts: 5))
      network
    }
  }

  /// Adds the new episodes of a feed. Known episodes stay as they are, including those that the user has moved, paused
  /// or cancelled.
  func refresh(_ feed: PodcastFeed) async throws {
    let show = SafeFileName.make(fromTitle: feed.title)
    try await downloader.add(contentsOf: feed.items.compactMap { Self.request($0, show: show) })
  }

  private static func request(_ episode: PodcastFeed.Episode, show: String) -> DownloadRequest? {
    guard let audio = episode.attachments?.first else { return nil }
    let type = audio.url.pathExtension.isEmpty ? "mp3" : audio.url.pathExtension
    return DownloadRequest(
      audio.url, id: DownloadID(episode.id), tags: [show],
      destination: .init(
        directory: show, name: "\(SafeFileName.make(fromTitle: episode.title)).\(type)")
    )
    .with(\.metadata, ["title": episode.title, "published": episode.datePublished.formatted(.iso8601)])
    // A hint, because the sizes in feeds are often wrong.
    .with(\.sizeHint, ByteCount(audio.sizeInBytes))
  }

  /// Starts an episode that the user has tapped, and returns its file when it is finished.
  func play(_ id: DownloadID) async throws -> URL? {
    try await downloader.start(id, preempting: .oldest)
    return try await downloader.download(id)?.value.url
  }

  /// Deletes the file of an episode. The record stays, so that the next refresh does not add the episode again.
  func delete(_ id: DownloadID) async throws { try await downloader.discard(id) }

  /// Returns a line for each episode of one show, or of all shows, in the order of the queue.
  func list(show: String? = nil) async throws -> [String] {
    try await downloader.statuses(DownloadQuery(tag: show, order: .rank)).map { episode in
      let title = episode.request.metadata["title"] ?? episode.id.rawValue
      return switch episode.state {
      case .waiting(let reason): "\(title): \(reason)"
      case .transferring: "\(title): \(episode.progress.formatted())"
      case .failed(let error): "\(title): \(error.localizedDescription)"
      default: "\(title): \(episode.state.phase.rawValue)"
      }
    }
  }
}
