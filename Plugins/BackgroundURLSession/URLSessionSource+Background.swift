public import DownpipeURLSession

extension URLSessionSource.Configuration {
  /// A session whose transfers the system continues while the app is suspended or was terminated by the system.
  ///
  /// - Experimental: This session **has not been run on Apple's systems**. Everything except creating the system's
  ///   configuration is compiled and tested on Linux, with Foundation's download tasks in an ephemeral session. What
  ///   the system does after a relaunch has not been observed.
  ///
  /// It exists on Apple platforms only: elsewhere starting a downloader with it throws `.invalidPipeline`. See
  /// ``DownpipeURLSession/URLSessionSource/handleBackgroundEvents(identifier:completion:)`` for what the app must do.
  ///
  /// ```swift
  /// let downloader = try await Downloader {
  ///   URLSessionSource(.background("org.example.films"))
  ///   FileStore("~/Downloads")
  /// }
  /// ```
  ///
  /// The system reports a transfer only when the file is complete, so a URL is *opened* when its last byte has arrived:
  /// until then there is no progress, and the storage has none of the bytes.
  ///
  /// - **Relaunch.** The `taskDescription` of a task contains the download, URL, range and validator. After a restart,
  ///   an opening with the same values receives the running task or the finished file; no second transfer starts.
  ///   Tasks and files of the same download with other values are cancelled and deleted.
  /// - **Files.** The system deletes its file when the delegate returns, so the file is first moved to the inbox,
  ///   together with the head of its response. The storage takes it from there: it moves a whole file and copies a
  ///   part. A file that no download takes is kept for seven days. Incomplete entries are deleted at each start.
  /// - **Pausing** cancels the transfer, as do a closing gate and `shutdown()` of the downloader, because the source
  ///   cannot distinguish them. The bytes that the system has received are lost: its resume data is *not* kept, because
  ///   the system would merge bytes without the validator checks of the engine. (When a connection breaks, the system
  ///   resumes within the task. Such a file is accepted only when response, size and validator agree.) To let transfers
  ///   continue, let the system suspend or terminate the app.
  /// - **A download that is removed** while its task runs, before it was opened in this process: the task runs to its
  ///   end, and its file is deleted after seven days. A download with the same id, URL and range receives it.
  /// - **Redirects** are followed by the system without asking. A transfer that is redirected from https to http fails
  ///   with `.insecureRedirect`. The system decides which origins receive fields such as `Authorization`; other secret
  ///   fields of the request may reach the target of a redirect, and `HeaderField.Scope` has no effect on it.
  /// - **Time limits.** The system applies `idleTimeLimit` and `totalTimeLimit` of the configuration and retries by
  ///   itself; `connectTimeLimit` and `maximumRedirects` have no effect.
  /// - The session is made at the first start in a process, with the settings of that moment, and lives as long as the
  ///   process.
  /// - Parameters:
  ///   - identifier: The session's name, the same at every start of the app. One downloader of a process may use it.
  ///   - inbox: The folder, created when missing, in which finished files wait for their downloads. Each identifier has
  ///     a subfolder. By default it is in the user's caches folder. Files are moved rather than copied when it is on
  ///     the file system of the storage.
  ///   - isDiscretionary: Whether the system may delay transfers, for example until the device charges on Wi-Fi.
  ///   - handOverTimeLimit: How long the app's completion handler is held back for downloads to take the files that
  ///     have arrived. Other files, such as those of paused downloads, wait in the inbox.
  public static func background(
    _ identifier: String, inbox: String? = nil, isDiscretionary: Bool = false,
    handOverTimeLimit: Duration = .seconds(10)
  ) -> URLSessionSource.Configuration {
    URLSessionSource.Configuration(
      BackgroundProvider(
        identifier: identifier, inbox: inbox, isDiscretionary: isDiscretionary, handOverTimeLimit: handOverTimeLimit))
  }
}

extension URLSessionSource {
  /// Informs a background session that the system has launched or resumed the app for its events. Call it from the app
  /// delegate.
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
  /// this call: the session receives its events only while it exists.
  ///
  /// `completion` is called once, on the main thread, when all events are processed and the downloads have taken the
  /// files that arrived, or after the `handOverTimeLimit` of the configuration; the remaining files stay in the inbox.
  /// Several handlers for one identifier are each called. Where background sessions do not exist it is called
  /// immediately.
  ///
  /// - Experimental: This has not been run on Apple's systems.
  @MainActor public static func handleBackgroundEvents(identifier: String, completion: @escaping () -> Void) {
    #if canImport(Darwin)
      // Not run yet; what it calls is tested.
      BackgroundSessions.shared.register(identifier, completion)
    #else
      completion()
    #endif
  }
}
