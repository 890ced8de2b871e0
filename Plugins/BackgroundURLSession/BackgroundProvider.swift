import DownpipeCore
import DownpipeURLSession
import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// Starts the background session of a ``URLSessionSource``.
struct BackgroundProvider: SessionProvider {
  let identifier: String
  let inbox: String?
  let isDiscretionary: Bool
  let handOverTimeLimit: Duration

  var summary: String {
    "background “\(identifier.prefix(100).escaped)”" + (isDiscretionary ? ", when the system chooses" : "")
  }

  /// - Throws: ``DownloadError`` with `.invalidPipeline` on platforms without background sessions and for an identifier
  ///   that is empty or too long, `.inUse` while another downloader has the session, `.permission`, `.noSpace` or
  ///   `.storage` for the inbox.
  func start(
    _ configuration: URLSessionSource.Configuration, connectionsPerHost: Int
  ) async throws -> any SourceSession {
    #if canImport(Darwin)
      // Not run yet: written on Linux, where it cannot be compiled.
      return try await BackgroundSession.start(self, configuration) {
        let session = URLSessionConfiguration.background(withIdentifier: identifier)
        configuration.tuneBackground(session, connectionsPerHost: connectionsPerHost)
        session.isDiscretionary = isDiscretionary
        return session
      }
    #else
      throw DownloadError(
        .invalidPipeline,
        "background sessions exist on Apple platforms only: use URLSessionSource() or HTTPSource() here")
    #endif
  }
}

extension URLSessionSource.Configuration {
  /// Sets what background sessions have in common. The system applies the time limits and retries by itself.
  func tuneBackground(_ session: URLSessionConfiguration, connectionsPerHost: Int) {
    tune(session, connectionsPerHost: connectionsPerHost)
    session.timeoutIntervalForRequest = idleTimeLimit / .seconds(1)
    session.timeoutIntervalForResource = totalTimeLimit.map { $0 / .seconds(1) } ?? Self.never
  }
}
