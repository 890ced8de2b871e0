#if LIBCURL
  import DownpipeCore
  import Foundation

  /// The keys in use. They are looked for once, and again before they expire; several requests wait for one search.
  actor KeyCache {
    /// How long before their end keys are fetched again.
    private static let reserve: TimeInterval = 5 * 60

    private let configuration: S3.Configuration
    private let files: ProfileFiles
    private var known: S3Keys?
    private var search: Task<S3Keys, any Error>?

    init(_ configuration: S3.Configuration) {
      self.configuration = configuration
      var profile: String?
      if case .profile(let name) = configuration.credentials { profile = name }
      files = ProfileFiles(profile: profile, configuration.environment)
    }

    /// The region of the environment or of the profile.
    var region: String? {
      for name in ["AWS_REGION", "AWS_DEFAULT_REGION"] {
        if let region = configuration.environment[name], !region.isEmpty { return region }
      }
      return files.value("region")
    }

    /// The keys for a request; `nil` if it is not signed.
    /// - Throws: `DownloadError` with `.objectStorageCredentials`; `CancellationError`.
    func keys() async throws -> S3Keys? {
      if case .anonymous = configuration.credentials { return nil }
      let now = configuration.time.date
      if let known, known.expires.map({ $0.timeIntervalSince(now) > Self.reserve }) ?? true { return known }
      do { return try await found() } catch {
        // The service may be disturbed for a while: keys that are valid are used until then.
        if let known, let expires = known.expires, expires > now, !(error is CancellationError) { return known }
        throw error
      }
    }

    /// Looks again because the storage has refused keys.
    /// - Returns: Whether there are others.
    func renew(_ refused: S3Keys?) async -> Bool {
      if known == refused { known = nil }
      guard let keys = try? await found() else { return false }
      return keys != refused
    }

    private func found() async throws -> S3Keys {
      let task = search ?? Task { [configuration, files] in try await KeySearch(configuration, files).keys() }
      search = task
      // The search goes on for others that wait when one of them is cancelled. It has time limits of its own.
      let result = await task.result
      if search == task { search = nil }
      try Task.checkCancellation()
      let keys = try result.get()
      known = keys
      return keys
    }
  }
#endif
