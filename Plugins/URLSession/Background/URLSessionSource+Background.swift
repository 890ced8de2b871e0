extension URLSessionSource {
  /// Tells a background session that the system has woken the app for its events; call it from the app's delegate.
  ///
  /// ```swift
  /// func application(
  ///   _ application: UIApplication, handleEventsForBackgroundURLSession identifier: String,
  ///   completionHandler: @escaping () -> Void
  /// ) {
  ///   URLSessionSource.handleBackgroundEvents(identifier: identifier, completion: completionHandler)
  /// }
  /// ```
  ///
  /// Start the downloader whose source is `URLSessionSource(.background(identifier))` at every launch, before or after
  /// this call: without it the session is not there, and the system has nobody to tell its events.
  ///
  /// `completion` is called once, on the main thread, when every event has been dealt with and the downloads have
  /// taken the files that came, or ``Configuration/handOverTimeLimit`` has passed: files that nobody takes
  /// yet are in safety. Each of several handlers is called. Where there are no background sessions it is called at
  /// once.
  @MainActor public static func handleBackgroundEvents(identifier: String, completion: @escaping () -> Void) {
    #if canImport(Darwin)
      // Not run yet; what it calls is tested.
      BackgroundSessions.shared.register(identifier, completion)
    #else
      completion()
    #endif
  }
}
