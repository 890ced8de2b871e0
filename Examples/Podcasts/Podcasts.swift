import Downpipe
import Foundation

/// The newest episode first, whatever its show; what has a higher priority goes before.
struct NewestFirst: SchedulingPolicy {
  func rank(_ context: RankingContext) -> Rank {
    let published = context.metadata["published"].flatMap { try? Date($0, strategy: .iso8601) }
    return Rank().descending(context.priority).descending(published ?? .distantPast)
  }
}

/// Episodes of podcasts, one folder a show.
struct Podcasts: Sendable {
  let downloader: Downloader

  init(_ folder: String, network: some Gate = Online()) async throws {
    downloader = try await Downloader {
      HTTPSource()
      FileStore(folder)
      SQLiteLedger("\(folder)/.downpipe/ledger.sqlite")
      NewestFirst()
      Limits(concurrent: 2, perHost: 2)
      Retry(.exponential(attempts: 5))
      network
    }
  }

  /// Adds what is new in a feed. What is known stays as it is, also what the user has moved, paused or cancelled.
  func refresh(_ feed: Feed) async throws {
    let show = SafeFileName.make(fromTitle: feed.title)
    try await downloader.add(contentsOf: feed.items.compactMap { Self.request($0, show: show) })
  }

  private static func request(_ episode: Feed.Episode, show: String) -> DownloadRequest? {
    guard let audio = episode.attachments?.first else { return nil }
    let type = audio.url.pathExtension.isEmpty ? "mp3" : audio.url.pathExtension
    return DownloadRequest(
      audio.url, id: DownloadID(episode.id), tags: [show],
      metadata: ["title": episode.title, "published": episode.datePublished.formatted(.iso8601)],
      // Feeds are wrong about sizes.
      sizeHint: ByteCount(audio.sizeInBytes),
      destination: .init(
        directory: show, name: "\(SafeFileName.make(fromTitle: episode.title)).\(type)"))
  }

  /// The user has tapped an episode: it is played as soon as it is there.
  func play(_ id: DownloadID) async throws -> URL? {
    try await downloader.start(id, preempting: .oldest)
    return try await downloader.download(id)?.value.url
  }

  /// Deletes an episode with its file. Its record stays, so that the next refresh does not bring it back.
  func delete(_ id: DownloadID) async throws { try await downloader.discard(id) }

  /// A line for each episode, of all shows or of one, the next ones first.
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
