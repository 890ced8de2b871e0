#if Postgres
  import DownpipeColumns
  @_spi(Ledger) import DownpipeCore

  extension Condition {
    /// The condition for the rows of `download` that match a filter; `TRUE` for all.
    ///
    /// - Parameter findsDamaged: Whether rows are found that are active without an owner: only a damaged record is.
    mutating func matching(_ filter: DownloadFilter, findsDamaged: Bool = false) -> String {
      var parts: [String] = []
      if let phases = filter.phases { parts.append(Self.isIn(phases, findsDamaged: findsDamaged)) }
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
      if let location = filter.location {
        let here = bind(.stored(location))
        parts.append("(SELECT location IS NULL OR location = \(here) FROM kind WHERE number = download.kind)")
      }
      return parts.isEmpty ? "TRUE" : parts.joined(separator: " AND ")
    }

    /// The condition for the rows of a selection.
    ///
    /// - Parameter findsDamaged: As for a filter; no index has such rows.
    mutating func matching(_ selection: LedgerSelection, findsDamaged: Bool = false) -> String {
      switch selection {
      case .ids(let ids): "id = ANY(\(bind(.keys(ids))))"
      case .matching(let filter): matching(filter, findsDamaged: findsDamaged)
      }
    }

    /// The condition for rows of some phases, in the words of the partial indexes, so that the server sees which of them it
    /// can use.
    static func isIn(_ phases: Set<DownloadState.Phase>, findsDamaged: Bool = false) -> String {
      func list(_ isWanted: (DownloadState.Phase) -> Bool) -> String? {
        let names = phases.filter(isWanted).map { "'\($0.rawValue)'" }.sorted().joined(separator: ", ")
        return names.isEmpty ? nil : "phase IN (\(names))"
      }
      if phases.count == DownloadState.Phase.allCases.count { return list { _ in true } ?? "FALSE" }
      var parts = phases.contains(.waiting) ? [Schema.isReady, Schema.isDelayed, Schema.isDependent] : []
      if let active = list(\.isActive) { parts.append(findsDamaged ? active : "owner IS NOT NULL AND \(active)") }
      if let resting = list({ !$0.isActive && $0 != .waiting }) { parts.append(resting) }
      return parts.isEmpty ? "FALSE" : "(\(parts.joined(separator: " OR ")))"
    }
  }
#endif
