#if Postgres
  import CPostgres

  /// A connection URI or a string of keywords and values, parsed by libpq.
  struct PostgresAddress: Sendable {
    let text: String
    /// The keywords and values of each host; one empty list if the address names no host or a single one.
    let hosts: [[(String, String)]]
    /// The database and its hosts, without the user and the password.
    let summary: String
    /// Whether the text has signs that belong to no part of it, as when a password is not percent-encoded. What libpq says
    /// of such an address may contain parts of the password.
    let mayBeMisread: Bool

    static let advice =
      "the address cannot be understood: write postgresql://user:password@host/database, with percent-encoded special "
      + "characters in user and password"

    /// - Throws: ``PostgresFault`` with an error that has nothing of the text, because a password may be in it.
    init(_ text: String) throws(PostgresFault) {
      self.text = text
      guard let options = PQconninfoParse(text, nil) else { throw PostgresFault(.refused, Self.advice) }
      defer { PQconninfoFree(options) }
      var values: [String: String] = [:]
      var option = options
      while let keyword = option.pointee.keyword {
        if let value = option.pointee.val { values[String(cString: keyword)] = String(cString: value) }
        option += 1
      }
      let signs = text.count { $0 == "@" }
      mayBeMisread =
        text.contains("://") && (signs > 1 || (signs == 1 && values["user"] == nil && values["password"] == nil))
      func list(_ keyword: String) -> [String] {
        values[keyword].map { $0.split(separator: ",", omittingEmptySubsequences: false).map(String.init) } ?? []
      }
      let (names, addresses, ports) = (list("host"), list("hostaddr"), list("port"))
      let place = [values["service"], values["host"] ?? values["hostaddr"]].compactMap { $0 }.first
      summary = [values["dbname"], place].compactMap { $0 }.joined(separator: " at ")
      let count = max(names.count, addresses.count)
      guard count > 1 else {
        hosts = [[]]
        return
      }
      hosts = (0..<count).map { index in
        var host: [(String, String)] = []
        if index < names.count { host.append(("host", names[index])) }
        if index < addresses.count { host.append(("hostaddr", addresses[index])) }
        // One port is for all hosts.
        if !ports.isEmpty {
          host.append(("port", ports.count == 1 ? ports[0] : index < ports.count ? ports[index] : ""))
        }
        return host
      }
    }
  }
#endif
