#if LIBCURL
  /// What the transfers of a thread have in common in all protocols.
  package struct CurlSettings: Sendable {
    package var connectTimeLimit = Duration.seconds(30)
    package var idleTimeLimit: Duration? = .seconds(60)
    package var totalTimeLimit: Duration?
    package var minimumSpeed: HTTPSource.MinimumSpeed?
    /// The most bytes that a server may send before, between and after bodies, in one transfer.
    package var maximumHeaderBytes = 256 * 1024
    package var blocksPrivateAddresses = false
    package var idleConnections = 16
    /// Whether libcurl says farewell when it closes a connection, and waits for the answer, as in FTP and SSH.
    package var waitsForFarewell = false
    package var proxy = HTTPSource.ProxySetting.none
    package var tls = HTTPSource.TLS()

    package init() {}
  }

  extension HTTPSource.Configuration {
    package var curlSettings: CurlSettings {
      var settings = CurlSettings()
      settings.connectTimeLimit = connectTimeLimit
      settings.idleTimeLimit = idleTimeLimit
      settings.totalTimeLimit = totalTimeLimit
      settings.minimumSpeed = minimumSpeed
      settings.maximumHeaderBytes = maximumHeaderBytes
      settings.blocksPrivateAddresses = blocksPrivateAddresses
      settings.idleConnections = idleConnections
      // A proxy would look the names up that this source has to check.
      settings.proxy = blocksPrivateAddresses ? .none : proxy
      settings.tls = tls
      return settings
    }
  }
#endif
