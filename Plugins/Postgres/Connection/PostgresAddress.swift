#if Postgres
  import CPostgres

  /// A connection URI or a string of keywords and values, parsed by libpq.
  struct PostgresAddress: Sendable {
    /// The keywords and values for each host, the ones that all share included. The text itself, as `dbname`, if it names no
    /// host or a single one.
    let hosts: [[(String, String)]]
    /// The database and its hosts, without the user and the password.
    let summary: String
    /// Whether the text has signs that belong to no part of it, as when a password is not percent-encoded. What libpq says
    /// of such an address may contain parts of the password.
    let mayBeMisread: Bool

    static let advice =
      "the address cannot be understood: write postgresql://host/database, with user:password@ before the host if needed, "
      + "and with percent-encoded special characters in user and password"

    /// - Throws: ``PostgresFault`` with an error that has nothing of the text, because a password may be in it.
    init(_ text: String) throws(PostgresFault) {
      guard let options = PQconninfoParse(text, nil) else { throw PostgresFault(.refused, Self.advice) }
      defer { PQconninfoFree(options) }
      var values: [String: String] = [:]
      var defaultPort = ""
      var option = options
      while let keyword = option.pointee.keyword {
        if let value = option.pointee.val { values[String(cString: keyword)] = String(cString: value) }
        if String(cString: keyword) == "port", let port = option.pointee.compiled {
          defaultPort = String(cString: port)
        }
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
        hosts = [[("dbname", text)]]
        return
      }
      let shared = values.filter { !["host", "hostaddr", "port"].contains($0.key) }.sorted { $0.key < $1.key }
      hosts = (0..<count).map { index in
        var host = shared.map { ($0.key, $0.value) }
        if index < names.count { host.append(("host", names[index])) }
        if index < addresses.count { host.append(("hostaddr", addresses[index])) }
        // One port is for all hosts, and an empty one is the usual one.
        if !ports.isEmpty {
          let port = ports.count == 1 ? ports[0] : index < ports.count ? ports[index] : ""
          host.append(("port", port.isEmpty ? defaultPort : port))
        }
        return host
      }
    }
  }
#endif
