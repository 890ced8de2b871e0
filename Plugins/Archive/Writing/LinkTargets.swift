#if Archive
  import DownpipeCore

  /// The symbolic links of an archive, which are made after everything else.
  struct LinkTargets {
    /// What systems follow at most.
    private static let maximumSteps = 40

    private var links: [UInt128: (components: [String], target: String)] = [:]
    private var order: [UInt128] = []

    mutating func add(_ components: [String], to target: String) {
      let key = PathHash.of(components).folded
      if links.updateValue((components, target), forKey: key) == nil { order.append(key) }
    }

    mutating func remove(_ components: [String]) { links[PathHash.of(components).folded] = nil }

    /// The target of the link with this name.
    func target(of components: [String]) -> String? { links[PathHash.of(components).folded]?.target }

    /// The links in the order of the archive.
    var all: [(components: [String], target: String)] {
      var seen: Set<UInt128> = []
      return order.compactMap { seen.insert($0).inserted ? links[$0] : nil }
    }

    /// Checks that no link leads out of the folder, by itself or through other links.
    ///
    /// - Throws: `DownloadError` with `.unsafePath`.
    func check() throws {
      for (components, target) in all {
        try Task.checkCancellation()
        // As text, so that a link stays inside also when one of the others is replaced by a folder.
        guard Self.resolve(target, from: Array(components.dropLast())) != nil,
          isInside(components, target)
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
    private func isInside(_ components: [String], _ target: String) -> Bool {
      var place = Array(components.dropLast())
      var rest = EntryPath.loose(target)[...]
      var steps = 0
      while let component = rest.popFirst() {
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
      }
      return true
    }
  }
#endif
