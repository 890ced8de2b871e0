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
    /// Whether the server may be shown the certificate of the settings, because the user has named its origin.
    var showsCertificate = false
    /// Entries for libcurl's table of names: `host:port:address,address`.
    var addresses: [String] = []
    var deadline: ContinuousClock.Instant?

    /// How the server may be told who asks.
    struct Login: Sendable {
      let user: String
      let password: String
      let schemes: HTTPSource.PasswordSchemes

      init(user: String, password: String, schemes: HTTPSource.PasswordSchemes) {
        // Digest has the name itself in its field, where a line break would begin another field. Only newer versions of
        // libcurl encode it.
        self.user =
          schemes == .basic || !user.utf8.contains(where: Self.isControl) ? user : Self.withoutControls(user)
        self.password = password
        self.schemes = schemes
      }

      /// Whether the server may be asked twice, so that its first answer is not the answer.
      var mayAskAgain: Bool { schemes != .basic }

      private static func isControl(_ byte: UInt8) -> Bool { byte < 0x20 || byte == 0x7F }

      private static func withoutControls(_ user: String) -> String {
        user.unicodeScalars.map { scalar in
          scalar.isASCII && isControl(UInt8(scalar.value))
            ? (scalar.value < 16 ? "%0" : "%") + String(scalar.value, radix: 16, uppercase: true) : String(scalar)
        }.joined()
      }
    }
  }
#endif
