#if Archive
  import DownpipeCore

  /// The symbolic links of an archive, which are made after everything else.
  struct LinkTargets {
    /// What systems follow at most.
    private static let maximumSteps = 40
    /// The components that are read and hashed for each link, on average, before the archive is refused. Links that lead
    /// through each other could take hours otherwise.
    private static let componentsPerLink = 2_000

    /// The paths and targets. Components would need several times as much memory.
    private var links: [UInt128: (path: String, target: String)] = [:]
    private var order: [UInt128] = []

    mutating func add(_ components: [String], to target: String) {
      let key = PathHash.of(components).folded
      if links.updateValue((components.joined(separator: "/"), target), forKey: key) == nil { order.append(key) }
    }

    mutating func remove(_ components: [String]) { links[PathHash.of(components).folded] = nil }

    /// The target of the link with this name.
    func target(of components: [String]) -> String? { links[PathHash.of(components).folded]?.target }

    /// The links in the order of the archive.
    func forEach(_ body: (_ components: [String], _ target: String) throws -> Void) throws {
      var seen: Set<UInt128> = []
      for key in order where seen.insert(key).inserted {
        try Task.checkCancellation()
        guard let (path, target) = links[key] else { continue }
        try body(EntryPath.loose(path), target)
      }
    }

    /// Checks that no link leads out of the folder, by itself or through other links.
    ///
    /// - Throws: `DownloadError` with `.unsafePath`; `.tooLarge` if that would take too long.
    func check() throws {
      var budget = 1_000_000 + Self.componentsPerLink * links.count
      try forEach { components, target in
        // As text, so that a link stays inside also when one of the others is replaced by a folder.
        guard Self.resolve(target, from: Array(components.dropLast())) != nil,
          try isInside(components, target, &budget)
        else {
          throw DownloadError(
            .unsafePath,
            "the link \(shown(components.joined(separator: "/"))) of the archive leads out of its folder, to "
              + "\(shown(target)). Do not trust the archive, or leave links out: Unarchive(links: .skip)")
        }
      }
    }

    /// The components of a target; `nil` if it is absolute or climbs out of the root.
    private static func resolve(_ target: String, from folder: [String]) -> [String]? {
      guard target.utf8.first != UInt8(ascii: "/") else { return nil }
      var place = folder
      for component in EntryPath.loose(target) {
        if component != ".." {
          place.append(component)
        } else if place.popLast() == nil {
          return nil
        }
      }
      return place
    }

    /// Follows a link as the system does.
    private func isInside(_ components: [String], _ target: String, _ budget: inout Int) throws(DownloadError) -> Bool {
      var place = Array(components.dropLast())
      var rest = EntryPath.loose(target)[...]
      var steps = 0
      while let component = rest.popFirst() {
        // What the look-up costs: each component is folded, byte by byte.
        budget -= place.reduce(1) { $0 + 1 + $1.utf8.count / 16 }
        guard budget > 0 else {
          throw DownloadError(
            .tooLarge,
            "the links of the archive lead through too many others, up to \(shown(components.joined(separator: "/"))): leave "
              + "them out with Unarchive(links: .skip)")
        }
        if component == ".." {
          if place.popLast() == nil { return false }
          continue
        }
        place.append(component)
        guard let next = self.target(of: place) else { continue }
        steps += 1
        // A circle leads nowhere.
        if steps > Self.maximumSteps { return true }
        if next.utf8.first == UInt8(ascii: "/") { return false }
        place.removeLast()
        rest = (EntryPath.loose(next) + rest)[...]
        budget -= rest.count
      }
      return true
    }
  }
#endif
