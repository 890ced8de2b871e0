#if Postgres
  import DownpipeColumns
  @_spi(Ledger) import DownpipeCore

  extension Condition {
    /// The condition for the rows of `download` that match a filter; `TRUE` for all.
    mutating func matching(_ filter: DownloadFilter, location: String? = nil) -> String {
      var parts: [String] = []
      // As literals, so that the server sees which partial index it can use.
      if let phases = filter.phases { parts.append(Self.isIn(phases)) }
      if let tag = filter.tag {
        let key = bind(.key(tag))
        parts.append(
          "generation IN (SELECT generation FROM tag WHERE left(tag, 200) = left(\(key), 200) AND tag = \(key))")
      }
      if let ids = filter.ids { parts.append("id = ANY(\(bind(.keys(ids.sorted()))))") }
      var kinds: [String] = []
      if let host = filter.host {
        let text = bind(.stored(host))
        kinds.append("left(host, 200) = left(\(text), 200) AND host = \(text)")
      }
      if let intent = filter.intent { kinds.append("intent = \(bind(.key(intent.rawValue)))") }
      if !kinds.isEmpty { parts.append("kind IN (SELECT number FROM kind WHERE \(kinds.joined(separator: " AND ")))") }
      if let location {
        let here = bind(.stored(location))
        parts.append("(SELECT location IS NULL OR location = \(here) FROM kind WHERE number = download.kind)")
      }
      return parts.isEmpty ? "TRUE" : parts.joined(separator: " AND ")
    }

    /// The condition for the rows of a selection.
    mutating func matching(_ selection: LedgerSelection) -> String {
      switch selection {
      case .ids(let ids): "id = ANY(\(bind(.keys(ids))))"
      case .matching(let filter): matching(filter)
      }
    }

    static func isIn(_ phases: some Sequence<DownloadState.Phase>) -> String {
      let list = phases.map { "'\($0.rawValue)'" }.sorted()
      return list.isEmpty ? "FALSE" : "phase IN (\(list.joined(separator: ", ")))"
    }
  }
#endif
