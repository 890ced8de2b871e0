import DownpipeCore
import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

extension URLSessionSource.Configuration {
  /// Foundation's configuration for a background session.
  ///
  /// - Throws: ``DownloadError`` with `.invalidPipeline` where Foundation has none.
  func backgroundConfiguration(
    _ identifier: String, connectionsPerHost: Int
  ) throws(DownloadError) -> @Sendable () -> URLSessionConfiguration {
    #if canImport(Darwin)
      // Not run yet: written on Linux, where it cannot be compiled.
      return {
        let session = URLSessionConfiguration.background(withIdentifier: identifier)
        tuneBackground(session, connectionsPerHost: connectionsPerHost)
        session.isDiscretionary = isDiscretionary
        return session
      }
    #else
      throw DownloadError(
        .invalidPipeline,
        "background sessions exist on Apple platforms only: use URLSessionSource() or HTTPSource() here")
    #endif
  }

  /// Sets what background sessions have in common. The system keeps the time, and tries again by itself.
  func tuneBackground(_ session: URLSessionConfiguration, connectionsPerHost: Int) {
    tune(session, connectionsPerHost: connectionsPerHost)
    session.timeoutIntervalForRequest = idleTimeLimit / .seconds(1)
    session.timeoutIntervalForResource = totalTimeLimit.map { $0 / .seconds(1) } ?? Self.never
  }
}
