#if LIBCURL
  import DownpipeCore

  /// One request, as a lane sends it.
  struct Order: Sendable {
    typealias ID = UInt64

    let id: ID
    /// The URL as it goes on the wire.
    var url: String
    var fields: HeaderFields
    var login: Login?
    /// Entries for libcurl's table of names: `host:port:address,address`.
    var addresses: [String] = []
    var deadline: ContinuousClock.Instant?

    /// How the server may be told who asks.
    enum Login: Sendable {
      case password(user: String, password: String, schemes: HTTPSource.PasswordSchemes)
      /// libcurl finds the entry of the host.
      case netrc(path: String)

      /// Whether the server may be asked twice, so that its first answer is not the answer.
      var mayAskAgain: Bool {
        if case .password(_, _, let schemes) = self { schemes != .basic } else { false }
      }
    }
  }
#endif
