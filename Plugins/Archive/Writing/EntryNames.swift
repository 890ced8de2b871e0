#if Archive
  import Foundation

  /// The names that entries have taken, compared as the file systems of Macs and Windows compare them.
  ///
  /// It keeps 128 bits of each path and not the path: an archive may have a million of them. The hashes have the
  /// process's secret seed, so that no archive can be made with two names of one hash.
  struct EntryNames {
    enum Kind: Hashable {
      case folder, file, link
    }

    enum Conflict: Error, Hashable {
      /// Another spelling of the name exists.
      case spelling
      /// A file or a link has the name of a folder in the path.
      case notAFolder
      /// A folder has the name.
      case isFolder
    }

    private struct Name {
      var kind: Kind
      var spelling: UInt128
      /// The path in the archive that the entry had.
      var origin: UInt128
    }

    private var names: [UInt128: Name] = [:]

    /// The number of names, with those of folders that only the paths of others name.
    var count: Int { names.count }

    /// Takes a name, and those of the folders above it.
    ///
    /// - Parameter origin: The path in the archive. With another one than before, the name is not the same entry again.
    /// - Returns: The kind of the earlier entry of exactly this name; `nil` for a new one.
    mutating func take(
      _ components: [String], _ kind: Kind, origin: String
    ) throws(Conflict) -> (kind: Kind, isSameEntry: Bool)? {
      var path = PathHash()
      let origin = PathHash.of([origin]).spelling
      for (index, component) in components.enumerated() {
        path.append(component)
        let isLast = index + 1 == components.count
        guard let earlier = names[path.folded] else {
          names[path.folded] = Name(
            kind: isLast ? kind : .folder, spelling: path.spelling, origin: isLast ? origin : 0)
          if isLast { return nil }
          continue
        }
        if earlier.spelling != path.spelling { throw .spelling }
        if !isLast {
          if earlier.kind != .folder { throw .notAFolder }
          continue
        }
        if earlier.kind == .folder, kind != .folder { throw .isFolder }
        if earlier.kind != .folder, kind == .folder { throw .notAFolder }
        names[path.folded] = Name(kind: kind, spelling: path.spelling, origin: origin)
        return (earlier.kind, earlier.origin == origin)
      }
      return nil
    }

    /// The kind of the entry with exactly this name.
    func kind(of components: [String]) -> Kind? {
      let path = PathHash.of(components)
      return names[path.folded].flatMap { $0.spelling == path.spelling ? $0.kind : nil }
    }
  }

  /// Two hashes of a path: of its bytes, and of what case and Unicode form leave.
  struct PathHash {
    private var exact = (Hasher(), Hasher())
    private var loose = (Hasher(), Hasher())

    init() {
      exact.1.combine(1)
      loose.1.combine(1)
    }

    static func of(_ components: [String]) -> PathHash {
      var path = PathHash()
      for component in components { path.append(component) }
      return path
    }

    mutating func append(_ component: String) {
      let bytes = Array(component.utf8)
      exact.0.combine(bytes)
      exact.1.combine(bytes)
      // A string's hash is that of its canonical form.
      let folded = Self.folding(component)
      loose.0.combine(folded)
      loose.1.combine(folded)
    }

    var spelling: UInt128 { Self.value(exact) }
    var folded: UInt128 { Self.value(loose) }

    private static func value(_ hashers: (Hasher, Hasher)) -> UInt128 {
      UInt128(UInt64(truncatingIfNeeded: hashers.0.finalize())) << 64
        | UInt128(UInt64(truncatingIfNeeded: hashers.1.finalize()))
    }

    /// The text without differences of case; of its canonical equivalents any one.
    static func folding(_ text: String) -> String {
      if text.utf8.allSatisfy({ $0 < 0x80 }) { return text.lowercased() }
      var folded = String.UnicodeScalarView()
      // The capital of a final sigma is that of the other one. The capital of “ß” is two letters: the file systems of Macs take
      // both for one name.
      for scalar in text.decomposedStringWithCanonicalMapping.unicodeScalars {
        // Some file systems take names for one that differ in such characters only, such as a joiner without width.
        if scalar.properties.isDefaultIgnorableCodePoint { continue }
        // The Turkish letter without a dot has the capital of another letter.
        guard scalar.value != 0x131 else {
          folded.append(scalar)
          continue
        }
        for lower in scalar.properties.lowercaseMapping.unicodeScalars {
          for upper in lower.properties.uppercaseMapping.unicodeScalars {
            folded.append(contentsOf: upper.properties.lowercaseMapping.unicodeScalars)
          }
        }
      }
      return String(folded)
    }
  }
#endif
